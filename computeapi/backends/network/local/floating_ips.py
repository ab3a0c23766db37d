"""Rules for floating IPs."""

from collections.abc import Sequence
from contextlib import suppress

from computeapi import errors, randomness
from computeapi.backends.network.local import addresses, ports
from computeapi.db import network_projects, routers
from computeapi.db.network_collection import Document, Work
from computeapi.db.networks import NETWORKS
from computeapi.db.ports import FLOATING_IP, PORTS
from computeapi.db.routers import FLOATING_IPS, NOWHERE, ROUTERS


def create(work: Work, facts: Document) -> str:
    project_id = network_projects.owner(work, facts)
    network_projects.reserve(work, project_id, 'floatingip')
    if not NETWORKS.get(work, facts['floating_network_id'])['router:external']:
        raise errors.Invalid(f'Network {facts["floating_network_id"]} is not a valid external network.')
    floating_ip_id = randomness.new_id()
    address = _take_address(work, floating_ip_id, facts)
    floating_ip = {
        'description': facts.get('description', ''),
        'tags': facts.get('tags', ()),
        'id': floating_ip_id,
        'project_id': project_id,
        'floating_network_id': facts['floating_network_id'],
        'floating_ip_address': address,
    }
    _check_port_given(facts)
    FLOATING_IPS.insert(work, floating_ip)
    if facts.get('port_id'):
        _associate(work, floating_ip, facts['port_id'], facts.get('fixed_ip_address'))
    return floating_ip_id


def hold_port(work: Work, floating_ip_id: str, facts: Document) -> None:
    """Locks the port that the floating IP is to be associated with, before the floating IP."""
    port_id = facts.get('port_id', FLOATING_IPS.get(work, floating_ip_id)['port_id'])
    if port_id:
        PORTS.lock(work, port_id)


def update(work: Work, floating_ip_id: str, facts: Document) -> None:
    _check_port_given(facts)
    floating_ip = FLOATING_IPS.get(work, floating_ip_id)
    # An update of nothing dissociates it: once the port was all that could be changed.
    port_id = facts.get('port_id', floating_ip['port_id'] if facts else None)
    if port_id and 'port_id' in facts:
        _associate(work, floating_ip, port_id, facts.get('fixed_ip_address'))
    FLOATING_IPS.owned(work, floating_ip_id)
    changed = {name: value for name, value in facts.items() if name == 'description'}
    FLOATING_IPS.update(work, floating_ip_id, changed | ({} if port_id else NOWHERE))


def _check_port_given(facts: Document) -> None:
    if facts.get('fixed_ip_address') and not facts.get('port_id'):
        raise errors.Invalid('Bad floatingip request: fixed_ip_address cannot be specified without a port_id.')


def delete(work: Work, floating_ip_id: str) -> None:
    FLOATING_IPS.owned(work, floating_ip_id)
    remove(work, [floating_ip_id])


def remove(work: Work, ids: Sequence[str]) -> None:
    """Delete floating IPs of any project."""
    FLOATING_IPS.delete(work, id=ids)
    held = PORTS.find(work.elevated(), device_id=ids, device_owner=FLOATING_IP)
    ports.remove(work, [port['id'] for port in held])


def _take_address(work: Work, floating_ip_id: str, facts: Document) -> str:
    """An IPv4 address of the external network, held by a port like every address."""
    names = {'subnet_id': 'subnet_id', 'floating_ip_address': 'ip_address'}
    want = {ours: facts[theirs] for theirs, ours in names.items() if facts.get(theirs)}
    port = {
        'project_id': '',
        'network_id': facts['floating_network_id'],
        'device_id': floating_ip_id,
        'device_owner': FLOATING_IP,
        'fixed_ips': [{'ip_version': 4, **want}],
    }
    port_id = ports.add(work.elevated(), port)
    address: str = PORTS.get(work.elevated(), port_id)['fixed_ips'][0]['ip_address']
    return address


def _associate(work: Work, floating_ip: Document, port_id: str, fixed_address: str | None) -> None:
    # Two requests that associate floating IPs with the same address are serialized here. Every transaction that locks
    # both locks the port before the floating IP, so that there are no deadlocks.
    PORTS.lock(work, port_id)
    port = PORTS.get(work, port_id)
    if port['project_id'] != floating_ip['project_id']:
        raise errors.Invalid(f'Port {port_id} is associated with a different project than the floating IP.')
    address = _fixed_address(port, fixed_address)
    if routers.floating_ip_leads_to(work, port_id, address, but=floating_ip['id']):
        raise errors.FloatingIPInUse(address=floating_ip['floating_ip_address'], port_id=port_id, fixed_address=address)
    FLOATING_IPS.update(work, floating_ip['id'], {'port_id': port_id, 'fixed_ip_address': address})
    if _leading_router(work, floating_ip['id']) is None:
        raise errors.Unreachable(network_id=floating_ip['floating_network_id'], port_id=port_id)


def _leading_router(work: Work, floating_ip_id: str) -> str | None:
    """The router between the floating IP and its port, locked so that it stays in place until the transaction ends."""
    router_id: str | None = FLOATING_IPS.get(work, floating_ip_id)['router_id']
    if router_id is None:
        return None
    # A request that removes an interface or the gateway locks the router first. Either it wins, and the floating IP has
    # no router, or it waits and then finds the floating IP.
    with suppress(errors.RouterNotFound):
        ROUTERS.lock(work.elevated(), router_id)
    found: str | None = FLOATING_IPS.get(work, floating_ip_id)['router_id']
    return found


def _fixed_address(port: Document, wanted: str | None) -> str:
    """The IPv4 address of the port: the wanted one, or the only one."""
    held: list[str] = [fixed['ip_address'] for fixed in port['fixed_ips'] if ':' not in fixed['ip_address']]
    if wanted is not None:
        address = str(addresses.parse_address(wanted, 'fixed_ip_address'))
        if address not in held:
            raise addresses.invalid('fixed_ip_address', wanted, f'is not an IPv4 address of port {port["id"]}')
        return address
    if not held:
        raise errors.Invalid(f'Cannot add floating IP to port {port["id"]} that has no fixed IPv4 addresses')
    if len(held) > 1:
        raise errors.Invalid(
            f'Port {port["id"]} has multiple fixed IPv4 addresses. Must provide a specific IPv4 address when assigning '
            f'a floating IP'
        )
    return held[0]
