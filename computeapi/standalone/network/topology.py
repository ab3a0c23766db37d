"""Router interfaces and routes, profiles of flavors, IP availability, and auto-allocated topologies."""

from typing import Any

import orjson

from computeapi import errors
from computeapi.standalone.access import ADMIN, CALLER, WRITER
from computeapi.standalone.network import query
from computeapi.standalone.network.attributes import ROUTE, UUID, several
from computeapi.standalone.network.service import NeutronController
from computeapi.standalone.schema import having, wrapped
from computeapi.web.controller import operation
from computeapi.web.request import Request

INTERFACE = having({'port_id': UUID, 'subnet_id': UUID}, additionalProperties=False)
ROUTES = wrapped('router', {'routes': several(ROUTE)}, 'routes')
DRY_RUN = 'dry-run'
MAX_ID_LENGTH = 64


class RouterInterfaces(NeutronController):
    path = '/routers/{router_id}'

    @operation('PUT', '/add_router_interface', policy=WRITER, body=INTERFACE)
    def add(self, req: Request, router_id: str, body: dict[str, Any]) -> dict[str, Any]:
        return self.networks.add_router_interface(req.context, router_id, body)

    @operation('PUT', '/remove_router_interface', policy=WRITER, body=INTERFACE)
    def remove(self, req: Request, router_id: str, body: dict[str, Any]) -> dict[str, Any]:
        return self.networks.remove_router_interface(req.context, router_id, body)


class ExtraRoutes(NeutronController):
    path = '/routers/{router_id}'

    @operation('PUT', '/add_extraroutes', policy=WRITER, body=ROUTES)
    def add(self, req: Request, router_id: str, body: dict[str, Any]) -> dict[str, Any]:
        return {'router': self.networks.change_routes(req.context, router_id, body['router']['routes'], add=True)}

    @operation('PUT', '/remove_extraroutes', policy=WRITER, body=ROUTES)
    def remove(self, req: Request, router_id: str, body: dict[str, Any]) -> dict[str, Any]:
        return {'router': self.networks.change_routes(req.context, router_id, body['router']['routes'], add=False)}


class FlavorProfiles(NeutronController):
    path = '/flavors/{flavor_id}/service_profiles'

    @operation('POST', policy=ADMIN, body=wrapped('service_profile', {'id': UUID}, 'id'), status=201)
    def associate(self, req: Request, flavor_id: str, body: dict[str, Any]) -> dict[str, Any]:
        profile = self.networks.associate_profile(req.context, flavor_id, body['service_profile']['id'])
        return {'service_profile': {'id': profile['id']}}

    @operation('DELETE', '/{profile_id}', policy=ADMIN, status=204)
    def disassociate(self, req: Request, flavor_id: str, profile_id: str) -> None:
        self.networks.disassociate_profile(req.context, flavor_id, profile_id)


class IPAvailability(NeutronController):
    path = '/network-ip-availabilities'

    @operation('GET', policy=ADMIN)
    def list(self, req: Request) -> dict[str, Any]:
        names = {'network_id': 'id', 'network_name': 'name'}
        filters = {names.get(name, name): values for name, values in query.filters(req).items()}
        found = self.networks.ip_availability(req.context, filters)
        return {'network_ip_availabilities': [_counted(network) for network in found]}

    @operation('GET', '/{network_id}', policy=ADMIN)
    def show(self, req: Request, network_id: str) -> dict[str, Any]:
        for found in self.networks.ip_availability(req.context, {'id': [network_id]}):
            return {'network_ip_availability': _counted(found)}
        raise errors.NetworkNotFound(id=network_id)


class AutoAllocatedTopology(NeutronController):
    path = '/auto-allocated-topology/{project_id}'

    @operation('GET', policy=CALLER)
    def show(self, req: Request, project_id: str) -> dict[str, Any]:
        """Create the project's auto-allocated topology if it does not exist; `fields=dry-run` checks whether it
        could."""
        project_id = _project(req, project_id)
        if DRY_RUN in req.query.get('fields', ()):
            self.networks.check_auto_topology(req.context)
            network_id = 'dry-run=pass'
        else:
            network_id = self.networks.auto_topology(req.context, project_id)
        return {'auto_allocated_topology': {'id': network_id, 'tenant_id': project_id, 'project_id': project_id}}

    @operation('DELETE', policy=WRITER, status=204)
    def delete(self, req: Request, project_id: str) -> None:
        self.networks.delete_auto_topology(req.context, _project(req, project_id))


def _counted(found: dict[str, Any]) -> dict[str, Any]:
    """The same with totals as raw JSON: IPv6 networks have more addresses than fit in the 64 bits that orjson
    supports."""
    counted = {**found, 'total_ips': orjson.Fragment(str(found['total_ips']))}
    if 'subnet_ip_availability' in found:
        counted['subnet_ip_availability'] = [_counted(subnet) for subnet in found['subnet_ip_availability']]
    return counted


def _project(req: Request, project_id: str) -> str:
    """The project of the path; clients send None or null for their own."""
    own = req.context.project_id
    wanted = own if project_id in ('None', 'null') else project_id
    if not wanted:
        raise errors.Invalid('Invalid input for project_id. Reason: the token has no project.')
    if wanted != own and not (req.context.is_admin and len(wanted) <= MAX_ID_LENGTH):
        raise errors.NotFound(f'Project {wanted} could not be found.')
    return wanted
