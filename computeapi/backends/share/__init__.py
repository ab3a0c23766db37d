"""Shares: network file systems that servers mount, and that outlive them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from computeapi.context import Context

ZONE = 'nova'
"""The availability zone of the built-in shares."""
PROTOCOLS = ('NFS', 'CEPHFS')
"""The protocols that hosts can mount."""


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
    availability_zone: str = ZONE
    metadata: Mapping[str, str] = field(default_factory=dict)
    created_at: datetime | None = None
    updated_at: datetime | None = None


class Shares(Protocol):
    """Queries are restricted to the caller's project and public shares (an administrator sees all): ShareNotFound."""

    def get(self, context: Context, share_id: str) -> Share: ...

    def allow(self, context: Context, share_id: str, address: str) -> None:
        """Allow the host with that IP address to mount the share, and protect the share from deletion; idempotent."""

    def deny(self, context: Context, share_id: str, address: str) -> None:
        """Undo `allow`; no error if the access or the share is gone."""
