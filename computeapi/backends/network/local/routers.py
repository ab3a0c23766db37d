"""Rules for routers."""

import ipaddress

from computeapi import errors
from computeapi.backends.network.local import ports
from computeapi.backends.network.local.subnets import check_unique, parse_routes
from computeapi.db import network_projects, routers
from computeapi.db.network_collection import ACCESS_AS_SHARED, Document, Work
from computeapi.db.networks import NETWORKS, SUBNETS, is_owner, subnets_of
from computeapi.db.ports import PORTS, ROUTER_GATEWAY, ROUTER_INTERFACE, ports_of_routers, take_port
from computeapi.db.rbac_policies import RBAC_POLICIES
from computeapi.db.routers import ROUTERS

MAX_ROUTES = 30


def create(work: Work, facts: Document) -> str:
    project_id = network_projects.owner(work, facts)
    network_projects.reserve(work, project_id, 'router')
    router_id = ROUTERS.insert(work, {**facts, 'project_id': project_id})
    if facts.get('external_gateway_info'):
        _set_gateway(work, router_id, facts['external_gateway_info'])
    return router_id


def update(work: Work, router_id: str, facts: Document) -> None:
    ROUTERS.owned(work, router_id)
    changed = dict(facts)
    if 'external_gateway_info' in facts:
        _set_gateway(work, router_id, facts['external_gateway_info'] or {})
    if 'routes' in facts:
        changed['routes'] = _checked_routes(work, router_id, facts['routes'] or [])
        check_unique('routes', changed['routes'])
    ROUTERS.update(work, router_id, changed)


def change_routes(work: Work, router_id: str, given: list[Document], *, add: bool) -> None:
    """Add routes to the router, or remove them. Routes that exist already, or do not exist, are no error."""
    known, meant = ROUTERS.owned(work, router_id)['routes'], parse_routes(given, 'routes')
    kept = [route for route in known if route not in meant]
    routes = _checked_routes(work, router_id, [*kept, *meant]) if add else kept
    ROUTERS.update(work, router_id, {'routes': routes})


def delete(work: Work, router_id: str) -> None:
    ROUTERS.owned(work, router_id)
    if ports_of_routers(work, [router_id], ROUTER_INTERFACE):
        raise errors.RouterInUse(id=router_id)
    _clear_gateway(work, router_id)
    ROUTERS.delete(work, id=router_id)


def _checked_routes(work: Work, router_id: str, given: list[Document]) -> list[Document]:
    """The routes in canonical form; raises Invalid if the router cannot reach a next hop."""
    routes = parse_routes(given, 'routes')
    if len(routes) > MAX_ROUTES:
        raise errors.Invalid(f'The number of routes of router {router_id} exceeds the maximum {MAX_ROUTES}.')
    if routes:
        own = [
            *ports_of_routers(work, [router_id], ROUTER_INTERFACE),
            *ports_of_routers(work, [router_id], ROUTER_GATEWAY),
        ]
        held = {fixed['subnet_id'] for port in own for fixed in port['fixed_ips']}
        reached = [ipaddress.ip_network(subnet['cidr']) for subnet in SUBNETS.find(work.elevated(), id=held)]
        for route in routes:
            hop = ipaddress.ip_address(route['nexthop'])
            if not any(hop in network for network in reached):
                raise errors.Invalid(f'Invalid format for routes: the nexthop {hop} is not connected with router')
    return routes


def add_interface(work: Work, router_id: str, facts: Document) -> Document:
    router = ROUTERS.owned(work, router_id)
    _check_target(facts)
    if 'port_id' in facts:
        port_id = _take_port(work, router, facts['port_id'])
    else:
        port_id = _add_port(work, router, SUBNETS.get(work, facts['subnet_id']))
    ROUTERS.update(work, router_id, {})
    return _interface(router, PORTS.get(work.elevated(), port_id))


def remove_interface(work: Work, router_id: str, facts: Document) -> Document:
    """Identify the interface by port_id, by subnet_id, or by both if they agree."""
    router = ROUTERS.owned(work, router_id)
    if not {'port_id', 'subnet_id'} & facts.keys():
        raise errors.Invalid('Either subnet_id or port_id must be specified')
    port = _find_interface(work, router_id, facts)
    ports.check_unneeded(work, port)
    ports.remove(work, [port['id']])
    ROUTERS.update(work, router_id, {})
    return _interface(router, port)


def _check_target(facts: Document) -> None:
    if len({'port_id', 'subnet_id'} & facts.keys()) != 1:
        raise errors.Invalid('Exactly one of subnet_id and port_id must be specified')


def _add_port(work: Work, router: Document, subnet: Document) -> str:
    """Creates a port at the subnet's gateway address."""
    if not _may_join(work, subnet):
        raise errors.Invalid(
            f'Cannot add interface to router because subnet {subnet["id"]} is not owned by project making the request'
        )
    if subnet['gateway_ip'] is None:
        raise errors.Invalid('Subnet for router interface must have a gateway IP')
    ports.check_overlap(work, router['id'], [subnet])
    facts = {
        'project_id': router['project_id'],
        'network_id': subnet['network_id'],
        'device_id': router['id'],
        'device_owner': ROUTER_INTERFACE,
        'fixed_ips': [{'subnet_id': subnet['id'], 'ip_address': subnet['gateway_ip']}],
    }
    network_projects.reserve(work, router['project_id'], 'port')
    return ports.add(work.elevated(), facts)


def _may_join(work: Work, subnet: Document) -> bool:
    """Whether the caller's routers may have the gateway address of the subnet: if it is the caller's, or if its network
    is shared with the caller's project by name, and not only with everybody."""
    context = work.context
    if context.is_admin or subnet['project_id'] == context.project_id:
        return True
    shared = {'object_id': subnet['network_id'], 'action': ACCESS_AS_SHARED, 'target_project': context.project_id}
    return bool(RBAC_POLICIES.find(work.elevated(), **shared))


def _take_port(work: Work, router: Document, port_id: str) -> str:
    port = PORTS.get(work, port_id)
    if port['device_id']:
        raise errors.PortInUse(id=port_id)
    if not port['fixed_ips']:
        raise errors.Invalid('Router port must have at least one fixed IP')
    held = {address['subnet_id'] for address in port['fixed_ips']}
    ports.check_overlap(work, router['id'], SUBNETS.find(work.elevated(), id=held))
    if not take_port(work, port_id, router['id'], {'device_owner': ROUTER_INTERFACE}):
        raise errors.PortInUse(id=port_id)
    return port_id


def _find_interface(work: Work, router_id: str, facts: Document) -> Document:
    for port in ports_of_routers(work, [router_id], ROUTER_INTERFACE):
        interfaces = [{'port_id': port['id'], 'subnet_id': held['subnet_id']} for held in port['fixed_ips']]
        if any(facts.items() <= interface.items() for interface in interfaces):
            return port
    raise errors.NotFound(f'Router {router_id} does not have an interface there.')


def _interface(router: Document, port: Document) -> Document:
    subnet_ids = [held['subnet_id'] for held in port['fixed_ips']]
    return {
        'id': router['id'],
        'project_id': router['project_id'],
        'tenant_id': router['project_id'],
        'port_id': port['id'],
        'network_id': port['network_id'],
        'subnet_id': subnet_ids[0],
        'subnet_ids': subnet_ids,
    }


def _set_gateway(work: Work, router_id: str, info: Document) -> None:
    """Set the external network given in `info`, or clear the gateway if there is none."""
    current = ROUTERS.get(work, router_id)['external_gateway_info'] or {}
    network_id, addresses, enable_snat = info.get('network_id'), info.get('external_fixed_ips'), info.get('enable_snat')
    if enable_snat not in (None, current.get('enable_snat', True)) and not work.context.is_admin:
        raise errors.Forbidden('rule:create_router:external_gateway_info:enable_snat is disallowed by policy')
    if network_id == current.get('network_id'):
        if addresses and _named(addresses) != _named(current['external_fixed_ips']):
            _move_gateway(work, router_id, addresses)
    else:
        if current:
            _clear_gateway(work, router_id)
        if network_id:
            _add_gateway(work, router_id, network_id, addresses)
    ROUTERS.update(work, router_id, {'enable_snat': enable_snat is not False})


def _named(addresses: list[Document]) -> tuple[set[str], set[str]]:
    """The subnets and the addresses that are named. As in Neutron, a gateway whose names stay does not change: it gets
    no further address of the same subnet, for example."""
    subnet_ids, texts = ({each[name] for each in addresses if name in each} for name in ('subnet_id', 'ip_address'))
    return subnet_ids, texts


def _add_gateway(work: Work, router_id: str, network_id: str, addresses: list[Document] | None) -> None:
    if not NETWORKS.get(work, network_id)['router:external']:
        raise errors.Invalid(f'Bad router request: Network {network_id} is not an external network.')
    if addresses:
        _check_chooser(work, network_id)
    facts = {
        'project_id': '',
        'network_id': network_id,
        'device_id': router_id,
        'device_owner': ROUTER_GATEWAY,
        'fixed_ips': addresses or None,
    }
    ports.check_overlap(work, router_id, subnets_of(work, [network_id]))
    ports.add(work.elevated(), facts)


def _check_chooser(work: Work, network_id: str) -> None:
    if not is_owner(work, network_id):
        raise errors.Forbidden('rule:create_router:external_gateway_info:external_fixed_ips is disallowed by policy')


def _move_gateway(work: Work, router_id: str, addresses: list[Document]) -> None:
    """Change the gateway's addresses on the same network; floating IPs through it keep working."""
    for port in ports_of_routers(work, [router_id], ROUTER_GATEWAY):
        _check_chooser(work, port['network_id'])
        NETWORKS.lock(work, port['network_id'])
        ports.set_fixed_ips(work.elevated(), port, addresses)


def _clear_gateway(work: Work, router_id: str) -> None:
    if routers.floating_ips_through(work, router_id):
        raise errors.Conflict(
            f'Gateway cannot be updated for router {router_id}, since a gateway to external network is required by one '
            f'or more floating IPs.'
        )
    ports.remove(work, [port['id'] for port in ports_of_routers(work, [router_id], ROUTER_GATEWAY)])
