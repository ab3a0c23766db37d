"""Volume types, which administrators define."""

from collections.abc import Callable
from typing import Any

from computeapi import errors
from computeapi.backends.volume import VolumeType
from computeapi.booleans import is_true
from computeapi.standalone.access import ADMIN, CALLER
from computeapi.standalone.pairs import Pairs, present, without
from computeapi.standalone.query import truth
from computeapi.standalone.schema import having, optional, wrapped
from computeapi.standalone.volume.documents import (
    BOOLEAN,
    CHANGED_TYPE,
    CREATED_TYPE,
    FILLED,
    NAME,
    NOTHING,
    ONE_PAIR,
    PAIRS,
    PROJECT_ID,
    TEXT,
    TYPE,
    shown_specs,
)
from computeapi.standalone.volume.lists import page
from computeapi.standalone.volume.quotas import check_project_id
from computeapi.standalone.volume.service import CinderController, argued
from computeapi.web.controller import Bounds, operation
from computeapi.web.paging import next_link
from computeapi.web.request import Request

CREATE = wrapped(
    'volume_type',
    {
        'name': FILLED,
        'description': NAME,
        'os-volume-type-access:is_public': BOOLEAN,
        'extra_specs': {'anyOf': [PAIRS, NOTHING]},
    },
    'name',
    extra=True,
)
UPDATE = wrapped('volume_type', {'name': optional(FILLED), 'description': NAME, 'is_public': BOOLEAN})
SPECS = having({'extra_specs': PAIRS}, 'extra_specs')
DEFAULT = wrapped('default_type', {'volume_type': TEXT}, 'volume_type')
NO_DEFAULT = 'Project {} has no default volume type of its own.'
NO_SPEC = 'Volume Type {} has no extra specs with key {}.'


class CinderTypes(CinderController):
    path = '/types'

    @operation('GET', policy=CALLER)
    def list(self, req: Request) -> dict[str, Any]:
        """List types. Administrators can ask for private ones; others see the types that they may use."""
        requested = req.parameter('is_public', 'none' if not req.context.is_admin else 'true')
        public = None if requested.lower() == 'none' or not req.context.is_admin else truth('is_public', requested)
        part = page(req)
        found = self.volumes.types.list(req.context, public=public, **part)
        further = next_link(req, found, part['limit'], found[-1].id if found else '', without='offset')
        links = {'volume_type_links': further} if further else {}
        return {'volume_types': TYPE.render_all(req, found), **links}

    @operation('GET', '/default', policy=CALLER)
    def show_default(self, req: Request) -> dict[str, Any]:
        return {'volume_type': TYPE.render(req, self.volumes.types.default(req.context.project_id or ''))}

    @operation('POST', policy=ADMIN, body=CREATE)
    def create(self, req: Request, body: dict[str, Any]) -> dict[str, Any]:
        requested = body['volume_type']
        kind = self.volumes.types.create(
            requested['name'],
            description=requested.get('description'),
            is_public=is_true(requested.get('os-volume-type-access:is_public', True)),
            extra_specs=requested.get('extra_specs'),
        )
        return {'volume_type': CREATED_TYPE.render(req, kind)}

    @operation('GET', '/{type_id}', policy=CALLER)
    def show(self, req: Request, type_id: str) -> dict[str, Any]:
        return {'volume_type': TYPE.render(req, self._type(req, type_id))}

    @operation('PUT', '/{type_id}', policy=ADMIN, body=UPDATE)
    def update(self, req: Request, type_id: str, body: dict[str, Any]) -> dict[str, Any]:
        facts = {name: value for name, value in body['volume_type'].items() if value is not None}
        if not facts:
            raise errors.Invalid('Specify volume type name, description, is_public or a combination thereof.')
        if 'is_public' in facts:
            facts['is_public'] = is_true(facts['is_public'])
        kind = self.volumes.types.change(self._type(req, type_id).id, lambda kind: facts)
        return {'volume_type': CHANGED_TYPE.render(req, kind)}

    @operation('DELETE', '/{type_id}', policy=ADMIN, status=202)
    def delete(self, req: Request, type_id: str) -> None:
        self.volumes.types.delete(self._type(req, type_id).id)

    @operation('GET', '/{type_id}/extra_specs', policy=CALLER)
    def list_specs(self, req: Request, type_id: str) -> dict[str, Any]:
        return {'extra_specs': shown_specs(req)(self._type(req, type_id))}

    @operation('POST', '/{type_id}/extra_specs', policy=ADMIN, body=SPECS)
    def add_specs(self, req: Request, type_id: str, body: dict[str, Any]) -> dict[str, Any]:
        self._change_specs(req, type_id, lambda specs: {**specs, **body['extra_specs']})
        return {'extra_specs': body['extra_specs']}

    @operation('GET', '/{type_id}/extra_specs/{key}', policy=CALLER)
    def show_spec(self, req: Request, type_id: str, key: str) -> dict[str, Any]:
        return {key: present(shown_specs(req)(self._type(req, type_id)), key, NO_SPEC.format(type_id, key))}

    @operation('PUT', '/{type_id}/extra_specs/{key}', policy=ADMIN, body=ONE_PAIR)
    def set_spec(self, req: Request, type_id: str, key: str, body: dict[str, Any]) -> dict[str, Any]:
        if key not in body:
            raise errors.Invalid('Request body and URI mismatch: the body must hold the key of the path.')
        self._change_specs(req, type_id, lambda specs: {**specs, **body})
        return body

    @operation('DELETE', '/{type_id}/extra_specs/{key}', policy=ADMIN, status=202)
    def remove_spec(self, req: Request, type_id: str, key: str) -> None:
        self._change_specs(req, type_id, lambda specs: without(specs, key, NO_SPEC.format(type_id, key)))

    @operation('GET', '/{type_id}/os-volume-type-access', policy=ADMIN)
    def list_access(self, req: Request, type_id: str) -> dict[str, Any]:
        projects = self.volumes.types.projects(self._type(req, type_id).id)
        return {'volume_type_access': [{'volume_type_id': type_id, 'project_id': project} for project in projects]}

    @argued('addProjectAccess', {'project': PROJECT_ID}, 'project', policy=ADMIN)
    def grant(self, req: Request, id: str, body: dict[str, Any]) -> None:
        self.volumes.types.grant(self._type(req, id).id, body['project'])

    @argued('removeProjectAccess', {'project': PROJECT_ID}, 'project', policy=ADMIN)
    def revoke(self, req: Request, id: str, body: dict[str, Any]) -> None:
        self.volumes.types.revoke(self._type(req, id).id, body['project'])

    def _type(self, req: Request, type_id: str) -> VolumeType:
        """The type, by ID only: clients look up a name in the list after it was not found as an ID."""
        kind = self.volumes.types.get(req.context, type_id)
        if kind.id != type_id:
            raise errors.VolumeTypeNotFound(id=type_id)
        return kind

    def _change_specs(self, req: Request, type_id: str, change: Callable[[Pairs], Pairs]) -> None:
        found = self._type(req, type_id)
        self.volumes.types.change(found.id, lambda kind: {'extra_specs': change(kind.extra_specs)})


class CinderDefaultTypes(CinderController):
    """Types of volumes that name none, in projects that have their own default."""

    path = '/default-types'
    versions = Bounds('3.62')

    @operation('GET', policy=ADMIN)
    def list(self, req: Request) -> dict[str, Any]:
        return {'default_types': [_default(*each) for each in self.volumes.types.defaults().items()]}

    @operation('GET', '/{project_id}', policy=ADMIN)
    def show(self, req: Request, project_id: str) -> dict[str, Any]:
        defaults = self.volumes.types.defaults(project_id=project_id)
        return {'default_type': _default(project_id, present(defaults, project_id, NO_DEFAULT.format(project_id)))}

    @operation('PUT', '/{project_id}', policy=ADMIN, body=DEFAULT)
    def update(self, req: Request, project_id: str, body: dict[str, Any]) -> dict[str, Any]:
        check_project_id(project_id)
        try:
            kind = self.volumes.types.get(req.context, body['default_type']['volume_type'])
        except errors.VolumeTypeNotFound as error:
            raise errors.Invalid(str(error)) from None
        self.volumes.types.set_default(project_id, kind.id)
        return {'default_type': _default(project_id, kind.id)}

    @operation('DELETE', '/{project_id}', policy=ADMIN, status=204)
    def delete(self, req: Request, project_id: str) -> None:
        check_project_id(project_id)
        self.volumes.types.set_default(project_id, None)


def _default(project_id: str, type_id: str) -> dict[str, str]:
    return {'project_id': project_id, 'volume_type_id': type_id}
