"""Rules for the addresses that floating IPs can have: the allocation pools of external networks."""

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv4Network
from itertools import islice

from computeapi import errors
from computeapi.backends.network.local import addresses, floating_ips, networks, subnets
from computeapi.backends.network.local.topology import PUBLIC
from computeapi.backends.network.nova_network import PoolAddress
from computeapi.db import ports, routers, subnet_addresses
from computeapi.db.network_collection import Document, Work
from computeapi.db.networks import NETWORKS, SUBNETS
from computeapi.db.routers import FLOATING_IPS

Range = tuple[int, int]
"""The first and the last address of a range, as numbers."""

# Smaller ranges must be given as single addresses; larger ones are taken for a mistake.
PREFIXES = range(13, 31)


def find(work: Work, host: str | None, limit: int) -> list[PoolAddress]:
    """The addresses of floating IPs and then the free ones; with a host, only those of floating IPs that lead to it."""
    around = subnet_addresses.floating_subnets(work)
    if host is not None:
        return [_held(each, around) for each in routers.floating_ips_on(work, host)[:limit]]
    held = [_held(each, around) for each in FLOATING_IPS.find(work)[:limit]]
    return [*held, *islice(_free(work, around), limit - len(held))]


def add(work: Work, text: str, pool: str | None, interface: str | None) -> str:
    """Returns the name of the pool."""
    wanted = _parse(text)
    _check_new(work, wanted)
    network = _pool(work, pool)
    NETWORKS.lock(work, network['id'])
    subnet_id = _widen(work, network, wanted) or _add_subnet(work, network, wanted)
    subnet_addresses.set_interface(work, subnet_id, interface)
    return str(network['name'])


def remove(work: Work, text: str) -> set[str]:
    """Also deletes the floating IPs with these addresses; returns the devices that they led to."""
    gone = addresses.hosts(_parse(text))
    lost = [each for each in FLOATING_IPS.find(work) if gone[0] <= _number(each['floating_ip_address']) <= gone[1]]
    floating_ips.remove(work, [each['id'] for each in lost])
    for subnet in subnet_addresses.floating_subnets(work):
        _shrink(work, subnet, gone)
    return {each['port_details']['device_id'] for each in lost if each['port_details']} - {''}


def _parse(text: str) -> IPv4Network:
    """The network that the text denotes; a single address is one, too."""
    network = addresses.parse_prefix(text, 'ip_range').network
    if not isinstance(network, IPv4Network):
        raise addresses.invalid('ip_range', text, 'is not IPv4')
    if '/' in text and network.prefixlen not in PREFIXES:
        raise addresses.invalid('ip_range', text, f'must have a prefix of /{PREFIXES[0]} to /{PREFIXES[-1]}')
    return network


def _number(address: str) -> int:
    return int(IPv4Address(address))


def _ranges(subnet: Document) -> list[Range]:
    return [(_number(pool['start']), _number(pool['end'])) for pool in subnet['allocation_pools']]


def _pools(ranges: Iterable[Range]) -> list[Document]:
    return [{'start': str(IPv4Address(first)), 'end': str(IPv4Address(last))} for first, last in ranges]


def _held(floating_ip: Document, around: Iterable[Document]) -> PoolAddress:
    address = IPv4Address(floating_ip['floating_ip_address'])
    beside = (each for each in around if each['network_id'] == floating_ip['floating_network_id'])
    subnet = next(each for each in beside if address in IPv4Network(each['cidr']))
    return PoolAddress(
        address=str(address),
        pool=subnet['pool'],
        interface=subnet['interface'],
        project_id=floating_ip['project_id'],
        fixed_address=floating_ip['fixed_ip_address'],
        server_id=(floating_ip['port_details'] or {}).get('device_id') or None,
    )


def _free(work: Work, around: Iterable[Document]) -> Iterator[PoolAddress]:
    taken = subnet_addresses.taken(work, [subnet['id'] for subnet in around])
    for subnet in around:
        for address in addresses.after(subnet['allocation_pools'], None):
            if address not in taken[subnet['id']]:
                yield PoolAddress(address, subnet['pool'], subnet['interface'])


def _check_new(work: Work, wanted: IPv4Network) -> None:
    """Raises Conflict if floating IPs can already have one of the addresses."""
    first, last = addresses.hosts(wanted)
    for subnet in subnet_addresses.floating_subnets(work):
        for start, end in _ranges(subnet):
            if max(start, first) <= min(end, last):
                raise errors.Conflict(f'Floating IP {IPv4Address(max(start, first))} already exists.')


def _pool(work: Work, wanted: str | None) -> Document:
    """The external network of that name or ID, or the first one; it is created if there is none."""
    for network in NETWORKS.find(work, external=True):
        if wanted in (None, network['id'], network['name']):
            return network
    return NETWORKS.get(work, networks.create(work, {'name': wanted or PUBLIC, 'router:external': True}))


def _widen(work: Work, network: Document, wanted: IPv4Network) -> str | None:
    """Adds the addresses to the pools of the subnet that contains them; returns its ID, or None if there is none."""
    for subnet in SUBNETS.find(work.elevated(), network_id=network['id'], ip_version=4):
        around = IPv4Network(subnet['cidr'])
        if wanted.subnet_of(around):
            pools = [*subnet['allocation_pools'], *_pools([addresses.hosts(wanted)])]
            SUBNETS.update(
                work,
                subnet['id'],
                {'allocation_pools': addresses.check_pools(around, pools, subnet['gateway_ip'])},
            )
            return str(subnet['id'])
    return None


def _add_subnet(work: Work, network: Document, wanted: IPv4Network) -> str:
    facts = {'network_id': network['id'], 'project_id': network['project_id']}
    return subnets.create(work, {**facts, 'cidr': str(wanted), 'gateway_ip': None, 'enable_dhcp': False})


def _shrink(work: Work, subnet: Document, gone: Range) -> None:
    """Removes the addresses from the subnet's pools; a subnet with no pools, gateway or ports left is deleted."""
    before = _ranges(subnet)
    left = [part for each in before for part in _without(each, gone)]
    if left == before:
        return
    NETWORKS.lock(work, subnet['network_id'])
    if left or subnet['gateway_ip'] or ports.subnet_is_used(work, subnet['id']):
        SUBNETS.update(work, subnet['id'], {'allocation_pools': _pools(left)})
    else:
        SUBNETS.delete(work, id=subnet['id'])


def _without(whole: Range, gone: Range) -> list[Range]:
    """The parts of the first range before and after the second."""
    parts = [(whole[0], min(whole[1], gone[0] - 1)), (max(whole[0], gone[1] + 1), whole[1])]
    return [(first, last) for first, last in parts if first <= last]
