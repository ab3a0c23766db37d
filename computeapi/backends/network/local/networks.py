"""Rules for networks."""

from typing import Any

from computeapi import errors
from computeapi.backends.network.local import addresses, floating_ips, qos, rbac_policies
from computeapi.backends.network.local.subnets import check_mtu
from computeapi.db import network_projects, networks, ports, routers
from computeapi.db.network_collection import Document, Work
from computeapi.db.networks import EXTERNAL, NETWORKS, SUBNETS
from computeapi.db.rbac_policies import RBAC_POLICIES, forget

SEGMENT = ('provider:network_type', 'provider:physical_network', 'provider:segmentation_id')
"""The provider attributes, which only an administrator sets."""

USUAL_MTU = 1500

TAGGED, PHYSICAL = ('vlan', 'vxlan', 'gre', 'geneve'), ('flat', 'vlan')
"""The network types that have a segmentation ID, and those that are on a physical network."""


def create(work: Work, facts: Document) -> str:
    project_id = network_projects.owner(work, facts)
    network_projects.reserve(work, project_id, 'network')
    hold_cloud(work, '', facts)
    _check_default(work, facts, facts)
    _check_segment(work, facts)
    network = {**qos.default_policy(work, project_id), **facts, **_usual_mtu(facts), 'project_id': project_id}
    qos.check_policy(work, network)
    network_id = rbac_policies.insert(work, 'network', network)
    if facts.get('router:external'):
        rbac_policies.give_to_all(work, 'network', {**network, 'id': network_id}, EXTERNAL)
    return network_id


def hold_cloud(work: Work, network_id: str, facts: Document) -> None:
    """Locks the cloud, before any network, for a change of the default network or of a segment."""
    if facts.get('is_default') or any(facts.get(name) is not None for name in SEGMENT):
        network_projects.lock_cloud(work)


def update(work: Work, network_id: str, facts: Document) -> None:
    hold_cloud(work, network_id, facts)
    network = NETWORKS.owned(work, network_id)
    _check_default(work, network | facts, facts)
    if any(network[name] != facts.get(name, network[name]) for name in SEGMENT):
        _check_segment(work, network | facts)
    rbac_policies.follow(work, 'network', network, facts)
    if _turned_off(network, facts, 'router:external') and ports.network_has_ports(work, network_id):
        raise errors.Conflict(f'External network {network_id} cannot be updated to be made non-external: it is in use.')
    qos.check_policy(work, facts, network)
    if _turned_off(network, facts, 'router:external'):
        RBAC_POLICIES.delete(work, object_id=network_id, action=EXTERNAL)
    elif facts.get('router:external') and not network['router:external']:
        rbac_policies.give_to_all(work, 'network', network, EXTERNAL)
    changed = facts | _usual_mtu(facts)
    if 'mtu' in changed:
        check_mtu(network_id, changed['mtu'], networks.subnets_of(work, [network_id]))
    NETWORKS.update(work, network_id, changed)


def delete(work: Work, network_id: str) -> None:
    NETWORKS.owned(work, network_id)
    floating_ips.remove(work, routers.free_floating_ips(work, network_id))
    if ports.network_has_ports(work, network_id):
        raise errors.NetworkInUse(id=network_id)
    forget(work, network_id)
    SUBNETS.delete(work, network_id=network_id)
    NETWORKS.delete(work, id=network_id)


def _usual_mtu(facts: Document) -> Document:
    """0 stands for the usual MTU."""
    return {'mtu': USUAL_MTU} if facts.get('mtu') == 0 else {}


def _turned_off(network: Document, facts: dict[str, Any], name: str) -> bool:
    return network[name] and facts.get(name) is False


def _check_default(work: Work, network: Document, facts: Document) -> None:
    """Only one external network is the default: the one most recently set."""
    if network.get('is_default') and not network.get('router:external'):
        raise errors.Invalid('Invalid input for is_default. Reason: only an external network can be the default.')
    if facts.get('is_default'):
        networks.clear_default(work)


def _check_segment(work: Work, network: Document) -> None:
    """Raises Invalid if the provider attributes do not go together, Conflict if another network has the same
    segment."""
    kind, physical, number = (network.get(name) for name in SEGMENT)
    if kind is None and (physical or number is not None):
        raise errors.Invalid('Invalid input for operation: network_type required.')
    if bool(physical) != (kind in PHYSICAL):
        raise addresses.invalid('provider:physical_network', physical, f'is not valid for a network of type {kind}')
    if number is not None and kind not in TAGGED:
        raise addresses.invalid('provider:segmentation_id', number, f'is not valid for a network of type {kind}')
    if (physical or number is not None) and networks.segment_is_taken(work, str(kind), physical, number):
        raise errors.Conflict('Unable to create the network: its segment is in use.')
