"""IP and MAC addresses: parsing, counting and allocation; no address is allocated twice.

A transaction that allocates addresses of a network holds the lock on the network's row.
"""

import ipaddress
import re
import socket
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from computeapi import errors, randomness
from computeapi.db import ports
from computeapi.db.network_collection import Document, Work
from computeapi.db.networks import ranges_on

IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network
IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IPInterface = ipaddress.IPv4Interface | ipaddress.IPv6Interface

MAC_PREFIX = 'fa:16:3e'
MAC = re.compile(r'([0-9a-f]{2}:){5}[0-9a-f]{2}')

STATELESS = ('slaac', 'dhcpv6-stateless')

LOOKS = (1, 64)
"""How many of the next addresses are checked, in turn, before all addresses of a crowded subnet are read."""


def invalid(field: str, value: object, reason: str) -> errors.Invalid:
    return errors.Invalid(f"Invalid input for {field}. Reason: '{str(value)[:64]}' {reason}.")


def parse_cidr(text: str, field: str = 'cidr') -> IPNetwork:
    """The network that the text denotes; bits beyond the prefix are dropped."""
    try:
        if '/' not in text:
            raise ValueError(text)
        return ipaddress.ip_network(_without_scope(text), strict=False)
    except ValueError:
        raise invalid(field, text, 'is not a valid IP subnet') from None


def parse_address(text: str, field: str = 'ip_address') -> IPAddress:
    try:
        return ipaddress.ip_address(_without_scope(text))
    except ValueError:
        raise invalid(field, text, 'is not a valid IP address') from None


def parse_prefix(text: str, field: str) -> IPInterface:
    """An address with its prefix length, which defaults to the full length of the address."""
    try:
        return ipaddress.ip_interface(_without_scope(text))
    except ValueError:
        raise invalid(field, text, 'is not a CIDR') from None


def _without_scope(text: str) -> str:
    """The text; raises ValueError for a scope ("fe80::1%eth0"), which is meaningful on one host only."""
    if '%' in text:
        raise ValueError(text)
    return text


def parse_mac(text: str) -> str:
    mac = text.lower().replace('-', ':')
    if not MAC.fullmatch(mac):
        raise invalid('mac_address', text, 'is not a valid MAC address')
    return mac


def random_mac() -> str:
    tail = randomness.bits(24).to_bytes(3, 'big')
    return f'{MAC_PREFIX}:{tail.hex(":")}'


def eui64(cidr: str, mac_address: str) -> str:
    """The address that a device configures by SLAAC."""
    octets = bytes.fromhex(mac_address.replace(':', ''))
    interface = bytes([octets[0] ^ 2]) + octets[1:3] + b'\xff\xfe' + octets[3:]
    network = ipaddress.IPv6Network(cidr)
    return str(network.network_address + int.from_bytes(interface, 'big'))


def is_stateless(subnet: Mapping[str, Any]) -> bool:
    """Whether devices on the subnet choose their own addresses."""
    return subnet['ipv6_address_mode'] in STATELESS


def hosts(network: IPNetwork) -> tuple[int, int]:
    """The first and the last address that a host may have."""
    first, last = int(network.network_address), int(network.broadcast_address)
    if network.num_addresses > 2:
        first += 1
        # IPv6 has no broadcast address.
        last -= network.version == 4
    return first, last


def is_host(network: IPNetwork, address: IPAddress) -> bool:
    first, last = hosts(network)
    return address.version == network.version and first <= int(address) <= last


def first_host(network: IPNetwork) -> str:
    return str(type(network.network_address)(hosts(network)[0]))


def default_pools(network: IPNetwork, gateway: str | None) -> list[dict[str, str]]:
    """All host addresses except the gateway."""
    first, last = hosts(network)
    if gateway is None or not first <= (skipped := int(ipaddress.ip_address(gateway))) <= last:
        ranges = [(first, last)]
    else:
        ranges = [(first, skipped - 1), (skipped + 1, last)]
    make = type(network.network_address)
    return [{'start': str(make(start)), 'end': str(make(end))} for start, end in ranges if start <= end]


def check_pools(network: IPNetwork, pools: Iterable[Mapping[str, str]], gateway: str | None) -> list[dict[str, str]]:
    """The pools, sorted and in canonical form; raises Invalid or Conflict if they do not fit the subnet."""
    ranges = sorted((_check_range(network, pool) for pool in pools), key=lambda ends: int(ends[0]))
    for (_, end), (start, _) in zip(ranges, ranges[1:], strict=False):
        if int(start) <= int(end):
            raise errors.Conflict(f'Found overlapping allocation pools at {start} for subnet {network}.')
    check_gateway_outside(ranges, gateway)
    return [{'start': str(start), 'end': str(end)} for start, end in ranges]


def _check_range(network: IPNetwork, pool: Mapping[str, str]) -> tuple[IPAddress, IPAddress]:
    start = parse_address(pool['start'], 'allocation_pools')
    end = parse_address(pool['end'], 'allocation_pools')
    if not (is_host(network, start) and is_host(network, end) and int(start) <= int(end)):
        raise invalid('allocation_pools', f'{start}-{end}', f'is not a range within {network}')
    return start, end


def check_gateway_outside(ranges: Iterable[tuple[IPAddress, IPAddress]], gateway: str | None) -> None:
    for start, end in ranges:
        if gateway is not None and int(start) <= int(ipaddress.ip_address(gateway)) <= int(end):
            raise errors.Conflict(f'Gateway ip {gateway} conflicts with allocation pool {start}-{end}.')


def after(pools: Iterable[Mapping[str, str]], last: str | None) -> Iterator[str]:
    """Every address of the pools once, starting after `last` and wrapping around."""
    turn = -1 if last is None else int(ipaddress.ip_address(last))
    ranges = [(ipaddress.ip_address(pool['start']), ipaddress.ip_address(pool['end'])) for pool in pools]
    for start, end in ranges:
        yield from _texts(start.version, max(int(start), turn + 1), int(end))
    for start, end in ranges:
        yield from _texts(start.version, int(start), min(int(end), turn))


def _texts(version: int, first: int, last: int) -> Iterator[str]:
    """The addresses between two numbers, inclusive; inet_ntoa formats IPv4 addresses much faster than ipaddress
    does."""
    for number in range(first, last + 1):
        yield socket.inet_ntoa(number.to_bytes(4, 'big')) if version == 4 else str(ipaddress.IPv6Address(number))


# ------------------------------------------------------------------ allocation for ports


def allocate(
    work: Work, port: Document, wanted: Iterable[Mapping[str, Any]] | None, held: Iterable[Document] = ()
) -> None:
    """Allocate the wanted addresses for the port. Each has a subnet_id, an ip_address or both, or else an ip_version.

    None means one address of each IP version that the network has.  held: the addresses that the port has already.
    Beside these it has an address on each subnet where devices choose their own.
    """
    subnets = ranges_on(work, port['network_id'])
    chosen = {subnet['id']: own_address(port, subnet) for subnet in subnets if chooses(port, subnet)}
    if wanted is None:
        versions = {subnet['ip_version'] for subnet in subnets if subnet['id'] not in chosen}
        wanted = [{'ip_version': version} for version in sorted(versions)]
    for want in wanted:
        _allocate_wanted(work, port, _candidates(port, subnets, want), want, chosen)
    there = {fixed['subnet_id'] for fixed in held}
    for subnet in subnets:
        if subnet['id'] in chosen.keys() - there:
            _give(work, port, subnet, chosen[subnet['id']])


def chooses(port: Mapping[str, Any], subnet: Mapping[str, Any]) -> bool:
    """Whether the port's device chooses its own address on the subnet; a router has the one that others know."""
    return is_stateless(subnet) and port.get('device_owner') != ports.ROUTER_INTERFACE


def own_address(port: Mapping[str, Any], subnet: Mapping[str, Any]) -> str:
    """The address that the port's device chooses on the subnet."""
    return eui64(subnet['cidr'], port['mac_address'])


def _allocate_wanted(
    work: Work, port: Document, candidates: list[Document], want: Mapping[str, Any], chosen: Mapping[str, str]
) -> None:
    """chosen: the addresses that the device chooses, by subnet; they are given to the port later."""
    managed = [subnet for subnet in candidates if subnet['id'] not in chosen]
    if 'ip_address' in want:
        _give_wanted(work, port, candidates, want['ip_address'], chosen)
    elif managed or not candidates:
        _allocate_from(work, port, managed)


def _candidates(port: Document, subnets: list[Document], want: Mapping[str, Any]) -> list[Document]:
    wanted = {'id': want.get('subnet_id'), 'ip_version': want.get('ip_version')}
    chosen = {name: value for name, value in wanted.items() if value is not None}
    candidates = [subnet for subnet in subnets if chosen.items() <= subnet.items()]
    if 'id' in chosen and not candidates:
        reason = f'subnet {chosen["id"]} is not on network {port["network_id"]}'
        raise errors.Invalid(f'Invalid input for fixed_ips. Reason: {reason}.')
    return candidates


def _give_wanted(work: Work, port: Document, subnets: list[Document], text: str, chosen: Mapping[str, str]) -> None:
    address = parse_address(text)
    for subnet in subnets:
        if is_host(parse_cidr(subnet['cidr']), address):
            if chosen.get(subnet['id'], str(address)) != str(address):
                raise errors.Invalid(
                    f'IPv6 address {address} can not be directly assigned to a port on subnet {subnet["id"]} as the '
                    f'subnet is configured for automatic addresses.'
                )
            if subnet['id'] not in chosen:
                _give(work, port, subnet, str(address))
            return
    raise errors.Invalid(f'IP address {address} is not a valid IP for any of the subnets on the specified network.')


def _give(work: Work, port: Document, subnet: Document, address: str) -> None:
    if ports.taken_addresses(work, subnet['id'], [address]):
        raise errors.AddressInUse(address=address, subnet_id=subnet['id'])
    ports.add_fixed_ip(work, port['id'], subnet['id'], address)


def _allocate_from(work: Work, port: Document, subnets: list[Document]) -> None:
    """Allocates an address from the first of the subnets that has a free one."""
    for subnet in subnets:
        address = _free_address(work, subnet)
        if address is not None:
            ports.add_fixed_ip(work, port['id'], subnet['id'], address)
            ports.set_last_address(work, subnet['id'], address)
            subnet['last_address'] = address
            return
    raise errors.NoMoreAddresses(f'No more IP addresses available on network {port["network_id"]}.')


def _free_address(work: Work, subnet: Document) -> str | None:
    """A free address, usually the next one; all addresses are read only if the subnet is crowded."""
    last = _drawn_address(subnet) if randomness.is_repeatable() else subnet['last_address']
    for count in LOOKS:
        next_ones = list(islice(after(subnet['allocation_pools'], last), count))
        taken = ports.taken_addresses(work, subnet['id'], next_ones)
        for address in next_ones:
            if address not in taken:
                return address
    taken = ports.taken_addresses(work, subnet['id'])
    return next((address for address in after(subnet['allocation_pools'], last) if address not in taken), None)


def _drawn_address(subnet: Mapping[str, Any]) -> str | None:
    """A random position in the pools: the next address in turn would depend on the order of other requests."""
    pools = subnet['allocation_pools']
    if not pools:
        return None
    first, last = ipaddress.ip_address(pools[0]['start']), ipaddress.ip_address(pools[-1]['end'])
    return str(first + randomness.below(int(last) - int(first) + 1))
