"""The addresses of subnets as administrators manage them: reserved, or used as floating IP pools."""

from collections.abc import Collection, Iterable

import sqlalchemy as sa

from computeapi.db.network_collection import Document, Work
from computeapi.db.networks import NETWORKS, SUBNETS
from computeapi.db.records import upsert
from computeapi.db.tables.network import fixed_ips, reserved_addresses, subnets


def reserve(work: Work, subnet_ids: Iterable[str], address: str) -> None:
    upsert(work.connection, reserved_addresses, [{'subnet_id': each, 'ip_address': address} for each in subnet_ids])


def unreserve(work: Work, subnet_ids: Collection[str], address: str) -> None:
    reserved = reserved_addresses.c
    there = (reserved.ip_address == address, reserved.subnet_id.in_(subnet_ids))
    work.connection.execute(reserved_addresses.delete().where(*there))


def reserving(work: Work, subnet_ids: Collection[str], address: str) -> set[str]:
    """Those of the subnets in which the address is reserved."""
    reserved = reserved_addresses.c
    there = (reserved.ip_address == address, reserved.subnet_id.in_(subnet_ids))
    return set(work.connection.scalars(sa.select(reserved.subnet_id).where(*there)))


def taken(work: Work, subnet_ids: Collection[str]) -> dict[str, set[str]]:
    """By subnet, the addresses that ports have or that are reserved."""
    tables = (fixed_ips, reserved_addresses)
    found = (sa.select(each.c.subnet_id, each.c.ip_address).where(each.c.subnet_id.in_(subnet_ids)) for each in tables)
    addresses: dict[str, set[str]] = {subnet_id: set() for subnet_id in subnet_ids}
    for subnet_id, address in work.connection.execute(sa.union(*found)):
        addresses[subnet_id].add(address)
    return addresses


def floating_subnets(work: Work) -> list[Document]:
    """The IPv4 subnets of external networks, each with the name of its `pool` and its `interface`."""
    pools = {network['id']: network['name'] for network in NETWORKS.find(work, external=True)}
    found = SUBNETS.find(work.elevated(), network_id=list(pools), ip_version=4)
    interfaces = _interfaces(work, [subnet['id'] for subnet in found])
    return [{**subnet, 'pool': pools[subnet['network_id']], 'interface': interfaces[subnet['id']]} for subnet in found]


def _interfaces(work: Work, subnet_ids: Collection[str]) -> dict[str, str | None]:
    rows = work.connection.execute(sa.select(subnets.c.id, subnets.c.interface).where(subnets.c.id.in_(subnet_ids)))
    return {row.id: row.interface for row in rows}


def set_interface(work: Work, subnet_id: str, interface: str | None) -> None:
    work.connection.execute(subnets.update().where(subnets.c.id == subnet_id).values(interface=interface))
