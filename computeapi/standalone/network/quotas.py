"""Network quotas of projects."""

from typing import Any

from computeapi import errors
from computeapi.db.network_projects import MAX_PROJECT_LENGTH, RESOURCES, defaults
from computeapi.standalone.access import ADMIN, CALLER
from computeapi.standalone.network.attributes import BOOLEAN, converted, number
from computeapi.standalone.network.service import NeutronController
from computeapi.standalone.schema import Schema, wrapped
from computeapi.web.controller import operation
from computeapi.web.request import Request

HOW = ('check_limit', 'force')
"""Options of an update. A limit below the current usage is refused if check_limit is set and force is not."""

LIMITS = Schema(wrapped('quota', {**dict.fromkeys(RESOURCES, number(-1, 2**31 - 1)), **dict.fromkeys(HOW, BOOLEAN)}))
TYPES = {**dict.fromkeys(RESOURCES, 'integer'), **dict.fromkeys(HOW, 'boolean')}


class NeutronQuotas(NeutronController):
    path = '/quotas'

    @operation('GET', policy=ADMIN)
    def list(self, req: Request) -> dict[str, Any]:
        """List the projects that have quotas of their own."""
        every = self.networks.all_quotas(req.context)
        return {'quotas': [{**limits, **_named(project_id)} for project_id, limits in every.items()]}

    @operation('GET', '/tenant', policy=CALLER)
    def whose(self, req: Request) -> dict[str, Any]:
        """Show the project of the caller, which python-neutronclient asks for before it asks for quotas."""
        return dict.fromkeys(('project', 'tenant'), _named(req.context.project_id))

    @operation('GET', '/{project_id}', policy=CALLER)
    def show(self, req: Request, project_id: str) -> dict[str, Any]:
        _check_sight(req, project_id)
        return {'quota': self.networks.quotas(req.context, project_id)}

    @operation('GET', '/{project_id}/default', policy=CALLER)
    def show_defaults(self, req: Request, project_id: str) -> dict[str, Any]:
        _check_sight(req, project_id)
        return {'quota': defaults()}

    @operation('GET', '/{project_id}/details', policy=CALLER)
    def show_details(self, req: Request, project_id: str) -> dict[str, Any]:
        _check_sight(req, project_id)
        return {'quota': self.networks.quota_details(req.context, project_id)}

    @operation('PUT', '/{project_id}', policy=ADMIN, body={'type': 'object'})
    def update(self, req: Request, project_id: str, body: dict[str, Any]) -> dict[str, Any]:
        document = converted('quota', TYPES, body)
        LIMITS.check(document)
        if len(project_id) > MAX_PROJECT_LENGTH:
            raise errors.Invalid(
                f'Invalid input for project_id. Reason: it is longer than {MAX_PROJECT_LENGTH} characters.'
            )
        limits = document['quota']
        check, force = (limits.pop(name, False) for name in HOW)
        return {'quota': self.networks.set_quotas(req.context, project_id, limits, check=check and not force)}

    @operation('DELETE', '/{project_id}', policy=ADMIN, status=204)
    def reset(self, req: Request, project_id: str) -> None:
        self.networks.reset_quotas(req.context, project_id)


def _named(project_id: str | None) -> dict[str, str | None]:
    return {'project_id': project_id, 'tenant_id': project_id}


def _check_sight(req: Request, project_id: str) -> None:
    if not req.context.is_admin and project_id != req.context.project_id:
        raise errors.Forbidden('Non-admin is not authorised to access quotas for another project.')
