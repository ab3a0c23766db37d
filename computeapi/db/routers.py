"""Routers and floating IPs, which connect a project's networks to external ones."""

from collections.abc import Iterable

import sqlalchemy as sa

from computeapi import errors
from computeapi.db.listing import Clause
from computeapi.db.network_collection import Collection, Document, Work, ids_of
from computeapi.db.ports import PORTS, ROUTER_GATEWAY, ROUTER_INTERFACE, ports_of_routers
from computeapi.db.records import Among
from computeapi.db.tables.network import fixed_ips, floating_ips, networks, ports, routers

PORT_DETAILS = ('name', 'network_id', 'mac_address', 'admin_state_up', 'status', 'device_id', 'device_owner')


def _add_gateways(work: Work, documents: list[Document]) -> None:
    gateways = {port['device_id']: port for port in ports_of_routers(work, ids_of(documents), ROUTER_GATEWAY)}
    for document in documents:
        enable_snat = document.pop('enable_snat')
        gateway = gateways.get(document['id'])
        document['external_gateway_info'] = gateway and {
            'network_id': gateway['network_id'],
            'enable_snat': enable_snat,
            'external_fixed_ips': gateway['fixed_ips'],
        }


def _add_ports_and_routers(work: Work, documents: list[Document]) -> None:
    ids = {document['port_id'] for document in documents} - {None}
    found = {port['id']: port for port in PORTS.find(work.elevated(), id=ids)} if ids else {}
    held = [(port['id'], each) for port in found.values() for each in port['fixed_ips']]
    subnets = {(port_id, each['ip_address']): each['subnet_id'] for port_id, each in held}
    leading = _leading_routers(work, {document['floating_network_id'] for document in documents}, {*subnets.values()})
    for document in documents:
        port = found.get(document['port_id'])
        document['port_details'] = port and {name: port[name] for name in PORT_DETAILS}
        subnet_id = subnets.get((document['port_id'], document['fixed_ip_address']), '')
        document['router_id'] = leading.get((document['floating_network_id'], subnet_id))


def _paths() -> sa.Subquery:
    """The routers that lead from external networks to subnets."""
    gateway, interface, beside = ports.alias(), ports.alias(), fixed_ips.alias()
    return (
        sa.select(gateway.c.network_id, beside.c.subnet_id, interface.c.device_id.label('router_id'))
        .select_from(interface)
        .join(beside, beside.c.port_id == interface.c.id)
        .join(gateway, gateway.c.device_id == interface.c.device_id)
        .where(interface.c.device_owner == ROUTER_INTERFACE, gateway.c.device_owner == ROUTER_GATEWAY)
        .subquery()
    )


def _leading_routers(work: Work, network_ids: set[str], subnet_ids: set[str]) -> dict[tuple[str, str], str]:
    """The routers between external networks and subnets, looked up together: for each floating IP alone, the ports of
    its subnet would be searched once more."""
    if not subnet_ids:
        return {}
    paths = _paths()
    statement = (
        sa.select(paths.c.network_id, paths.c.subnet_id, sa.func.min(paths.c.router_id))
        .where(paths.c.network_id.in_(list(network_ids)), paths.c.subnet_id.in_(list(subnet_ids)))
        .group_by(paths.c.network_id, paths.c.subnet_id)
    )
    found = work.connection.execute(statement)
    return {(network_id, subnet_id): router_id for network_id, subnet_id, router_id in found}


def _leading_router() -> sa.ScalarSelect[str]:
    """The router between a floating IP's network and the subnet of its fixed address."""
    paths = _paths()
    return (
        sa.select(sa.func.min(paths.c.router_id))
        .select_from(paths)
        .join(fixed_ips, fixed_ips.c.subnet_id == paths.c.subnet_id)
        .where(
            paths.c.network_id == floating_ips.c.floating_network_id,
            fixed_ips.c.port_id == floating_ips.c.port_id,
            fixed_ips.c.ip_address == floating_ips.c.fixed_ip_address,
        )
        .correlate(floating_ips)
        .scalar_subquery()
    )


ROUTERS = Collection(
    routers, errors.RouterNotFound, attributes={'status': sa.literal('ACTIVE')}, complete=_add_gateways
)
FLOATING_IPS = Collection(
    floating_ips,
    errors.FloatingIPNotFound,
    attributes={'status': sa.case((floating_ips.c.port_id.is_not(None), 'ACTIVE'), else_='DOWN')},
    complete=_add_ports_and_routers,
    filters={'router_id': lambda router_ids: _leading_router().in_(router_ids)},
)

NOWHERE = {'port_id': None, 'fixed_ip_address': None}


AROUND = Among(
    sa.select(ports.c.id, networks.c.name, networks.c.mtu, floating_ips.c.floating_ip_address)
    .join_from(ports, networks, networks.c.id == ports.c.network_id)
    .outerjoin(floating_ips, floating_ips.c.port_id == ports.c.id)
    .order_by(floating_ips.c.created_at, floating_ips.c.id),
    ports.c.id,
)


def around_ports(work: Work, port_ids: Iterable[str]) -> dict[str, tuple[Document, list[str]]]:
    """By port, the name and MTU of its network, regardless of who owns that, and the floating addresses of the port."""
    found: dict[str, tuple[Document, list[str]]] = {}
    for port_id, name, mtu, address in AROUND.rows(work.connection, list(port_ids)):
        _, leading = found.setdefault(port_id, ({'name': name, 'mtu': mtu}, []))
        if address is not None:
            leading.append(address)
    return found


def free_floating_ips(work: Work, network_id: str) -> list[str]:
    """The IDs of unassociated floating IPs of this network, regardless of their owners."""
    mine = (floating_ips.c.floating_network_id == network_id, floating_ips.c.port_id.is_(None))
    return list(work.connection.scalars(sa.select(floating_ips.c.id).where(*mine)))


def floating_ips_on(work: Work, host: str) -> list[Document]:
    """The caller's floating IPs that lead to a port on the host."""
    return FLOATING_IPS.find(work, floating_ips.c.port_id.in_(sa.select(ports.c.id).where(ports.c.host == host)))


def dissociate_ports(work: Work, port_ids: Iterable[str], address: str | None = None) -> None:
    """Dissociate floating IPs from these ports (or from this address of theirs), which must be locked."""
    clauses: list[Clause] = [floating_ips.c.port_id.in_(list(port_ids))]
    if address is not None:
        clauses.append(floating_ips.c.fixed_ip_address == address)
    ids = list(work.connection.scalars(sa.select(floating_ips.c.id).where(*clauses)))
    if ids:
        # Locked by their own IDs: InnoDB would lock the entries of another index before the rows, while a transaction
        # that dissociates a single floating IP changes the row before the entry.
        locking = sa.select(floating_ips.c.id).where(floating_ips.c.id.in_(ids)).order_by(floating_ips.c.id)
        work.connection.execute(locking.with_for_update())
        leading = floating_ips.update().where(floating_ips.c.id.in_(ids), *clauses)
        work.connection.execute(leading.values(**NOWHERE, updated_at=work.clock()))


def floating_ip_leads_to(work: Work, port_id: str, fixed_address: str, *, but: str = '') -> bool:
    """Whether a floating IP other than `but` leads to this fixed address."""
    there = sa.exists().where(
        floating_ips.c.port_id == port_id,
        floating_ips.c.fixed_ip_address == fixed_address,
        floating_ips.c.id != but,
    )
    return bool(work.connection.scalar(sa.select(there)))


def floating_ips_through(work: Work, router_id: str, subnet_id: str | None = None) -> bool:
    """Whether floating IPs lead through the router (to this subnet)."""
    # Looked for from the router, not among all of the cloud.
    beside, behind = fixed_ips.alias(), fixed_ips.alias()
    statement = (
        sa.select(floating_ips.c.id)
        .join_from(ports, beside, beside.c.port_id == ports.c.id)
        .join(behind, behind.c.subnet_id == beside.c.subnet_id)
        .join(
            floating_ips,
            (floating_ips.c.port_id == behind.c.port_id) & (floating_ips.c.fixed_ip_address == behind.c.ip_address),
        )
        .where(ports.c.device_id == router_id, _leading_router() == router_id)
    )
    if subnet_id is not None:
        statement = statement.where(beside.c.subnet_id == subnet_id)
    return work.connection.scalar(statement.limit(1)) is not None


def projects_through(work: Work, network_id: str) -> set[str]:
    """The projects of routers that have gateways on this network."""
    gateways = sa.select(ports.c.device_id).where(
        ports.c.network_id == network_id, ports.c.device_owner == ROUTER_GATEWAY
    )
    return set(work.connection.scalars(sa.select(routers.c.project_id).where(routers.c.id.in_(gateways))))
