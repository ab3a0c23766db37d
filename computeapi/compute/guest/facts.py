"""The facts that the documents of a guest are made of, and how they depend on the version that the guest asks for."""

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
    """A server as its guest may know it.

    buses: where its interfaces (by port) and disks (by uuid) are in the machine.  networks: those that its interfaces
    are on, where the document asks for them.  shares: those that are mounted.  domain: what follows the hostname.
    seed: random bytes.  vendor_data: what the operator tells every guest.
    admin_pass: what its administrator's password is to be, where it is told that.
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
        """The key pair may be gone; the server knows its public half."""
        return 'x509' if (self.server.public_key or '').startswith('-----BEGIN CERTIFICATE') else 'ssh'


class Part(NamedTuple):
    """What is there from one version on: `of(subject, version)`; None where the subject has none.

    Versions are dates, so the text that is less is the older one; EC2's first is 1.0.
    """

    since: str
    of: Callable[[Any, str], Any]


def parts(table: Mapping[str, Part], subject: Any, version: str) -> dict[str, Any]:
    """What the subject has at that version."""
    found = {name: part.of(subject, version) for name, part in table.items() if part.since <= version}
    return {name: value for name, value in found.items() if value is not None}


def version_of(text: str, versions: Sequence[str]) -> str:
    """The version that a path names; NotFound."""
    if text != LATEST and text not in versions:
        raise NotFound()
    return versions[-1] if text == LATEST else text
