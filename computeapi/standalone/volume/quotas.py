"""How much each project may use."""

from typing import Any

from computeapi import errors
from computeapi.backends.volume.local.quotas import DEFAULTS
from computeapi.standalone.face import FaceRequest, route
from computeapi.standalone.query import MAX_INTEGER, truth
from computeapi.standalone.schema import body
from computeapi.standalone.volume.service import VolumeService

LIMIT = {'type': 'integer', 'minimum': -1, 'maximum': MAX_INTEGER}
SET = body('quota_set', dict.fromkeys(DEFAULTS, LIMIT))

MAX_PROJECT_ID = 64


class QuotaRoutes(VolumeService):
    @route('GET', '/v3/os-quota-sets/{project_id}')
    def show_quotas(self, req: FaceRequest, project_id: str) -> dict[str, Any]:
        if project_id != req.context.project_id and not req.context.is_admin:
            raise errors.Forbidden("Policy doesn't allow the quotas of another project to be seen.")
        limits: dict[str, Any] = self.volumes.quotas.limits(project_id)
        if truth('usage', req.GET.get('usage', '0')):
            used = self.volumes.quotas.usage(project_id)
            limits = {name: {'limit': limits[name], 'in_use': used[name], 'reserved': 0} for name in limits}
        return {'quota_set': {'id': project_id, **limits}}

    @route('GET', '/v3/os-quota-sets/{project_id}/defaults')
    def default_quotas(self, req: FaceRequest, project_id: str) -> dict[str, Any]:
        return {'quota_set': {'id': project_id, **DEFAULTS}}

    @route('PUT', '/v3/os-quota-sets/{project_id}', admin=True)
    def set_quotas(self, req: FaceRequest, project_id: str) -> dict[str, Any]:
        if len(project_id) > MAX_PROJECT_ID:
            raise errors.Invalid(f'A project id must not be longer than {MAX_PROJECT_ID} characters.')
        SET.check(req.document)
        return {'quota_set': self.volumes.quotas.set_limits(project_id, req.member('quota_set'))}

    @route('DELETE', '/v3/os-quota-sets/{project_id}', admin=True)
    def reset_quotas(self, req: FaceRequest, project_id: str) -> tuple[int, None]:
        self.volumes.quotas.reset(project_id)
        return 200, None
