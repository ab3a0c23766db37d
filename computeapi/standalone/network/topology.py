"""Routers' interfaces, and automatic networks."""

from typing import Any

from computeapi import errors
from computeapi.standalone.access import CALLER, WRITER
from computeapi.standalone.network.attributes import UUID
from computeapi.standalone.network.service import NeutronController
from computeapi.standalone.schema import having
from computeapi.web.controller import operation
from computeapi.web.request import Request

INTERFACE = having({'port_id': UUID, 'subnet_id': UUID}, additionalProperties=False)
DRY_RUN = 'dry-run'


class RouterInterfaces(NeutronController):
    path = '/routers/{router_id}'

    @operation('PUT', '/add_router_interface', policy=WRITER, body=INTERFACE)
    def add(self, req: Request, router_id: str, body: dict[str, Any]) -> dict[str, Any]:
        return self.networks.add_router_interface(req.context, router_id, body)

    @operation('PUT', '/remove_router_interface', policy=WRITER, body=INTERFACE)
    def remove(self, req: Request, router_id: str, body: dict[str, Any]) -> dict[str, Any]:
        return self.networks.remove_router_interface(req.context, router_id, body)


class AutoAllocatedTopology(NeutronController):
    path = '/auto-allocated-topology/{project_id}'

    @operation('GET', policy=CALLER)
    def show(self, req: Request, project_id: str) -> dict[str, Any]:
        """Make the project's automatic network unless it is there; `fields=dry-run` asks whether that could be."""
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


def _project(req: Request, project_id: str) -> str:
    """The project of the path; clients say None or null for their own."""
    own = req.context.project_id
    wanted = own if project_id in ('None', 'null') else project_id
    if not wanted:
        raise errors.Invalid('Invalid input for project_id. Reason: the token has no project.')
    if wanted != own and not req.context.is_admin:
        raise errors.NotFound(f'Project {wanted} could not be found.')
    return wanted
