"""Volume quotas of projects."""

from typing import Any

from computeapi import errors
from computeapi.backends.volume.local.quotas import DEFAULT_CLASS
from computeapi.standalone.access import ADMIN, CALLER
from computeapi.standalone.query import MAX_INTEGER, truth
from computeapi.standalone.schema import having
from computeapi.standalone.volume.service import CinderController
from computeapi.web.controller import operation
from computeapi.web.request import Request

NO_LIMITS = ('id', 'tenant_id')
"""Members that python-cinderclient sends along with the limits."""
LIMIT = {'type': 'integer', 'minimum': -1, 'maximum': MAX_INTEGER}
SET = having({'quota_set': having(dict.fromkeys(NO_LIMITS, {}), additionalProperties=LIMIT)}, 'quota_set')

MAX_PROJECT_ID = 64
MAX_CLASS_NAME = 255


SET_CLASS = having({'quota_class_set': having({}, additionalProperties=LIMIT)}, 'quota_class_set')


class CinderQuotas(CinderController):
    path = '/os-quota-sets/{project_id}'

    @operation('GET', policy=CALLER)
    def show(self, req: Request, project_id: str) -> dict[str, Any]:
        if project_id != req.context.project_id and not req.context.is_admin:
            raise errors.Forbidden("Policy doesn't allow the quotas of another project to be seen.")
        limits: dict[str, Any] = self.volumes.quotas.limits(project_id)
        if truth('usage', req.parameter('usage', '0')):
            used = self.volumes.quotas.usage(project_id)
            limits = {name: {'limit': limits[name], 'in_use': used[name], 'reserved': 0} for name in limits}
        return {'quota_set': {'id': project_id, **limits}}

    @operation('GET', '/defaults', policy=CALLER)
    def show_defaults(self, req: Request, project_id: str) -> dict[str, Any]:
        return {'quota_set': {'id': project_id, **self.volumes.quotas.class_limits(DEFAULT_CLASS)}}

    @operation('PUT', policy=ADMIN, body=SET)
    def update(self, req: Request, project_id: str, body: dict[str, Any]) -> dict[str, Any]:
        check_project_id(project_id)
        limits = {name: limit for name, limit in body['quota_set'].items() if name not in NO_LIMITS}
        return {'quota_set': self.volumes.quotas.set_limits(project_id, limits)}

    @operation('DELETE', policy=ADMIN)
    def reset(self, req: Request, project_id: str) -> None:
        self.volumes.quotas.reset(project_id)


def check_project_id(project_id: str) -> None:
    if len(project_id) > MAX_PROJECT_ID:
        raise errors.Invalid(f'A project id must not be longer than {MAX_PROJECT_ID} characters.')


class CinderQuotaClasses(CinderController):
    path = '/os-quota-class-sets/{class_name}'

    @operation('GET', policy=ADMIN)
    def show(self, req: Request, class_name: str) -> dict[str, Any]:
        return {'quota_class_set': {'id': class_name, **self.volumes.quotas.class_limits(class_name)}}

    @operation('PUT', policy=ADMIN, body=SET_CLASS)
    def update(self, req: Request, class_name: str, body: dict[str, Any]) -> dict[str, Any]:
        if len(class_name) > MAX_CLASS_NAME:
            raise errors.Invalid(f'The name of a class must not be longer than {MAX_CLASS_NAME} characters.')
        return {'quota_class_set': self.volumes.quotas.set_class_limits(class_name, body['quota_class_set'])}
