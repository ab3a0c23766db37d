"""Routers' interfaces, automatic networks, and the lists that are empty where no agents run."""

from typing import Any

from computeapi import errors
from computeapi.standalone.face import FaceRequest, route
from computeapi.standalone.network.attributes import UUID
from computeapi.standalone.network.service import NetworkService
from computeapi.standalone.schema import Schema

INTERFACE = Schema(
    {'type': 'object', 'properties': {'port_id': UUID, 'subnet_id': UUID}, 'additionalProperties': False}
)
AUTO_TOPOLOGY = '/v2.0/auto-allocated-topology/{project_id}'
DRY_RUN = 'dry-run'


class TopologyRoutes(NetworkService):
    @route('PUT', '/v2.0/routers/{router_id}/add_router_interface')
    def add_router_interface(self, req: FaceRequest, router_id: str) -> dict[str, Any]:
        INTERFACE.check(req.document)
        return self.networks.add_router_interface(req.context, router_id, req.document)

    @route('PUT', '/v2.0/routers/{router_id}/remove_router_interface')
    def remove_router_interface(self, req: FaceRequest, router_id: str) -> dict[str, Any]:
        INTERFACE.check(req.document)
        return self.networks.remove_router_interface(req.context, router_id, req.document)

    @route('GET', AUTO_TOPOLOGY)
    def auto_topology(self, req: FaceRequest, project_id: str) -> dict[str, Any]:
        """Make the project's automatic network unless it is there; `fields=dry-run` asks whether that could be."""
        project_id = _project(req, project_id)
        if DRY_RUN in req.GET.getall('fields'):
            self.networks.check_auto_topology(req.context)
            network_id = 'dry-run=pass'
        else:
            network_id = self.networks.auto_topology(req.context, project_id)
        return {'auto_allocated_topology': {'id': network_id, 'tenant_id': project_id, 'project_id': project_id}}

    @route('DELETE', AUTO_TOPOLOGY)
    def delete_auto_topology(self, req: FaceRequest, project_id: str) -> tuple[int, None]:
        self.networks.delete_auto_topology(req.context, _project(req, project_id))
        return 204, None

    @route('GET', '/v2.0/{kind:agents|availability_zones|service-providers}')
    def nothing(self, req: FaceRequest, kind: str) -> dict[str, Any]:
        return {kind.replace('-', '_'): []}


def _project(req: FaceRequest, project_id: str) -> str:
    """The project of the path; clients say None or null for their own."""
    own = req.context.project_id
    wanted = own if project_id in ('None', 'null') else project_id
    if not wanted:
        raise errors.Invalid('Invalid input for project_id. Reason: the token has no project.')
    if wanted != own and not req.context.is_admin:
        raise errors.NotFound(f'Project {wanted} could not be found.')
    return wanted
