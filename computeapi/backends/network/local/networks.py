"""What may be done with networks."""

from typing import Any

from computeapi import errors
from computeapi.backends.network.local import qos
from computeapi.db import network_projects, networks, ports
from computeapi.db.network_collection import Document, Work
from computeapi.db.networks import NETWORKS, SUBNETS


def create(work: Work, facts: Document) -> str:
    project_id = network_projects.owner(work, facts)
    network_projects.reserve(work, project_id, 'network')
    _check_default(work, facts)
    network = {**qos.default_policy(work, project_id), **facts, 'project_id': project_id}
    qos.check_policy(work, network)
    return NETWORKS.insert(work, network)


def update(work: Work, network_id: str, facts: Document) -> None:
    network = NETWORKS.owned(work, network_id)
    _check_default(work, network | facts)
    if _turned_off(network, facts, 'shared') and ports.network_has_foreign_ports(
        work, network_id, network['project_id']
    ):
        raise errors.Conflict(f'Unable to reconfigure sharing settings for network {network_id}: others use it.')
    if _turned_off(network, facts, 'router:external') and ports.network_has_ports(work, network_id):
        raise errors.Conflict(f'External network {network_id} cannot be updated to be made non-external: it is in use.')
    qos.check_policy(work, facts)
    NETWORKS.update(work, network_id, facts)


def delete(work: Work, network_id: str) -> None:
    NETWORKS.owned(work, network_id)
    if ports.network_has_ports(work, network_id):
        raise errors.NetworkInUse(id=network_id)
    SUBNETS.delete(work, network_id=network_id)
    NETWORKS.delete(work, id=network_id)


def _turned_off(network: Document, facts: dict[str, Any], name: str) -> bool:
    return network[name] and facts.get(name) is False


def _check_default(work: Work, network: Document) -> None:
    """Only one external network is the default one."""
    if network.get('is_default'):
        if not network.get('router:external'):
            raise errors.Invalid('Invalid input for is_default. Reason: only an external network can be the default.')
        networks.clear_default(work)
