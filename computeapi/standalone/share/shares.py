"""Shares, their export locations, and the share type."""

from collections.abc import Mapping
from typing import Any

from computeapi import errors
from computeapi.backends.share import ZONE
from computeapi.backends.share.local import MAX_PAIRS
from computeapi.db.listing import MAX_PAGE
from computeapi.standalone.access import CALLER, WRITER
from computeapi.standalone.query import mapping, number, sort, truth
from computeapi.standalone.schema import wrapped
from computeapi.standalone.share.documents import (
    EXTRA_SPECS,
    SHARE,
    SHARE_SUMMARY,
    TYPE,
    TYPE_ID,
    TYPE_NAME,
    export_location,
)
from computeapi.standalone.share.service import ManilaController, added
from computeapi.web.contract import View
from computeapi.web.controller import api_version, operation
from computeapi.web.request import Request

NAME = {'type': ['string', 'null'], 'maxLength': 255}
BOOLEAN = {'type': ['boolean', 'string', 'null'], 'maxLength': 8}
PAIRS = {
    'type': ['object', 'null'],
    'propertyNames': {'minLength': 1, 'maxLength': 255},
    'additionalProperties': {'type': 'string', 'maxLength': 1023},
    'maxProperties': MAX_PAIRS,
}
NOTHING = {'enum': [None, '']}
PROTOCOLS = ('NFS', 'CIFS', 'GLUSTERFS', 'HDFS', 'CEPHFS', 'MAPRFS')
UPDATABLE = {'display_name': NAME, 'display_description': NAME, 'is_public': BOOLEAN}
CREATE = wrapped(
    'share',
    {
        'share_proto': {'enum': [*PROTOCOLS, *map(str.lower, PROTOCOLS)]},
        'size': {'type': 'integer', 'minimum': 1, 'maximum': 2**31 - 1},
        'name': NAME,
        'description': NAME,
        'metadata': PAIRS,
        'is_public': BOOLEAN,
        # Unsupported features: only empty values are accepted.
        'snapshot_id': NOTHING,
        'share_network_id': NOTHING,
        'share_group_id': NOTHING,
    },
    'share_proto',
    'size',
    extra=True,
)
UPDATE = wrapped('share', UPDATABLE, extra=True)
COLUMNS = {'display_name': 'name', 'display_description': 'description'}
FILTERS = {
    **{name: name for name in ('name', 'status', 'user_id', 'project_id', 'metadata')},
    **COLUMNS,
    'share_proto': 'protocol',
    'export_location_id': added('2.35', 'id'),
    'export_location_path': added('2.35', 'export_location'),
    'description': added('2.36', 'description'),
    'name~': added('2.36', 'name~'),
    'description~': added('2.36', 'description~'),
    'availability_zone': added('2.97', 'availability_zone'),
}
"""Filters of lists, each with what it compares; ~ compares a part."""
UNMATCHED = (
    'share_network_id',
    'share_server_id',
    'snapshot_id',
    'share_group_id',
    'share_group_snapshot_id',
    'mount_point_name',
)
"""Filters for features that no share here has."""
LISTING = {'filters': FILTERS, 'with_count': added('2.42', True)}


class ManilaShares(ManilaController):
    path = '/shares'

    @operation('GET', policy=CALLER, behaviour=LISTING)
    def list(self, req: Request) -> dict[str, Any]:
        return self._list(req, SHARE_SUMMARY)

    @operation('GET', '/detail', policy=CALLER, behaviour=LISTING)
    def list_in_detail(self, req: Request) -> dict[str, Any]:
        return self._list(req, SHARE)

    def _list(self, req: Request, view: View) -> dict[str, Any]:
        requested: dict[str, Any] = {
            'filters': filters_of(req),
            'public': truth('is_public', req.parameter('is_public') or '0'),
            'all_projects': truth('all_tenants', req.parameter('all_tenants') or '0'),
        }
        limit = min(number('limit', req.parameter('limit') or str(MAX_PAGE)), MAX_PAGE)
        offset = number('offset', req.parameter('offset') or '0')
        found = self.shares.list(req.context, **requested, sort=sort(req), limit=limit, offset=offset)
        document: dict[str, Any] = {'shares': view.render_all(req, found)}
        if req.behaviour.with_count and truth('with_count', req.parameter('with_count') or '0'):
            document['count'] = self.shares.count(req.context, **requested)
        return document

    @operation('POST', policy=WRITER, body=CREATE)
    def create(self, req: Request, body: dict[str, Any]) -> dict[str, Any]:
        requested = body['share']
        if requested.get('share_type') not in (None, '', TYPE_ID, TYPE_NAME):
            raise errors.NotFound(f'Share type {requested["share_type"]} could not be found.')
        if requested.get('availability_zone') not in (None, '', ZONE):
            raise errors.NotFound(f'Availability zone {requested["availability_zone"]} could not be found.')
        share = self.shares.create(
            req.context,
            requested['size'],
            requested['share_proto'].upper(),
            name=requested.get('name'),
            description=requested.get('description'),
            metadata=requested.get('metadata') or {},
            is_public=is_public(requested),
        )
        return {'share': SHARE.render(req, share)}

    @operation('GET', '/{share_id}', policy=CALLER)
    def show(self, req: Request, share_id: str) -> dict[str, Any]:
        return {'share': SHARE.render(req, self.shares.get(req.context, share_id))}

    @operation('PUT', '/{share_id}', policy=WRITER, body=UPDATE)
    def update(self, req: Request, share_id: str, body: dict[str, Any]) -> dict[str, Any]:
        facts = {COLUMNS.get(name, name): value for name, value in body['share'].items() if name in UPDATABLE}
        if 'is_public' in facts:
            facts['is_public'] = is_public(facts)
        return {'share': SHARE.render(req, self.shares.update(req.context, share_id, **facts))}

    @operation('DELETE', '/{share_id}', policy=WRITER, status=202)
    def delete(self, req: Request, share_id: str) -> None:
        self.shares.delete(req.context, share_id)

    @operation('GET', '/{share_id}/export_locations', policy=CALLER)
    @api_version('2.9')
    def list_export_locations(self, req: Request, share_id: str) -> dict[str, Any]:
        return {'export_locations': [export_location(self.shares.get(req.context, share_id))]}

    @operation('GET', '/{share_id}/export_locations/{id}', policy=CALLER)
    @api_version('2.9')
    def show_export_location(self, req: Request, share_id: str, id: str) -> dict[str, Any]:
        found = export_location(self.shares.get(req.context, share_id))
        if found['id'] != id:
            raise errors.NotFound(f'Export location {id} could not be found.')
        return {'export_location': found}


class ManilaTypes(ManilaController):
    path = '/types'

    @operation('GET', policy=CALLER)
    def list(self, req: Request) -> dict[str, Any]:
        types = TYPE.render_all(req, [None])
        return {'share_types': types, 'volume_types': types}

    @operation('GET', '/default', policy=CALLER)
    def show_default(self, req: Request) -> dict[str, Any]:
        return self.show(req, TYPE_ID)

    @operation('GET', '/{type_id}', policy=CALLER)
    def show(self, req: Request, type_id: str) -> dict[str, Any]:
        if type_id != TYPE_ID:
            raise errors.NotFound(f'Share type {type_id} could not be found.')
        only = TYPE.render(req, None)
        return {'share_type': only, 'volume_type': only}


def is_public(requested: Mapping[str, Any]) -> bool:
    return truth('is_public', str(requested.get('is_public') or False))


def filters_of(req: Request) -> dict[str, Any]:
    """The filters that the query names, in the terms of the shares; the others of this version match everything."""
    filters: dict[str, Any] = {
        column: req.parameter(name) for name, column in req.behaviour.filters.items() if req.parameter(name)
    }
    if 'metadata' in filters:
        filters['metadata'] = mapping('metadata', filters['metadata'])
    # Clients also look up names among soft-deleted shares; this service deletes shares at once.
    deleted = truth('is_soft_deleted', req.parameter('is_soft_deleted') or '0')
    other_type = (
        req.parameter('share_type_id') not in (None, '', TYPE_ID)
        or not mapping('extra_specs', req.parameter('extra_specs') or '{}').items() <= EXTRA_SPECS.items()
    )
    if deleted or other_type or any(map(req.parameter, UNMATCHED)):
        filters['id'] = []
    return filters
