"""How much projects may have."""

from typing import Any

from computeapi import errors
from computeapi.backends.network.local.quotas import MAX_PROJECT
from computeapi.db.network_projects import RESOURCES, defaults
from computeapi.standalone.face import FaceRequest, route
from computeapi.standalone.network.attributes import converted, number
from computeapi.standalone.network.service import NetworkService
from computeapi.standalone.schema import body

LIMITS = body('quota', dict.fromkeys(RESOURCES, number(-1, 2**31 - 1)))
TYPES = dict.fromkeys(RESOURCES, 'integer')
PROJECT = '/v2.0/quotas/{project_id}'


class QuotaRoutes(NetworkService):
    @route('GET', '/v2.0/quotas', admin=True)
    def list_quotas(self, req: FaceRequest) -> dict[str, Any]:
        """Of the projects that have quotas of their own."""
        every = self.networks.all_quotas(req.context)
        return {'quotas': [{**limits, **_named(project_id)} for project_id, limits in every.items()]}

    @route('GET', PROJECT)
    def show_quotas(self, req: FaceRequest, project_id: str) -> dict[str, Any]:
        _check_sight(req, project_id)
        return {'quota': self.networks.quotas(req.context, project_id)}

    @route('GET', f'{PROJECT}/default')
    def default_quotas(self, req: FaceRequest, project_id: str) -> dict[str, Any]:
        _check_sight(req, project_id)
        return {'quota': defaults()}

    @route('GET', f'{PROJECT}/details')
    @route('GET', f'{PROJECT}/details.json')
    def quota_details(self, req: FaceRequest, project_id: str) -> dict[str, Any]:
        _check_sight(req, project_id)
        return {'quota': self.networks.quota_details(req.context, project_id)}

    @route('PUT', PROJECT, admin=True)
    def update_quotas(self, req: FaceRequest, project_id: str) -> dict[str, Any]:
        document = converted('quota', TYPES, req.document)
        LIMITS.check(document)
        if len(project_id) > MAX_PROJECT:
            raise errors.Invalid(f'Invalid input for project_id. Reason: it is longer than {MAX_PROJECT} characters.')
        return {'quota': self.networks.set_quotas(req.context, project_id, document['quota'])}

    @route('DELETE', PROJECT, admin=True)
    def reset_quotas(self, req: FaceRequest, project_id: str) -> tuple[int, None]:
        self.networks.reset_quotas(req.context, project_id)
        return 204, None


def _named(project_id: str) -> dict[str, str]:
    return {'project_id': project_id, 'tenant_id': project_id}


def _check_sight(req: FaceRequest, project_id: str) -> None:
    if not req.context.is_admin and project_id != req.context.project_id:
        raise errors.Forbidden('Non-admin is not authorised to access quotas for another project.')
