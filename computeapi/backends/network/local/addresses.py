"""Giving addresses to ports, never one address twice.

Who gives addresses of a network holds the lock on the network's row.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from computeapi import errors
from computeapi.backends.network.local import addressing
from computeapi.db import ports
from computeapi.db.network_collection import Document, Work
from computeapi.db.networks import subnets_of

FIRST_LOOK = 64


def allocate(work: Work, port: Document, wanted: Iterable[Mapping[str, Any]] | None) -> None:
    """Give the port the addresses that are wanted: of each a subnet_id, an ip_address or both, or else an ip_version.

    None means one of each IP version that the network has.
    """
    subnets = subnets_of(work, [port['network_id']])
    if wanted is None:
        _allocate_usual(work, port, subnets)
        return
    for want in wanted:
        _allocate_wanted(work, port, subnets, want)


def _allocate_usual(work: Work, port: Document, subnets: list[Document]) -> None:
    for version in (4, 6):
        managed = [s for s in subnets if s['ip_version'] == version and not addressing.is_stateless(s)]
        if managed:
            _allocate_from(work, port, managed)
    for subnet in subnets:
        if addressing.is_stateless(subnet):
            _give(work, port, subnet, addressing.eui64(subnet['cidr'], port['mac_address']))


def _allocate_wanted(work: Work, port: Document, subnets: list[Document], want: Mapping[str, Any]) -> None:
    candidates = _candidates(port, subnets, want)
    if 'ip_address' in want:
        _give_chosen(work, port, candidates, want['ip_address'])
    elif candidates and addressing.is_stateless(candidates[0]):
        _give(work, port, candidates[0], addressing.eui64(candidates[0]['cidr'], port['mac_address']))
    else:
        _allocate_from(work, port, candidates)


def _candidates(port: Document, subnets: list[Document], want: Mapping[str, Any]) -> list[Document]:
    wanted = {'id': want.get('subnet_id'), 'ip_version': want.get('ip_version')}
    chosen = {name: value for name, value in wanted.items() if value is not None}
    candidates = [subnet for subnet in subnets if chosen.items() <= subnet.items()]
    if 'id' in chosen and not candidates:
        reason = f'subnet {chosen["id"]} is not on network {port["network_id"]}'
        raise errors.Invalid(f'Invalid input for fixed_ips. Reason: {reason}.')
    return candidates


def _give_chosen(work: Work, port: Document, subnets: list[Document], text: str) -> None:
    address = addressing.parse_address(text)
    for subnet in subnets:
        if addressing.is_host(addressing.parse_cidr(subnet['cidr']), address):
            _give(work, port, subnet, str(address))
            return
    raise errors.Invalid(f'IP address {address} is not a valid IP for any of the subnets on the specified network.')


def _give(work: Work, port: Document, subnet: Document, address: str) -> None:
    if ports.taken_addresses(work, subnet['id'], [address]):
        raise errors.AddressInUse(address=address, subnet_id=subnet['id'])
    ports.add_fixed_ip(work, port['id'], subnet['id'], address)


def _allocate_from(work: Work, port: Document, subnets: list[Document]) -> None:
    """An address of the first of the subnets that has one to give."""
    for subnet in subnets:
        address = _free_address(work, subnet)
        if address is not None:
            ports.add_fixed_ip(work, port['id'], subnet['id'], address)
            ports.set_last_address(work, subnet['id'], address)
            return
    raise errors.NoMoreAddresses(f'No more IP addresses available on network {port["network_id"]}.')


def _free_address(work: Work, subnet: Document) -> str | None:
    """Mostly found among the next few; only a crowded subnet is read as a whole."""
    last = ports.last_address(work, subnet['id'])
    next_ones = list(islice(_addresses(subnet, last), FIRST_LOOK))
    taken = ports.taken_addresses(work, subnet['id'], next_ones)
    free = [address for address in next_ones if address not in taken]
    if free:
        return free[0]
    taken = ports.taken_addresses(work, subnet['id'])
    return next((address for address in _addresses(subnet, last) if address not in taken), None)


def _addresses(subnet: Mapping[str, Any], last: str | None) -> Iterator[str]:
    return addressing.after(subnet['allocation_pools'], last)
