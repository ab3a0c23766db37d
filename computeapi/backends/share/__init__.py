"""Shares: file systems that servers mount over the network, and that outlive them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from computeapi.context import Context

PROTOCOLS = ('NFS', 'CEPHFS')
"""What hosts can mount."""


@dataclass(frozen=True)
class Share:
    """A share as Manila knows it; `size` in GiB, `protocol` NFS, CEPHFS or another.

    export_location: where hosts mount it from, once it is available.
    """

    id: str
    name: str | None
    status: str
    size: int
    protocol: str
    project_id: str
    export_location: str | None = None
    user_id: str | None = None
    description: str | None = None
    is_public: bool = False
    availability_zone: str = 'nova'
    metadata: Mapping[str, str] = field(default_factory=dict)
    created_at: datetime | None = None
    updated_at: datetime | None = None


class Shares(Protocol):
    """Look-ups are bound to the caller's project and what is public (an administrator sees all): ShareNotFound."""

    def get(self, context: Context, share_id: str) -> Share: ...

    def allow(self, context: Context, share_id: str, address: str) -> None:
        """Let the host at that IP address mount the share, and nobody delete it; no error if that is so already."""

    def deny(self, context: Context, share_id: str, address: str) -> None:
        """Take that back; no error if it is gone, or the share is."""
