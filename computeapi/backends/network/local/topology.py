"""Complete topologies: auto-allocated networks, and the networks that a new cloud or project starts with."""

from dataclasses import replace

from computeapi import errors, randomness
from computeapi.backends.network.local import networks, routers, subnets
from computeapi.db import network_projects
from computeapi.db import networks as stored_networks
from computeapi.db.network_collection import Document, Work
from computeapi.db.networks import NETWORKS
from computeapi.db.ports import PORTS, ROUTER_INTERFACE

AUTO = 'auto_allocated_network'
AUTO_SUBNET = {'name': 'auto_allocated_subnet_v4', 'cidr': '192.168.0.0/24'}
AUTO_ROUTER = 'auto_allocated_router'

PUBLIC = 'public'
PUBLIC_SUBNET = {'name': 'public-subnet', 'cidr': '203.0.113.0/24', 'enable_dhcp': False}
PRIVATE = 'private'
PRIVATE_SUBNET = {'name': 'private-subnet', 'cidr': '10.0.0.0/16'}
ROUTER = 'router'
PROJECT_CIDR = '10.1.0.0/16'


def auto_network(work: Work, project_id: str) -> str:
    """The ID of the project's auto-allocated network, created on first use."""
    network_projects.lock_project(work, project_id)
    network_id = stored_networks.auto_network(work, project_id)
    if network_id is None:
        # The random values must not depend on which request needs the network first.
        with randomness.apart('automatic network', project_id):
            network_id = _add_auto_network(work, project_id)
        stored_networks.set_auto_network(work, network_id)
    return network_id


def external_network(work: Work) -> Document:
    """The external network for auto-allocated networks: the default one, or else the first."""
    found = sorted(NETWORKS.find(work, external=True), key=lambda network: not network['is_default'])
    if not found:
        raise errors.Invalid('Deployment error: there is no external network for an automatic topology.')
    return found[0]


def delete_auto_network(work: Work, project_id: str) -> None:
    """Delete the network and its router; raises NotFound if there is none, Conflict while servers use it."""
    network_projects.lock_project(work, project_id)
    network_id = stored_networks.auto_network(work, project_id)
    if network_id is None:
        raise errors.NotFound(f'No auto-allocated topology was found for project {project_id}.')
    for port in PORTS.find(work, network_id=network_id, device_owner=ROUTER_INTERFACE):
        routers.remove_interface(work, port['device_id'], {'port_id': port['id']})
        routers.delete(work, port['device_id'])
    networks.delete(work, network_id)


def populate(work: Work, shared: bool) -> None:
    """Create the initial networks that do not exist."""
    network_projects.lock_project(work, work.context.project_id or '')
    names = {network['name'] for network in NETWORKS.find(work, name=[PUBLIC, PRIVATE])}
    if PUBLIC not in names:
        _add_network(work, {'name': PUBLIC, 'router:external': True, 'is_default': True}, PUBLIC_SUBNET)
    if PRIVATE not in names:
        _add_routed(work, {'name': PRIVATE, 'shared': shared}, PRIVATE_SUBNET, ROUTER)


def populate_project(work: Work, name: str) -> None:
    """Create the initial network of this name, behind a router, in the caller's project, unless it exists."""
    network_projects.lock_project(work, work.context.project_id or '')
    if not NETWORKS.find(work, name=name):
        _add_routed(work, {'name': name}, {'name': f'{name}-subnet', 'cidr': PROJECT_CIDR}, f'{name}-router')


def _add_auto_network(work: Work, project_id: str) -> str:
    # An administrator may create it for a project.
    work = replace(work.elevated(), context=replace(work.context.elevated(), project_id=project_id))
    external_network(work)
    return _add_routed(work, {'name': AUTO}, AUTO_SUBNET, AUTO_ROUTER)


def _add_routed(work: Work, network: Document, subnet: Document, router: str) -> str:
    """Creates a network whose subnet is routed to the external network; returns its ID."""
    network_id, subnet_id = _add_network(work, network, subnet)
    _add_router(work, router, subnet_id)
    return network_id


def _add_network(work: Work, network: Document, subnet: Document) -> tuple[str, str]:
    """Creates a network with a subnet; returns the IDs of both."""
    network_id = networks.create(work, network)
    return network_id, subnets.create(work, {**subnet, 'network_id': network_id})


def _add_router(work: Work, name: str, subnet_id: str) -> None:
    gateway = {'network_id': external_network(work)['id']}
    router_id = routers.create(work, {'name': name, 'external_gateway_info': gateway})
    routers.add_interface(work, router_id, {'subnet_id': subnet_id})
