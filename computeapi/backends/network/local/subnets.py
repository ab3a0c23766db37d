"""Rules for subnets."""

import ipaddress
from collections.abc import Iterable
from typing import Any

from computeapi import errors
from computeapi.backends.network.local import addresses, subnet_pools
from computeapi.db import network_projects, networks, ports
from computeapi.db.network_collection import Document, Work
from computeapi.db.networks import NETWORKS, SUBNETS
from computeapi.db.ports import ROUTER_INTERFACE

MODES = ('ipv6_ra_mode', 'ipv6_address_mode')
SMALLEST_MTU = {4: 68, 6: 1280}
"""By IP version, the MTU that networks with such subnets have at least."""


def create(work: Work, facts: Document) -> str:
    project_id = network_projects.owner(work, facts)
    network_projects.reserve(work, project_id, 'subnet')
    mtu = NETWORKS.owned(work, facts['network_id'])['mtu']
    facts = subnet_pools.taken(work, {**facts, 'project_id': project_id})
    network = addresses.parse_cidr(facts['cidr'])
    _check_version(network, facts)
    check_mtu(facts['network_id'], mtu, [{'ip_version': network.version}])
    _check_overlap(work, facts['network_id'], network)
    _check_served(network, facts)
    gateway = _gateway(network, facts)
    pools = facts.get('allocation_pools')
    ours = {
        'cidr': str(network),
        'ip_version': network.version,
        'gateway_ip': gateway,
        'allocation_pools': (
            addresses.default_pools(network, gateway)
            if pools is None
            else addresses.check_pools(network, pools, gateway)
        ),
    }
    NETWORKS.update(work, facts['network_id'], {})
    return SUBNETS.insert(work, {**facts, **ours, **_resolvers_and_routes(network, facts)})


def hold_network(work: Work, subnet_id: str, facts: Document | None = None) -> None:
    """Locks the network before the subnet."""
    NETWORKS.lock(work.elevated(), SUBNETS.get(work, subnet_id)['network_id'])


def update(work: Work, subnet_id: str, facts: Document) -> None:
    hold_network(work, subnet_id)
    subnet = SUBNETS.owned(work, subnet_id)
    network = ipaddress.ip_network(subnet['cidr'])
    if not subnet['enable_dhcp']:
        _check_served(network, {'enable_dhcp': False, **facts})
    changed = {**facts, **_resolvers_and_routes(network, facts)}
    if {'gateway_ip', 'allocation_pools'} & facts.keys():
        changed |= _rearranged(work, subnet, facts)
    NETWORKS.update(work, subnet['network_id'], {})
    SUBNETS.update(work, subnet_id, changed)


def delete(work: Work, subnet_id: str) -> None:
    hold_network(work, subnet_id)
    subnet = SUBNETS.owned(work, subnet_id)
    # On a stateless subnet, ports that chose their own addresses do not prevent deletion, but a router interface does:
    # it would be left without an address.
    if ports.subnet_is_used(work, subnet_id, ROUTER_INTERFACE if addresses.is_stateless(subnet) else None):
        raise errors.SubnetInUse(id=subnet_id)
    ports.remove_addresses_on(work, subnet_id)
    NETWORKS.update(work, subnet['network_id'], {})
    SUBNETS.delete(work, id=subnet_id)


def _check_version(network: addresses.IPNetwork, facts: Document) -> None:
    if facts.get('ip_version', network.version) != network.version:
        raise addresses.invalid('ip_version', facts['ip_version'], f'is not the version of {network}')
    given = [mode for mode in MODES if facts.get(mode)]
    if given and network.version == 4:
        raise addresses.invalid(given[0], facts[given[0]], 'is for IPv6 subnets only')
    if len({facts[mode] for mode in given}) > 1:
        raise addresses.invalid('ipv6_address_mode', facts['ipv6_address_mode'], 'is not the same as ipv6_ra_mode')
    if addresses.is_stateless({'ipv6_address_mode': None, **facts}) and network.prefixlen != 64:
        raise addresses.invalid('cidr', network, 'must have a prefix of /64 for stateless addresses')


def check_mtu(network_id: str, mtu: int, subnets: Iterable[Document]) -> None:
    """Raises Conflict if the MTU of the network is too small for one of the subnets."""
    least = max((SMALLEST_MTU[subnet['ip_version']] for subnet in subnets), default=0)
    if mtu < least:
        raise errors.Conflict(f'MTU of {network_id} is not valid, subnet requires a minimum of {least}')


def _check_overlap(work: Work, network_id: str, network: addresses.IPNetwork) -> None:
    for subnet in networks.subnets_of(work, [network_id]):
        if network.overlaps(ipaddress.ip_network(subnet['cidr'])):
            raise errors.Invalid(
                f'Invalid input for operation: Requested subnet with cidr: {network} for network: {network_id} '
                f'overlaps with another subnet.'
            )


def _check_served(network: addresses.IPNetwork, facts: Document) -> None:
    """Raises Invalid if DHCP is enabled and cannot serve the subnet."""
    if not facts.get('enable_dhcp', True):
        return
    problem = None
    if network.prefixlen > network.max_prefixlen - 2:
        problem = 'Subnet has a prefix length that is incompatible with DHCP service enabled'
    elif network.is_multicast:
        problem = 'Multicast IP subnet is not supported if enable_dhcp is True'
    elif network.is_loopback:
        problem = 'Loopback IP subnet is not supported if enable_dhcp is True'
    elif network.version == 4 and network.network_address.is_unspecified:
        problem = "First IP '0.0.0.0' of network is not supported if enable_dhcp is True"
    if problem:
        raise errors.Invalid(f'Invalid input for operation: {problem}.')


def _gateway(network: addresses.IPNetwork, facts: Document) -> str | None:
    """The gateway: by default the first host; None if it is set to null."""
    if 'gateway_ip' not in facts:
        return addresses.first_host(network)
    if facts['gateway_ip'] is None:
        return None
    gateway = addresses.parse_address(facts['gateway_ip'], 'gateway_ip')
    if gateway.version != network.version or gateway in network and not addresses.is_host(network, gateway):
        raise addresses.invalid('gateway_ip', gateway, f'is not a host of {network}')
    return str(gateway)


def _rearranged(work: Work, subnet: Document, facts: Document) -> Document:
    """New pools and gateway, checked against each other and against existing ports."""
    network = ipaddress.ip_network(subnet['cidr'])
    gateway = _gateway(network, subnet | facts)
    if gateway != subnet['gateway_ip'] and ports.held_addresses(work, subnet['id'], [subnet['gateway_ip'] or '']):
        raise errors.Conflict(f'Current gateway ip {subnet["gateway_ip"]} already in use by a port. Unable to update.')
    pools = (subnet | facts)['allocation_pools']
    return {'gateway_ip': gateway, 'allocation_pools': addresses.check_pools(network, pools, gateway)}


def _resolvers_and_routes(network: addresses.IPNetwork, facts: Document) -> Document:
    """The given name servers and routes in canonical form; raises Invalid for one of the other IP version."""
    given: Document = {}
    if 'dns_nameservers' in facts:
        servers = [addresses.parse_address(text, 'dns_nameservers') for text in facts['dns_nameservers']]
        _check_versions(network, 'dns_nameserver', servers)
        given['dns_nameservers'] = [str(server) for server in servers]
    if 'host_routes' in facts:
        routes = parse_routes(facts['host_routes'], 'host_routes')
        for name in ('destination', 'nexthop'):
            _check_versions(network, name, [ipaddress.ip_interface(route[name]) for route in routes])
        given['host_routes'] = routes
    for name, values in given.items():
        check_unique(name, values)
    return given


def check_unique(field: str, values: list[Any]) -> None:
    for value in values:
        if values.count(value) > 1:
            raise addresses.invalid(field, value, 'is given more than once')


def _check_versions(network: addresses.IPNetwork, name: str, given: Iterable[addresses.IPAddress]) -> None:
    for address in given:
        if address.version != network.version:
            raise errors.Invalid(
                f"Invalid input for operation: {name} '{address}' does not match the ip_version '{network.version}'."
            )


def parse_routes(routes: list[Document], field: str) -> list[Document]:
    """Routes in canonical form: {'destination': CIDR, 'nexthop': address}."""
    return [
        {
            'destination': str(addresses.parse_cidr(route['destination'], field)),
            'nexthop': str(addresses.parse_address(route['nexthop'], field)),
        }
        for route in routes
    ]
