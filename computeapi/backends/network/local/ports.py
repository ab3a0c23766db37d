"""Rules for ports."""

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from computeapi import errors
from computeapi.backends.network.local import addresses, qos, security_groups
from computeapi.backends.network.local.subnets import check_unique
from computeapi.db import network_projects, ports, routers
from computeapi.db.network_collection import Document, Work
from computeapi.db.networks import NETWORKS, SUBNETS, is_owner, is_usable, ranges_on
from computeapi.db.ports import FLOATING_IP, PORTS, ROUTER_GATEWAY, ROUTER_INTERFACE
from computeapi.db.routers import ROUTERS

MAX_ADDRESSES, MAX_OPTIONS = 200, 200

# Owners of ports that routers and floating IPs create for themselves.
SERVICE_OWNERS = (FLOATING_IP, ROUTER_GATEWAY, ROUTER_INTERFACE)

# Attributes of such ports that their project may not change.
BOUND = {'device_id', 'device_owner', 'fixed_ips', 'mac_address'}

# Attributes that only the owner of the network may choose, because with them a port can impersonate another one.
FORGERIES = ('mac_address', 'port_security_enabled', 'allowed_address_pairs')


def create(work: Work, facts: Document) -> str:
    facts = _unbound(facts)
    project_id = network_projects.owner(work, facts)
    _check_device_owner(work, facts)
    _check_network(work, facts['network_id'])
    _check_rights(work, facts['network_id'], {}, facts)
    network_projects.reserve(work, project_id, 'port')
    return add(work, {**facts, 'project_id': project_id})


def add(work: Work, facts: Document) -> str:
    """Create a port that does not count against a quota; ports that belong to the network itself have the project
    ''."""
    (secured,) = NETWORKS.lock(work, facts['network_id'], 'port_security_enabled')
    port = {
        'port_security_enabled': secured,
        **facts,
        'mac_address': _mac_address(work, facts),
    }
    port['allowed_address_pairs'] = _address_pairs(port)
    port['extra_dhcp_opts'] = _merged_options([], facts.get('extra_dhcp_opts', ()))
    qos.check_policy(work, port)
    groups = _groups(work, port)
    port_id = PORTS.insert(work, port)
    addresses.allocate(work, port | {'id': port_id}, facts.get('fixed_ips'))
    ports.add_security_groups(work, port_id, groups)
    return port_id


def hold_network(work: Work, port_id: str, facts: Document | None = None) -> None:
    """Locks the network before the port, for requests that need both, and before them the router if the port is an
    interface of one: a request that associates a floating IP through the router waits for it."""
    port = PORTS.get(work, port_id)
    if port['device_owner'] == ROUTER_INTERFACE:
        ROUTERS.lock(work.elevated(), port['device_id'])
    NETWORKS.lock(work.elevated(), port['network_id'])


def update(work: Work, port_id: str, facts: Document) -> None:
    facts = _unbound(facts)
    if 'fixed_ips' in facts or 'mac_address' in facts:
        hold_network(work, port_id)
    port = PORTS.owned(work, port_id)
    _check_device_owner(work, facts)
    _check_service(port, facts)
    _check_rights(work, port['network_id'], port, facts)
    qos.check_policy(work, facts, port)
    changed = dict(facts)
    if facts.get('mac_address', port['mac_address']) != port['mac_address']:
        changed['mac_address'] = _new_mac_address(work, port, facts)
    if {'allowed_address_pairs', 'port_security_enabled'} & facts.keys():
        changed['allowed_address_pairs'] = _address_pairs({**port, **changed})
    if 'extra_dhcp_opts' in facts:
        changed['extra_dhcp_opts'] = _merged_options(port['extra_dhcp_opts'], facts['extra_dhcp_opts'])
    if facts.get('fixed_ips') is not None:
        set_fixed_ips(work, port, facts['fixed_ips'])
    if {'security_groups', 'port_security_enabled'} & facts.keys():
        ports.set_security_groups(work, port_id, _groups(work, {**port, **facts}))
    PORTS.update(work, port_id, changed)


def delete(work: Work, port_id: str) -> None:
    PORTS.lock(work, port_id)
    owner = PORTS.get(work, port_id)['device_owner']
    if owner in SERVICE_OWNERS:
        raise errors.Conflict(f'Port {port_id} cannot be deleted directly via the port API: has device owner {owner}.')
    remove(work, [port_id])


def remove(work: Work, port_ids: Iterable[str]) -> None:
    """Delete ports of any owner; dissociates their floating IPs."""
    ids = list(port_ids)
    routers.dissociate_ports(work, ids)
    PORTS.delete(work, id=ids)


def add_address(work: Work, port_id: str) -> None:
    """Adds one more IPv4 address, or an IPv6 address if the port has no others."""
    hold_network(work, port_id)
    PORTS.lock(work, port_id)
    port = PORTS.get(work, port_id)
    if len(port['fixed_ips']) >= MAX_ADDRESSES:
        raise errors.Invalid(f'A port may have at most {MAX_ADDRESSES} addresses.')
    versions = {6 if ':' in held['ip_address'] else 4 for held in port['fixed_ips']} or {4}
    addresses.allocate(work, port, [{'ip_version': min(versions)}], port['fixed_ips'])


def remove_address(work: Work, port: Document, address: str) -> None:
    routers.dissociate_ports(work, [port['id']], address)
    ports.remove_fixed_ip(work, port['id'], address)


def _check_service(port: Document, facts: Document) -> None:
    """Raises Conflict for attributes that a project may not change; a router interface may get other addresses, but at
    least one."""
    owner = port['device_owner']
    if owner not in SERVICE_OWNERS:
        return
    bound = BOUND - {'fixed_ips'} if owner == ROUTER_INTERFACE and facts.get('fixed_ips') else BOUND
    if bound & facts.keys():
        raise errors.Conflict(f'Port {port["id"]} belongs to {owner} {port["device_id"]}.')


def _check_device_owner(work: Work, facts: Document) -> None:
    owner = facts.get('device_owner', '')
    if owner in SERVICE_OWNERS:
        raise addresses.invalid('device_owner', owner, 'is for routers and floating IPs only')
    if owner.startswith('network:') and not work.context.is_admin:
        raise errors.Forbidden('rule:create_port:device_owner is disallowed by policy')


def _check_network(work: Work, network_id: str) -> None:
    """Raises Forbidden for an external network that is not shared: it is for routers and floating IPs."""
    network = NETWORKS.get(work, network_id, complete=False)
    if network['router:external'] and not is_owner(work, network_id) and not is_usable(work, network_id):
        raise errors.Forbidden('rule:create_port is disallowed by policy')


def _check_rights(work: Work, network_id: str, port: Document, facts: Document) -> None:
    """Raises Forbidden if a caller that does not own the network chooses attributes or addresses that the port does not
    have yet."""
    chosen = [name for name in FORGERIES if facts.get(name) not in (None, '', [], port.get(name))]
    if port and 'mac_address' in chosen and not (work.context.is_admin or work.context.is_service):
        raise errors.Forbidden('rule:update_port:mac_address is disallowed by policy')
    if not _holds(port, facts.get('fixed_ips') or ()):
        chosen.append('fixed_ips:ip_address')
    if chosen and not is_owner(work, network_id):
        raise errors.Forbidden(f'rule:{"update" if port else "create"}_port:{chosen[0]} is disallowed by policy')


def _holds(port: Document, wanted: Iterable[Mapping[str, Any]]) -> bool:
    """Whether the port already has all addresses that are chosen here."""
    held = {fixed['ip_address'] for fixed in port.get('fixed_ips', ())}
    return held.issuperset(want['ip_address'] for want in wanted if 'ip_address' in want)


def _mac_address(work: Work, facts: Document) -> str:
    network_id = facts['network_id']
    if not facts.get('mac_address'):
        return next(mac for mac in iter(addresses.random_mac, '') if not ports.mac_is_taken(work, network_id, mac))
    mac = addresses.parse_mac(facts['mac_address'])
    if ports.mac_is_taken(work, network_id, mac):
        raise errors.Conflict(
            f'Unable to complete operation for network {network_id}. The mac address {mac} is in use.'
        )
    return mac


def _unbound(facts: Document) -> Document:
    """No host is '', whichever way a client writes it."""
    return {**facts, 'binding:host_id': ''} if facts.get('binding:host_id', '') is None else facts


def _new_mac_address(work: Work, port: Document, facts: Document) -> str:
    if port['binding:host_id']:
        raise errors.Conflict(f'Unable to complete operation on port {port["id"]}, port is already bound.')
    return _mac_address(work, {**facts, 'network_id': port['network_id']})


def _address_pairs(port: Document) -> list[Document]:
    """Further addresses that may be used behind the port; the MAC address defaults to the port's own. Raises Conflict
    if the port is not secured: everything may be used behind it."""
    pairs = [
        {
            'ip_address': _address_or_cidr(pair['ip_address']),
            'mac_address': addresses.parse_mac(pair.get('mac_address') or port['mac_address']),
        }
        for pair in port.get('allowed_address_pairs') or ()
    ]
    if pairs and not port['port_security_enabled']:
        raise errors.Conflict('Port Security must be enabled in order to have allowed address pairs on a port.')
    check_unique('allowed_address_pairs', pairs)
    return pairs


def _merged_options(known: Iterable[Document], given: Iterable[Document]) -> list[Document]:
    """DHCP options, by name and IP version, after a change: without those that are given as null."""
    options = {(option['opt_name'], option.get('ip_version', 4)): option for option in known}
    for option in given:
        version = int(option.get('ip_version', 4))
        options[option['opt_name'], version] = {**option, 'ip_version': version}
    merged = [option for option in options.values() if option.get('opt_value') is not None]
    if len(merged) > MAX_OPTIONS:
        raise errors.Invalid(f'A port may have at most {MAX_OPTIONS} DHCP options.')
    return merged


def _address_or_cidr(text: str) -> str:
    field = 'allowed_address_pairs'
    return str(addresses.parse_cidr(text, field) if '/' in text else addresses.parse_address(text, field))


def _groups(work: Work, port: Document) -> Sequence[str]:
    """The security groups of a port with these attributes: by default the project's default group."""
    wanted = port.get('security_groups')
    if not port['port_security_enabled']:
        if wanted:
            raise errors.Conflict('Port security must be enabled in order to have security groups on a port.')
        return ()
    if wanted is not None:
        return security_groups.check_groups(work, port['project_id'], wanted)
    if port['project_id'] == '' or port.get('device_owner', '').startswith('network:'):
        return ()
    return [security_groups.default_group(work, port['project_id'])]


def set_fixed_ips(work: Work, port: Document, wanted: Iterable[Mapping[str, Any]]) -> None:
    """Sets the addresses of the port; addresses that it keeps are not touched. Raises Invalid if a floating IP leads to
    another one or if subnets of a router would overlap, and Conflict if a router would leave a subnet where something
    needs it."""
    needed = _needed(work, port) if port['device_owner'] == ROUTER_INTERFACE else {}
    leaving, new = list(port['fixed_ips']), []
    for want in wanted:
        kept = next((held for held in leaving if want.items() <= held.items()), None)
        if kept:
            leaving.remove(kept)
        else:
            new.append(want)
    kept_there = {subnet['id'] for subnet in ranges_on(work, port['network_id']) if addresses.chooses(port, subnet)}
    for held in leaving:
        if held['subnet_id'] in kept_there:
            continue
        if routers.floating_ip_leads_to(work, port['id'], held['ip_address']):
            raise errors.Invalid(f'Address {held["ip_address"]} of port {port["id"]} is associated with a floating IP.')
        ports.remove_fixed_ip(work, port['id'], held['ip_address'])
    addresses.allocate(work, port, new, port['fixed_ips'])
    if port['device_owner'] == ROUTER_INTERFACE:
        kept = {held['subnet_id'] for held in PORTS.get(work, port['id'])['fixed_ips']}
        _check_left(port, {subnet_id: users for subnet_id, users in needed.items() if subnet_id not in kept})
        joined = kept - {held['subnet_id'] for held in port['fixed_ips']}
        check_overlap(work, port['device_id'], SUBNETS.find(work.elevated(), id=joined), besides=port['id'])


def check_overlap(work: Work, router_id: str, subnets: list[Document], besides: str | None = None) -> None:
    """Raises Invalid if one of the subnets overlaps with a subnet of the router's interfaces or gateway, of those
    besides that port."""
    own = [*ports.ports_of_routers(work, [router_id], ROUTER_INTERFACE)]
    own += ports.ports_of_routers(work, [router_id], ROUTER_GATEWAY)
    connected = {held['subnet_id'] for port in own if port['id'] != besides for held in port['fixed_ips']}
    for other in SUBNETS.find(work.elevated(), id=connected):
        for subnet in subnets:
            if subnet['id'] == other['id']:
                raise errors.Invalid(f'Router already has a port on subnet {subnet["id"]}')
            if ipaddress.ip_network(subnet['cidr']).overlaps(ipaddress.ip_network(other['cidr'])):
                raise errors.Invalid(
                    f'Cidr {subnet["cidr"]} of subnet {subnet["id"]} overlaps with cidr {other["cidr"]} of subnet '
                    f'{other["id"]}'
                )


def check_unneeded(work: Work, interface: Document) -> None:
    """Raises Conflict if something needs the router interface."""
    _check_left(interface, _needed(work, interface))


def _check_left(interface: Document, needed: Mapping[str, str]) -> None:
    for subnet_id, users in needed.items():
        raise errors.Conflict(
            f'Router interface for subnet {subnet_id} on router {interface["device_id"]} cannot be deleted, as it is '
            f'required by one or more {users}.'
        )


def _needed(work: Work, interface: Document) -> dict[str, str]:
    """By subnet, what needs the router interface to it: routes or floating IPs."""
    router = ROUTERS.get(work.elevated(), interface['device_id'])
    hops = [ipaddress.ip_address(route['nexthop']) for route in router['routes']]
    found = {}
    for subnet in SUBNETS.find(work.elevated(), id={held['subnet_id'] for held in interface['fixed_ips']}):
        if any(hop in ipaddress.ip_network(subnet['cidr']) for hop in hops):
            found[subnet['id']] = 'routes'
        elif routers.floating_ips_through(work, router['id'], subnet['id']):
            found[subnet['id']] = 'floating IPs'
    return found
