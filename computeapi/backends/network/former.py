"""What networks were asked for when compute kept them by itself, and what is still asked until 2.43."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from computeapi.context import Context


@dataclass(frozen=True)
class FixedIP:
    """An address of a subnet; `reserved`: no port is given it.  `server_id`: that has it."""

    address: str
    cidr: str
    reserved: bool = False
    server_id: str | None = None


@dataclass(frozen=True)
class PoolAddress:
    """An address that a floating IP can have (or has, if it has a project); `pool` is the name of its network."""

    address: str
    pool: str
    interface: str | None = None
    project_id: str | None = None
    fixed_address: str | None = None
    server_id: str | None = None


@dataclass(frozen=True)
class DNSDomain:
    """A domain of a project, or everybody's; `scope` is public, or private to a zone."""

    domain: str
    scope: str
    project_id: str | None = None
    availability_zone: str | None = None


@dataclass(frozen=True)
class DNSEntry:
    """A name in a domain, and the address that it stands for; its kind (A, AAAA) is said by who makes it."""

    domain: str
    name: str
    ip_address: str
    kind: str | None = None


class FormerNetworks(Protocol):
    """A part of Networks; where a network service has no such thing, NotSupported."""

    def fixed_ip(self, context: Context, address: str) -> FixedIP:
        """FixedIPNotFound if no subnet that the caller sees has the address; of several, the one where it is used."""

    def reserve_fixed_ip(self, context: Context, address: str) -> None:
        """Give the address to no port any more, on whichever of the networks that the caller sees; FixedIPNotFound."""

    def unreserve_fixed_ip(self, context: Context, address: str) -> None:
        """The opposite; no error if it is not reserved."""

    def pool_addresses(self, context: Context, *, host: str | None = None, most: int) -> list[PoolAddress]:
        """Those that floating IPs have (with a host: that lead to it), and then those that are free, up to *most*."""

    def add_pool_addresses(
        self, context: Context, addresses: str, *, pool: str | None = None, interface: str | None = None
    ) -> str:
        """Let floating IPs of the pool have these addresses: one, or those of an IPv4 network. The name of the pool,
        which is the first if none is named, and made if there is none. Conflict if some pool has one of them."""

    def remove_pool_addresses(self, context: Context, addresses: str) -> None:
        """Take them from all pools, and the floating IPs that have them from their projects."""

    def dns_domains(self, context: Context) -> list[DNSDomain]:
        """The domains of the caller's project and those of everybody."""

    def set_dns_domain(self, context: Context, domain: DNSDomain) -> None:
        """Make the domain, or change it."""

    def delete_dns_domain(self, context: Context, domain: str) -> None:
        """With all that is in it; DNSDomainNotFound."""

    def dns_entries(
        self, context: Context, domain: str, *, name: str | None = None, address: str | None = None
    ) -> list[DNSEntry]:
        """The entries of the caller's project with this name or address; DNSDomainNotFound."""

    def set_dns_entry(self, context: Context, entry: DNSEntry) -> None:
        """Make the entry, or change its address; DNSDomainNotFound, Conflict if another project has the name."""

    def delete_dns_entry(self, context: Context, domain: str, name: str) -> None:
        """DNSDomainNotFound, DNSEntryNotFound."""
