"""The operations of the former nova-network, on the built-in networks."""

import ipaddress

from computeapi import errors
from computeapi.backends.network.local import addresses, pools
from computeapi.backends.network.local.base import NetworkStore
from computeapi.backends.network.nova_network import DNSDomain, DNSEntry, FixedIP, PoolAddress
from computeapi.context import Context
from computeapi.db import dns, subnet_addresses
from computeapi.db.network_collection import Document, Work
from computeapi.db.networks import SUBNETS
from computeapi.db.ports import PORTS


class LocalNovaNetworkOperations(NetworkStore):
    """Implements compute's `NovaNetworkOperations`."""

    # Fixed addresses

    def fixed_ip(self, context: Context, address: str) -> FixedIP:
        address = _canonical(address)
        with self.reading(context) as work:
            having = _subnets_with(work, address)
            used = _use(work, address)
            subnet_id = next((each for each in having if each in used), next(iter(having)))
            reserved = bool(subnet_addresses.reserving(work, [subnet_id], address))
        return FixedIP(address, having[subnet_id], reserved, used.get(subnet_id))

    def reserve_fixed_ip(self, context: Context, address: str) -> None:
        address = _canonical(address)
        with self.changing(context) as work:
            subnet_addresses.reserve(work, _subnets_with(work, address), address)

    def unreserve_fixed_ip(self, context: Context, address: str) -> None:
        address = _canonical(address)
        with self.changing(context) as work:
            subnet_addresses.unreserve(work, _subnets_with(work, address), address)

    # Addresses of floating IPs

    def pool_addresses(self, context: Context, *, host: str | None = None, limit: int) -> list[PoolAddress]:
        with self.reading(context) as work:
            return pools.find(work, host, limit)

    def add_pool_addresses(
        self, context: Context, addresses: str, *, pool: str | None = None, interface: str | None = None
    ) -> str:
        with self.changing(context) as work:
            return pools.add(work, addresses, pool, interface)

    def remove_pool_addresses(self, context: Context, addresses: str) -> None:
        notifications = self.resources.notifications
        with self.changing(context) as work:
            notification = notifications.note(work, pools.remove(work, addresses))
        notifications.send(context, notification)

    # DNS names

    def dns_domains(self, context: Context) -> list[DNSDomain]:
        with self.reading(context) as work:
            return [DNSDomain(**domain) for domain in dns.domains(work)]

    def set_dns_domain(self, context: Context, domain: DNSDomain) -> None:
        with self.changing(context) as work:
            dns.save_domain(work, vars(domain))

    def delete_dns_domain(self, context: Context, domain: str) -> None:
        with self.changing(context) as work:
            _check_domain(work, domain)
            dns.delete_domain(work, domain)

    def dns_entries(
        self, context: Context, domain: str, *, name: str | None = None, address: str | None = None
    ) -> list[DNSEntry]:
        wanted = {'domain': domain, 'name': name, 'ip_address': address}
        with self.reading(context) as work:
            _check_domain(work, domain)
            found = dns.entries(work, **{key: value for key, value in wanted.items() if value is not None})
        return [_entry(each) for each in found]

    def set_dns_entry(self, context: Context, entry: DNSEntry) -> None:
        with self.changing(context) as work:
            _check_domain(work, entry.domain, lock=True)
            held = dns.entries(work.elevated(), domain=entry.domain, name=entry.name)
            owner = held[0]['project_id'] if held else context.project_id or ''
            if not context.is_admin and owner != context.project_id:
                raise errors.Conflict(f'Another project has the name {entry.name} in domain {entry.domain}.')
            facts = {'domain': entry.domain, 'name': entry.name, 'ip_address': entry.ip_address}
            dns.save_entry(work, {**facts, 'project_id': owner})

    def delete_dns_entry(self, context: Context, domain: str, name: str) -> None:
        with self.changing(context) as work:
            _check_domain(work, domain)
            if not dns.entries(work, domain=domain, name=name):
                raise errors.DNSEntryNotFound()
            dns.delete_entry(work, domain, name)


def _canonical(address: str) -> str:
    return str(addresses.parse_address(address))


def _subnets_with(work: Work, address: str) -> dict[str, str]:
    """The CIDRs, by ID, of the subnets that contain the address, oldest first."""
    parsed = ipaddress.ip_address(address)
    subnets = SUBNETS.find(work, ip_version=parsed.version)
    having = {
        each['id']: each['cidr'] for each in subnets if addresses.is_host(ipaddress.ip_network(each['cidr']), parsed)
    }
    if not having:
        raise errors.FixedIPNotFound(f'Fixed IP not found for address {address}.')
    return having


def _use(work: Work, address: str) -> dict[str, str | None]:
    """By subnet, the device that holds the address there."""
    ports = PORTS.find(work, filters={'fixed_ips': [f'ip_address={address}']})
    held = [(port['device_id'] or None, fixed) for port in ports for fixed in port['fixed_ips']]
    return {fixed['subnet_id']: device_id for device_id, fixed in held if fixed['ip_address'] == address}


def _check_domain(work: Work, domain: str, *, lock: bool = False) -> None:
    if not dns.domains(work, lock=lock, domain=domain):
        raise errors.DNSDomainNotFound(domain=domain)


def _entry(found: Document) -> DNSEntry:
    return DNSEntry(found['domain'], found['name'], found['ip_address'])
