"""The operations of the former nova-network, which the API has until microversion 2.43."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from computeapi.context import Context


@dataclass(frozen=True)
class FixedIP:
    """An address of a subnet; `reserved`: it is not assigned to ports.  `server_id`: the server that has it."""

    address: str
    cidr: str
    reserved: bool = False
    server_id: str | None = None


@dataclass(frozen=True)
class PoolAddress:
    """An address for floating IPs (in use if it has a project); `pool` is the name of its network."""

    address: str
    pool: str
    interface: str | None = None
    project_id: str | None = None
    fixed_address: str | None = None
    server_id: str | None = None


@dataclass(frozen=True)
class DNSDomain:
    """A domain of a project, or of everybody; `scope` is public, or private to a zone."""

    domain: str
    scope: str
    project_id: str | None = None
    availability_zone: str | None = None


@dataclass(frozen=True)
class DNSEntry:
    """A name in a domain, and the address that it stands for; its kind (A, AAAA) is given by the creator."""

    domain: str
    name: str
    ip_address: str
    kind: str | None = None


class NovaNetworkOperations(Protocol):
    """A part of Networks; NotSupported if a network service has no equivalent."""

    def fixed_ip(self, context: Context, address: str) -> FixedIP:
        """FixedIPNotFound if no subnet that the caller sees has the address; of several, the one that uses it."""

    def reserve_fixed_ip(self, context: Context, address: str) -> None:
        """Exclude the address from assignment, on each network that the caller can see; FixedIPNotFound."""

    def unreserve_fixed_ip(self, context: Context, address: str) -> None:
        """Undo the reservation; no error if it is not reserved."""

    def pool_addresses(self, context: Context, *, host: str | None = None, limit: int) -> list[PoolAddress]:
        """The addresses of floating IPs (with *host*: of those that lead to it), then free ones, up to *limit*."""

    def add_pool_addresses(
        self, context: Context, addresses: str, *, pool: str | None = None, interface: str | None = None
    ) -> str:
        """Add these addresses to a pool of floating IPs: a single one, or those of an IPv4 network. Returns the name of
        the pool, by default the first one, which is created if there is none. Conflict if any address is in a pool
        already."""

    def remove_pool_addresses(self, context: Context, addresses: str) -> None:
        """Remove them from all pools, and delete the floating IPs that use them."""

    def dns_domains(self, context: Context) -> list[DNSDomain]:
        """The domains of the caller's project and those of everybody."""

    def set_dns_domain(self, context: Context, domain: DNSDomain) -> None:
        """Create the domain, or change it."""

    def delete_dns_domain(self, context: Context, domain: str) -> None:
        """Delete the domain with all its entries; DNSDomainNotFound."""

    def dns_entries(
        self, context: Context, domain: str, *, name: str | None = None, address: str | None = None
    ) -> list[DNSEntry]:
        """The entries of the caller's project with this name or address; DNSDomainNotFound."""

    def set_dns_entry(self, context: Context, entry: DNSEntry) -> None:
        """Create the entry, or change its address; DNSDomainNotFound, Conflict if another project has the name."""

    def delete_dns_entry(self, context: Context, domain: str, name: str) -> None:
        """DNSDomainNotFound, DNSEntryNotFound."""
