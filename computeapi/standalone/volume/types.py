"""Kinds of volumes, which administrators define."""

from typing import Any

from computeapi import errors
from computeapi.backends.volume import VolumeType
from computeapi.standalone.face import FaceRequest, route
from computeapi.standalone.query import truth
from computeapi.standalone.schema import Schema, body
from computeapi.standalone.volume.documents import (
    BOOLEAN,
    NAME,
    PAIRS,
    PROJECT_ID,
    is_true,
    type_view,
    written_type_view,
)
from computeapi.standalone.volume.service import VolumeService

TYPE_NAME = {'type': 'string', 'minLength': 1, 'maxLength': 255}

CREATE = body(
    'volume_type',
    {
        'name': TYPE_NAME,
        'description': NAME,
        'os-volume-type-access:is_public': BOOLEAN,
        'extra_specs': {'anyOf': [PAIRS, {'type': 'null'}]},
    },
    required=('name',),
    extra=True,
)
UPDATE = body('volume_type', {'name': TYPE_NAME, 'description': NAME, 'is_public': BOOLEAN})
SPECS = Schema({'type': 'object', 'properties': {'extra_specs': PAIRS}, 'required': ['extra_specs']})
SPEC = Schema(PAIRS | {'minProperties': 1, 'maxProperties': 1})

PROJECT = {'type': 'object', 'properties': {'project': PROJECT_ID}, 'required': ['project']}
ACCESS = Schema(
    {
        'type': 'object',
        'properties': {'addProjectAccess': PROJECT, 'removeProjectAccess': PROJECT},
        'additionalProperties': False,
        'minProperties': 1,
        'maxProperties': 1,
    }
)


class TypeRoutes(VolumeService):
    @route('GET', '/v3/types')
    def list_types(self, req: FaceRequest) -> dict[str, Any]:
        """An administrator sees the private ones when it asks for them; others see those that they may use."""
        asked = req.GET.get('is_public', 'none' if not req.context.is_admin else 'true')
        public = None if asked.lower() == 'none' or not req.context.is_admin else truth('is_public', asked)
        return {'volume_types': [type_view(kind) for kind in self.volumes.types.list(req.context, public=public)]}

    @route('GET', '/v3/types/default')
    def default_type(self, req: FaceRequest) -> dict[str, Any]:
        return {'volume_type': type_view(self.volumes.types.default())}

    @route('POST', '/v3/types', admin=True)
    def create_type(self, req: FaceRequest) -> dict[str, Any]:
        CREATE.check(req.document)
        asked = req.member('volume_type')
        kind = self.volumes.types.create(
            asked['name'],
            description=asked.get('description'),
            is_public=is_true(asked.get('os-volume-type-access:is_public', True)),
            extra_specs=asked.get('extra_specs'),
        )
        return {'volume_type': written_type_view(kind)}

    @route('GET', '/v3/types/{type_id}')
    def show_type(self, req: FaceRequest, type_id: str) -> dict[str, Any]:
        return {'volume_type': type_view(self._type(req, type_id))}

    @route('PUT', '/v3/types/{type_id}', admin=True)
    def update_type(self, req: FaceRequest, type_id: str) -> dict[str, Any]:
        UPDATE.check(req.document)
        facts = dict(req.member('volume_type'))
        if 'is_public' in facts:
            facts['is_public'] = is_true(facts['is_public'])
        kind = self.volumes.types.change(self._type(req, type_id).id, lambda kind: facts)
        return {'volume_type': written_type_view(kind)}

    @route('DELETE', '/v3/types/{type_id}', admin=True)
    def delete_type(self, req: FaceRequest, type_id: str) -> tuple[int, None]:
        self.volumes.types.delete(self._type(req, type_id).id)
        return 202, None

    @route('GET', '/v3/types/{type_id}/extra_specs')
    def list_specs(self, req: FaceRequest, type_id: str) -> dict[str, Any]:
        return {'extra_specs': self._type(req, type_id).extra_specs}

    @route('POST', '/v3/types/{type_id}/extra_specs', admin=True)
    def add_specs(self, req: FaceRequest, type_id: str) -> dict[str, Any]:
        SPECS.check(req.document)
        given = req.member('extra_specs')
        self._add_specs(req, type_id, given)
        return {'extra_specs': given}

    @route('GET', '/v3/types/{type_id}/extra_specs/{key}')
    def show_spec(self, req: FaceRequest, type_id: str, key: str) -> dict[str, Any]:
        specs = self._type(req, type_id).extra_specs
        _check_spec(type_id, specs, key)
        return {key: specs[key]}

    @route('PUT', '/v3/types/{type_id}/extra_specs/{key}', admin=True)
    def set_spec(self, req: FaceRequest, type_id: str, key: str) -> dict[str, Any]:
        SPEC.check(req.document)
        if key not in req.document:
            raise errors.Invalid('Request body and URI mismatch: the body must hold the key of the path.')
        self._add_specs(req, type_id, req.document)
        return req.document

    @route('DELETE', '/v3/types/{type_id}/extra_specs/{key}', admin=True)
    def remove_spec(self, req: FaceRequest, type_id: str, key: str) -> tuple[int, None]:
        def change(kind: VolumeType) -> dict[str, Any]:
            _check_spec(type_id, kind.extra_specs, key)
            return {'extra_specs': {name: value for name, value in kind.extra_specs.items() if name != key}}

        self.volumes.types.change(self._type(req, type_id).id, change)
        return 202, None

    @route('GET', '/v3/types/{type_id}/os-volume-type-access', admin=True)
    def list_access(self, req: FaceRequest, type_id: str) -> dict[str, Any]:
        projects = self.volumes.types.projects(self._type(req, type_id).id)
        return {'volume_type_access': [{'volume_type_id': type_id, 'project_id': project} for project in projects]}

    @route('POST', '/v3/types/{type_id}/action', admin=True)
    def change_access(self, req: FaceRequest, type_id: str) -> tuple[int, None]:
        ACCESS.check(req.document)
        kind = self._type(req, type_id)
        if 'addProjectAccess' in req.document:
            self.volumes.types.grant(kind.id, req.document['addProjectAccess']['project'])
        else:
            self.volumes.types.revoke(kind.id, req.document['removeProjectAccess']['project'])
        return 202, None

    @route('GET', '/v3/types/{type_id}/encryption', admin=True)
    def show_encryption(self, req: FaceRequest, type_id: str) -> dict[str, Any]:
        """No volume is encrypted here."""
        self._type(req, type_id)
        return {}

    @route('GET', '/v3/qos-specs', admin=True)
    def list_qos_specs(self, req: FaceRequest) -> dict[str, Any]:
        return {'qos_specs': []}

    def _type(self, req: FaceRequest, type_id: str) -> VolumeType:
        """By id only: clients look for a name in the list after it was not found as an id."""
        kind = self.volumes.types.get(req.context, type_id)
        if kind.id != type_id:
            raise errors.VolumeTypeNotFound(id=type_id)
        return kind

    def _add_specs(self, req: FaceRequest, type_id: str, given: dict[str, str]) -> None:
        def change(kind: VolumeType) -> dict[str, Any]:
            return {'extra_specs': {**kind.extra_specs, **given}}

        self.volumes.types.change(self._type(req, type_id).id, change)


def _check_spec(type_id: str, specs: Any, key: str) -> None:
    if key not in specs:
        raise errors.NotFound(f'Volume Type {type_id} has no extra specs with key {key}.')
