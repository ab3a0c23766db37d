"""Groups of volumes, and group types."""

from collections.abc import Callable, Iterable
from typing import Any

from computeapi import errors
from computeapi.backends.volume.local.groups import VolumeGroup, VolumeGroupType
from computeapi.booleans import is_true
from computeapi.standalone.access import ADMIN, CALLER, WRITER
from computeapi.standalone.fields import constant, each, read, time
from computeapi.standalone.pairs import Pairs, present, without
from computeapi.standalone.query import truth
from computeapi.standalone.schema import having, wrapped
from computeapi.standalone.volume.documents import BOOLEAN, FILLED, NAME, NOTHING, ONE_PAIR, PAIRS, TEXT
from computeapi.standalone.volume.lists import GROUP_FILTERS, CinderCollection, page, window
from computeapi.standalone.volume.service import CinderController, added, argued
from computeapi.web.contract import View, attr
from computeapi.web.controller import Bounds, api_version, operation
from computeapi.web.request import Request

CREATE_TYPE = wrapped(
    'group_type',
    {'name': FILLED, 'description': NAME, 'is_public': BOOLEAN, 'group_specs': {'anyOf': [PAIRS, NOTHING]}},
    'name',
)
UPDATE_TYPE = wrapped('group_type', {'name': FILLED, 'description': NAME, 'is_public': BOOLEAN})
SPECS = having({'group_specs': PAIRS}, 'group_specs')
NO_SPEC = 'Group Type {} has no extra spec with key {}.'

TYPES = {'type': 'array', 'items': TEXT, 'minItems': 1, 'maxItems': 64, 'uniqueItems': True}
CREATE = wrapped(
    'group',
    {'name': NAME, 'description': NAME, 'group_type': TEXT, 'volume_types': TYPES, 'availability_zone': NAME},
    'group_type',
    'volume_types',
)
CHANGES = {'name': NAME, 'description': NAME, 'add_volumes': NAME, 'remove_volumes': NAME}
UPDATE = having({'group': having(CHANGES, additionalProperties=False, minProperties=1)}, 'group')
STATUSES = ('available', 'creating', 'deleting', 'error', 'error_deleting', 'updating')

GROUP_TYPE = View(each('id', 'name', 'description', 'is_public', 'group_specs'))
SUMMARY = View(each('id', 'name'))
GROUP = View(
    {
        **each('id', 'name', 'description', 'status', 'availability_zone', 'group_type'),
        'volume_types': read(lambda group: [*group.volume_types]),
        'created_at': read(lambda group: time(group.created_at)),
        'group_snapshot_id': added('3.14', constant(None)),
        'source_group_id': added('3.14', constant(None)),
        'volumes': added('3.25', read(lambda group: [*group.volumes])),
        'replication_status': added('3.38', constant('disabled')),
        'project_id': added('3.58', read(attr('project_id'))),
    }
)


class CinderGroupTypes(CinderController):
    path = '/group_types'
    versions = Bounds('3.11')

    @operation('GET', policy=CALLER)
    def list(self, req: Request) -> dict[str, Any]:
        requested = req.parameter('is_public', 'none').lower()
        filters = {} if requested == 'none' else {'is_public': truth('is_public', requested)}
        found = self.volumes.groups.kinds.list(req.context, filters=filters, **page(req))
        return {'group_types': GROUP_TYPE.render_all(req, found)}

    @operation('POST', policy=ADMIN, body=CREATE_TYPE, status=202)
    def create(self, req: Request, body: dict[str, Any]) -> dict[str, Any]:
        requested = body['group_type']
        kind = self.volumes.groups.kinds.create(
            requested['name'],
            description=requested.get('description'),
            is_public=is_true(requested.get('is_public', True)),
            group_specs=requested.get('group_specs'),
        )
        return {'group_type': GROUP_TYPE.render(req, kind)}

    @operation('GET', '/{type_id}', policy=CALLER)
    def show(self, req: Request, type_id: str) -> dict[str, Any]:
        return {'group_type': GROUP_TYPE.render(req, self.volumes.groups.kinds.get(req.context, type_id))}

    @operation('PUT', '/{type_id}', policy=ADMIN, body=UPDATE_TYPE)
    def update(self, req: Request, type_id: str, body: dict[str, Any]) -> dict[str, Any]:
        facts = dict(body['group_type'])
        if 'is_public' in facts:
            facts['is_public'] = is_true(facts['is_public'])
        return {'group_type': GROUP_TYPE.render(req, self._change(req, type_id, lambda kind: facts))}

    @operation('DELETE', '/{type_id}', policy=ADMIN, status=202)
    def delete(self, req: Request, type_id: str) -> None:
        self.volumes.groups.kinds.delete(req.context, type_id)

    @operation('GET', '/{type_id}/group_specs', policy=ADMIN)
    def list_specs(self, req: Request, type_id: str) -> dict[str, Any]:
        return {'group_specs': self.volumes.groups.kinds.get(req.context, type_id).group_specs}

    @operation('POST', '/{type_id}/group_specs', policy=ADMIN, body=SPECS, status=202)
    def add_specs(self, req: Request, type_id: str, body: dict[str, Any]) -> dict[str, Any]:
        self._change_specs(req, type_id, lambda specs: {**specs, **body['group_specs']})
        return body

    @operation('GET', '/{type_id}/group_specs/{key}', policy=ADMIN)
    def show_spec(self, req: Request, type_id: str, key: str) -> dict[str, Any]:
        specs = self.volumes.groups.kinds.get(req.context, type_id).group_specs
        return {key: present(specs, key, NO_SPEC.format(type_id, key))}

    @operation('PUT', '/{type_id}/group_specs/{key}', policy=ADMIN, body=ONE_PAIR)
    def set_spec(self, req: Request, type_id: str, key: str, body: dict[str, Any]) -> dict[str, Any]:
        present(body, key, 'Request body and URI mismatch: the body must hold the key of the path.')
        self._change_specs(req, type_id, lambda specs: {**specs, **body})
        return body

    @operation('DELETE', '/{type_id}/group_specs/{key}', policy=ADMIN, status=202)
    def remove_spec(self, req: Request, type_id: str, key: str) -> None:
        self._change_specs(req, type_id, lambda specs: without(specs, key, NO_SPEC.format(type_id, key)))

    def _change(
        self, req: Request, type_id: str, change: Callable[[VolumeGroupType], dict[str, Any]]
    ) -> VolumeGroupType:
        return self.volumes.groups.kinds.change(req.context, type_id, change)

    def _change_specs(self, req: Request, type_id: str, change: Callable[[Pairs], Pairs]) -> None:
        self._change(req, type_id, lambda kind: {'group_specs': change(kind.group_specs)})


class CinderGroups(CinderCollection):
    path = '/groups'
    versions = Bounds('3.13')
    noun, summary, detail, filters = 'groups', SUMMARY, GROUP, GROUP_FILTERS
    counted = False

    def found(self, req: Request, **options: Any) -> Iterable[VolumeGroup]:
        return self.volumes.groups.list(req.context, **window(req), **options)

    @operation('POST', policy=WRITER, body=CREATE, status=202)
    def create(self, req: Request, body: dict[str, Any]) -> dict[str, Any]:
        requested = body['group']
        zone = requested.get('availability_zone') or self.volumes.zones[0]
        if zone not in self.volumes.zones:
            raise errors.Invalid(f"Availability zone '{zone}' is invalid.")
        group = self.volumes.groups.create(
            req.context,
            requested['group_type'],
            requested['volume_types'],
            name=requested.get('name'),
            description=requested.get('description'),
            availability_zone=zone,
        )
        return {'group': SUMMARY.render(req, group)}

    @operation('GET', '/{group_id}', policy=CALLER)
    def show(self, req: Request, group_id: str) -> dict[str, Any]:
        return {'group': GROUP.render(req, self.volumes.groups.get(req.context, group_id))}

    @operation('PUT', '/{group_id}', policy=WRITER, body=UPDATE, status=202)
    def update(self, req: Request, group_id: str, body: dict[str, Any]) -> None:
        requested = dict(body['group'])
        add, remove = (_ids(requested.pop(name, None)) for name in ('add_volumes', 'remove_volumes'))
        self.volumes.groups.move(req.context, group_id, add, remove)
        self.volumes.groups.change(req.context, group_id, lambda group: requested)

    @argued('delete', {'delete-volumes': BOOLEAN})
    def delete(self, req: Request, id: str, body: dict[str, Any]) -> None:
        self.volumes.groups.delete(req.context, id, with_volumes=is_true(body.get('delete-volumes')))

    @argued('reset_status', {'status': {'type': 'string', 'enum': [*STATUSES]}}, 'status', policy=ADMIN)
    @api_version('3.20')
    def reset_status(self, req: Request, id: str, body: dict[str, Any]) -> None:
        self.volumes.groups.change(req.context, id, lambda group: {'status': body['status']})


class CinderGroupSnapshots(CinderController):
    """Snapshots of groups are not supported; the lists are empty for the sake of dashboards."""

    path = '/group_snapshots'
    versions = Bounds('3.14')

    @operation('GET', policy=CALLER)
    def list(self, req: Request) -> dict[str, Any]:
        return {'group_snapshots': []}

    @operation('GET', '/detail', policy=CALLER)
    def list_in_detail(self, req: Request) -> dict[str, Any]:
        return {'group_snapshots': []}


def _ids(text: str | None) -> list[str]:
    """IDs separated by commas."""
    return [part for part in (text or '').split(',') if part]
