"""The facts in the documents of a guest, and how they depend on the version that the guest requests."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from computeapi.backends.hypervisor import BusAddress
from computeapi.backends.network import Network
from computeapi.db.server_shares import AttachedShare
from computeapi.db.servers import BlockDevice, Server
from computeapi.errors import NotFound

LATEST = 'latest'


@dataclass(frozen=True)
class Guest:
    """A server as its guest may see it.

    buses: where its interfaces (by port) and disks (by UUID) are in the machine.  networks: those of its interfaces, if
    the document needs them.  shares: the mounted ones.  domain: appended to the hostname.
    seed: random bytes.  vendor_data: the operator's data for every guest.
    admin_pass: the administrator's password, if the document contains it.
    """

    server: Server
    disks: Sequence[BlockDevice]
    buses: Mapping[str, BusAddress]
    networks: Mapping[str, Network]
    shares: Sequence[AttachedShare]
    domain: str
    seed: bytes
    vendor_data: Mapping[str, Any]
    admin_pass: str | None = field(default=None, repr=False)

    @property
    def hostname(self) -> str:
        return f'{self.server.hostname}.{self.domain}' if self.domain else self.server.hostname

    @property
    def key_kind(self) -> str:
        """The type of the key. The key pair may be deleted, but the server keeps its public key."""
        return 'x509' if (self.server.public_key or '').startswith('-----BEGIN CERTIFICATE') else 'ssh'


class Part(NamedTuple):
    """A fact available from one version on: `of(subject, version)`; None if the subject has none.

    Versions are dates, so they can be compared as text; the first one of EC2 is 1.0.
    """

    since: str
    of: Callable[[Any, str], Any]


def parts(table: Mapping[str, Part], subject: Any, version: str) -> dict[str, Any]:
    """The facts of the subject at that version."""
    found = {name: part.of(subject, version) for name, part in table.items() if part.since <= version}
    return {name: value for name, value in found.items() if value is not None}


def version_of(text: str, versions: Sequence[str]) -> str:
    """The version named in a path; NotFound."""
    if text != LATEST and text not in versions:
        raise NotFound()
    return versions[-1] if text == LATEST else text
