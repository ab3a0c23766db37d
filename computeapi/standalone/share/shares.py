"""Shares, their export locations, and the share type."""

from typing import Any

from computeapi import errors
from computeapi.backends.share import ZONE
from computeapi.backends.share.local import MAX_PAIRS
from computeapi.booleans import spoken
from computeapi.db.listing import MAX_PAGE
from computeapi.standalone.access import CALLER, WRITER
from computeapi.standalone.query import number, sort, truth
from computeapi.standalone.schema import wrapped
from computeapi.standalone.share.documents import SHARE, SHARE_SUMMARY, TYPE, TYPE_ID, export_location
from computeapi.standalone.share.service import ManilaController
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
UPDATABLE = {'display_name': NAME, 'display_description': NAME, 'is_public': BOOLEAN}
CREATE = wrapped(
    'share',
    {
        'share_proto': {'enum': ['NFS', 'CIFS', 'GLUSTERFS', 'HDFS', 'CEPHFS', 'MAPRFS', 'nfs', 'cephfs']},
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
COLUMNS = {'display_name': 'name', 'display_description': 'description', 'share_proto': 'protocol'}
FILTERS = ('name', 'status', 'user_id', 'project_id', 'share_proto')


class ManilaShares(ManilaController):
    path = '/shares'

    @operation('GET', policy=CALLER)
    def list(self, req: Request) -> dict[str, Any]:
        return self._list(req, SHARE_SUMMARY)

    @operation('GET', '/detail', policy=CALLER)
    def list_in_detail(self, req: Request) -> dict[str, Any]:
        return self._list(req, SHARE)

    def _list(self, req: Request, view: View) -> dict[str, Any]:
        filters = {COLUMNS.get(name, name): req.parameter(name) for name in FILTERS if req.parameter(name)}
        if truth('is_soft_deleted', req.parameter('is_soft_deleted') or '0'):
            # Clients also look up names among soft-deleted shares; this service deletes shares at once.
            return {'shares': []}
        found = self.shares.list(
            req.context,
            filters=filters,
            sort=sort(req),
            limit=min(number('limit', req.parameter('limit') or str(MAX_PAGE)), MAX_PAGE),
            offset=number('offset', req.parameter('offset') or '0'),
            public=truth('is_public', req.parameter('is_public') or '0'),
            all_projects=truth('all_tenants', req.parameter('all_tenants') or '0'),
        )
        return {'shares': view.render_all(req, found)}

    @operation('POST', policy=WRITER, body=CREATE)
    def create(self, req: Request, body: dict[str, Any]) -> dict[str, Any]:
        asked = body['share']
        if asked.get('share_type') not in (None, '', TYPE_ID, TYPE['name']):
            raise errors.NotFound(f'Share type {asked["share_type"]} could not be found.')
        if asked.get('availability_zone') not in (None, '', ZONE):
            raise errors.NotFound(f'Availability zone {asked["availability_zone"]} could not be found.')
        share = self.shares.create(
            req.context,
            asked['size'],
            asked['share_proto'].upper(),
            name=asked.get('name'),
            description=asked.get('description'),
            metadata=asked.get('metadata') or {},
            is_public=spoken(asked.get('is_public')),
        )
        return {'share': SHARE.render(req, share)}

    @operation('GET', '/{share_id}', policy=CALLER)
    def show(self, req: Request, share_id: str) -> dict[str, Any]:
        return {'share': SHARE.render(req, self.shares.get(req.context, share_id))}

    @operation('PUT', '/{share_id}', policy=WRITER, body=UPDATE)
    def update(self, req: Request, share_id: str, body: dict[str, Any]) -> dict[str, Any]:
        facts = {COLUMNS.get(name, name): value for name, value in body['share'].items() if name in UPDATABLE}
        if 'is_public' in facts:
            facts['is_public'] = spoken(facts['is_public'])
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
        return {'share_types': [TYPE], 'volume_types': [TYPE]}

    @operation('GET', '/default', policy=CALLER)
    def show_default(self, req: Request) -> dict[str, Any]:
        return {'share_type': TYPE, 'volume_type': TYPE}

    @operation('GET', '/{type_id}', policy=CALLER)
    def show(self, req: Request, type_id: str) -> dict[str, Any]:
        if type_id != TYPE_ID:
            raise errors.NotFound(f'Share type {type_id} could not be found.')
        return {'share_type': TYPE, 'volume_type': TYPE}
