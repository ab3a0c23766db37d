"""Ports, their addresses and their security groups."""

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import sqlalchemy as sa

from computeapi import errors
from computeapi.context import Context
from computeapi.db import qos
from computeapi.db.listing import Clause
from computeapi.db.network_collection import Collection, Document, Work, ids_of
from computeapi.db.ownership import own_rows
from computeapi.db.records import Among, grouped, insertion
from computeapi.db.tables.network import (
    fixed_ips,
    floating_ips,
    networks,
    port_security_groups,
    ports,
    reserved_addresses,
    subnets,
)

FLOATING_IP = 'network:floatingip'
ROUTER_GATEWAY = 'network:router_gateway'
ROUTER_INTERFACE = 'network:router_interface'

FIXED_IP_FILTER = re.compile(r'(ip_address|ip_address_substr|subnet_id)=(.{1,64})')
MAX_PARTS = 100
"""Each part adds to the depth of the statement, which SQLite limits."""

RELATIONS_OF = Among(
    sa.select(fixed_ips.c.port_id, fixed_ips.c.subnet_id, fixed_ips.c.ip_address, fixed_ips.c.id.label('number')),
    fixed_ips.c.port_id,
    (
        sa.select(*port_security_groups.c['port_id', 'security_group_id'], sa.null(), sa.null()),
        port_security_groups.c.port_id,
    ),
)
"""The addresses of ports, and, in rows without an address, their security groups."""
ON_NETWORK = ports.c.network_id == sa.bindparam('network')
MAC_IS_TAKEN = sa.select(sa.exists().where(ON_NETWORK, ports.c.mac_address == sa.bindparam('mac')))
GIVEN_LAST = sa.update(subnets).where(subnets.c.id == sa.bindparam('subnet'))


def _add_relations(work: Work, documents: list[Document]) -> None:
    addresses, groups = _relations(work, ids_of(documents))
    resources = qos.asked_resources(work, set(map(_policy_of, documents)))
    for document in documents:
        document['binding:vif_details'] = {'port_filter': True} if document['binding:vif_type'] == 'ovs' else {}
        document['fixed_ips'] = addresses.get(document['id'], [])
        document['security_groups'] = groups.get(document['id'], [])
        requested = resources.get(_policy_of(document))
        document['resource_request'] = requested and qos.resource_request(requested, document['binding:vnic_type'])


def _policy_of(port: Document) -> str | None:
    policy_id: str | None = port['qos_policy_id'] or port['qos_network_policy_id']
    return policy_id


def _relations(work: Work, port_ids: list[str]) -> tuple[dict[str, list[Document]], dict[str, list[str]]]:
    """By port, the addresses in the order in which they were assigned, and the IDs of the security groups."""
    rows = RELATIONS_OF.rows(work.connection, port_ids)
    given = sorted((row for row in rows if row[3] is not None), key=lambda row: row[3])
    joined = sorted((group_id, port_id) for port_id, group_id, _, number in rows if number is None)
    return (
        grouped((port_id, {'subnet_id': subnet_id, 'ip_address': address}) for port_id, subnet_id, address, _ in given),
        grouped((port_id, group_id) for group_id, port_id in joined),
    )


def _holds_fixed_ips(values: list[str]) -> Clause:
    """The filter fixed_ips=ip_address=A (or ip_address_substr=A, subnet_id=S); several of a kind match any of them."""
    wanted: dict[str, list[str]] = {}
    for value in values:
        match = FIXED_IP_FILTER.fullmatch(value)
        if not match:
            raise errors.Invalid("Invalid input for fixed_ips. Reason: it must be 'ip_address=A' or 'subnet_id=S'.")
        wanted.setdefault(match[1], []).append(match[2])
    if len(wanted.get('ip_address_substr', ())) > MAX_PARTS:
        raise errors.Invalid(f'Invalid input for fixed_ips. Reason: at most {MAX_PARTS} parts of addresses are found.')
    parts = [fixed_ips.c.ip_address.contains(text, autoescape=True) for text in wanted.pop('ip_address_substr', ())]
    held = [fixed_ips.c[key].in_(texts) for key, texts in wanted.items()] + ([sa.or_(*parts)] if parts else [])
    return sa.and_(*(ports.c.id.in_(sa.select(fixed_ips.c.port_id).where(each)) for each in held))


def _in_groups(ids: list[str]) -> Clause:
    held = port_security_groups
    return ports.c.id.in_(sa.select(held.c.port_id).where(held.c.security_group_id.in_(ids)))


def _visible(context: Context) -> Clause:
    """One's own, and those on one's own networks."""
    mine = sa.select(networks.c.id).where(own_rows(networks, context))
    return sa.or_(own_rows(ports, context), ports.c.network_id.in_(mine))


# Ports of the network itself are active without being bound to a host.
STATUS = sa.case(
    (ports.c.device_owner == FLOATING_IP, 'N/A'),
    (ports.c.admin_state_up.is_(False), 'DOWN'),
    (ports.c.device_owner.like('network:%'), 'ACTIVE'),
    (sa.and_(ports.c.device_id != '', ports.c.host != ''), 'ACTIVE'),
    else_='DOWN',
)

PORTS = Collection(
    ports,
    errors.PortNotFound,
    renamed={'vnic_type': 'binding:vnic_type', 'host': 'binding:host_id', 'binding_profile': 'binding:profile'},
    attributes={
        'status': STATUS,
        'binding:vif_type': sa.case((ports.c.host != '', 'ovs'), else_='unbound'),
        'qos_network_policy_id': (
            sa.select(networks.c.qos_policy_id).where(networks.c.id == ports.c.network_id).scalar_subquery()
        ),
    },
    visible=_visible,
    complete=_add_relations,
    filters={'fixed_ips': _holds_fixed_ips, 'security_groups': _in_groups},
)


def ports_of_routers(work: Work, router_ids: Iterable[str], owner: str) -> list[Document]:
    """The gateways or the interfaces of routers, regardless of the caller's access."""
    return PORTS.find(work.elevated(), device_id=list(router_ids), device_owner=owner)


# By kind of resource, the condition for ports that a change of the resource with this ID affects.
AFFECTED: dict[str, Callable[[str], Clause]] = {
    'ports': lambda port_id: ports.c.id == port_id,
    'networks': lambda network_id: ports.c.network_id == network_id,
    'floatingips': lambda id: ports.c.id.in_(sa.select(floating_ips.c.port_id).where(floating_ips.c.id == id)),
    'security-groups': lambda group_id: _in_groups([group_id]),
}
# The same for its deletion.
AFFECTED_BY_END: dict[str, Callable[[str], Clause]] = {
    **AFFECTED,
    'subnets': lambda id: ports.c.id.in_(sa.select(fixed_ips.c.port_id).where(fixed_ips.c.subnet_id == id)),
}


def servers_on(work: Work, kind: str, resource_id: str, *, ending: bool = False) -> set[str]:
    """The servers whose ports are affected by a change of this resource, or by its deletion."""
    affected = (AFFECTED_BY_END if ending else AFFECTED).get(kind)
    if affected is None:
        return set()
    of_projects = (ports.c.device_id != '', ports.c.device_owner.not_like('network:%'))
    return set(work.connection.scalars(sa.select(ports.c.device_id).where(*of_projects, affected(resource_id))))


def network_has_ports(work: Work, network_id: str) -> bool:
    there = sa.exists().where(ports.c.network_id == network_id)
    return bool(work.connection.scalar(sa.select(there)))


def mac_is_taken(work: Work, network_id: str, mac_address: str) -> bool:
    return bool(work.connection.scalar(MAC_IS_TAKEN, {'network': network_id, 'mac': mac_address}))


def take_port(work: Work, port_id: str, device_id: str, facts: Document) -> bool:
    """Attach the port to a device atomically; False if another device has it."""
    free = ports.c.device_id.in_(['', device_id])
    revision = ports.c.revision_number + 1
    values = {'device_id': device_id, 'updated_at': work.clock(), 'revision_number': revision, **facts}
    return bool(work.connection.execute(ports.update().where(ports.c.id == port_id, free).values(values)).rowcount)


def set_security_groups(work: Work, port_id: str, group_ids: Iterable[str]) -> None:
    work.connection.execute(port_security_groups.delete().where(port_security_groups.c.port_id == port_id))
    add_security_groups(work, port_id, group_ids)


def add_security_groups(work: Work, port_id: str, group_ids: Iterable[str]) -> None:
    """Add security groups to a port that has none."""
    rows = [{'port_id': port_id, 'security_group_id': group_id} for group_id in sorted(set(group_ids))]
    if rows:
        work.connection.execute(insertion(port_security_groups), rows)


def held_addresses(work: Work, subnet_id: str, among: Sequence[str] | None = None) -> set[str]:
    """The addresses that ports hold."""
    return _addresses(work, (fixed_ips,), subnet_id, among)


def taken_addresses(work: Work, subnet_id: str, among: Sequence[str] | None = None) -> set[str]:
    """The addresses that are not available: ports hold them, or they are reserved."""
    return _addresses(work, (fixed_ips, reserved_addresses), subnet_id, among)


def _addresses(work: Work, tables: tuple[sa.Table, ...], subnet_id: str, among: Sequence[str] | None) -> set[str]:
    parameters: dict[str, object] = {'subnet': subnet_id}
    if among is not None:
        parameters['wanted'] = among[0] if len(among) == 1 else list(among)
    return set(work.connection.scalars(_in_subnet(tables, None if among is None else len(among) == 1), parameters))


@functools.cache
def _in_subnet(tables: tuple[sa.Table, ...], one: bool | None) -> sa.CompoundSelect[tuple[str]]:
    """The addresses of a subnet in these tables: all (None), or one wanted address, or several."""
    several = []
    wanted: sa.BindParameter[Any] = sa.bindparam('wanted', expanding=one is False)
    for table in tables:
        address = table.c.ip_address
        statement = sa.select(address).where(table.c.subnet_id == sa.bindparam('subnet'))
        if one is not None:
            statement = statement.where(address == wanted if one else address.in_(wanted))
        several.append(statement)
    return sa.union_all(*several)


def set_last_address(work: Work, subnet_id: str, address: str) -> None:
    work.connection.execute(GIVEN_LAST, {'subnet': subnet_id, 'last_address': address})


def add_fixed_ip(work: Work, port_id: str, subnet_id: str, address: str) -> None:
    given = {'port_id': port_id, 'subnet_id': subnet_id, 'ip_address': address}
    work.connection.execute(insertion(fixed_ips), given)


def remove_fixed_ip(work: Work, port_id: str, address: str) -> None:
    work.connection.execute(fixed_ips.delete().where(fixed_ips.c.port_id == port_id, fixed_ips.c.ip_address == address))


def subnet_is_used(work: Work, subnet_id: str, owner: str | None = None) -> bool:
    """Whether ports have addresses on it; *owner*: only ports with this device owner."""
    there = [fixed_ips.c.subnet_id == subnet_id]
    if owner is not None:
        there.append(fixed_ips.c.port_id.in_(sa.select(ports.c.id).where(ports.c.device_owner == owner)))
    return bool(work.connection.scalar(sa.select(sa.exists().where(*there))))


def remove_addresses_on(work: Work, subnet_id: str) -> None:
    work.connection.execute(fixed_ips.delete().where(fixed_ips.c.subnet_id == subnet_id))
