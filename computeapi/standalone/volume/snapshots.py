"""Snapshots of volumes."""

from typing import Any

from computeapi import errors
from computeapi.standalone.face import FaceRequest, route
from computeapi.standalone.query import sort, truth
from computeapi.standalone.schema import Schema, body
from computeapi.standalone.volume.documents import (
    BOOLEAN,
    NAME,
    NOTHING,
    PAIRS,
    UUID,
    is_true,
    snapshot_summary,
    snapshot_view,
)
from computeapi.standalone.volume.query import SNAPSHOT_FILTERS, filters
from computeapi.standalone.volume.service import VolumeService, minor, offset, page, paging

CREATE = body(
    'snapshot',
    {
        'volume_id': UUID,
        'name': NAME,
        'description': NAME,
        'force': {'anyOf': [BOOLEAN, NOTHING]},
        'metadata': {'anyOf': [PAIRS, NOTHING]},
    },
    required=('volume_id',),
    extra=True,
)
UPDATE = body('snapshot', {'name': NAME, 'description': NAME}, extra=True)

STATUSES = ('available', 'creating', 'deleting', 'error', 'error_deleting')
RESET = {
    'type': 'object',
    'properties': {'status': {'type': 'string', 'enum': list(STATUSES)}},
    'required': ['status'],
}
ACTION = Schema(
    {
        'type': 'object',
        'properties': {'os-reset_status': RESET, 'os-force_delete': {}},
        'additionalProperties': False,
        'minProperties': 1,
        'maxProperties': 1,
    }
)

COUNT = 45
ALWAYS_FORCED = 66


class SnapshotRoutes(VolumeService):
    @route('GET', '/v3/snapshots')
    def list_snapshots(self, req: FaceRequest) -> dict[str, Any]:
        return self._list_snapshots(req, snapshot_summary)

    @route('GET', '/v3/snapshots/detail')
    def list_snapshots_in_detail(self, req: FaceRequest) -> dict[str, Any]:
        return self._list_snapshots(req, snapshot_view)

    def _list_snapshots(self, req: FaceRequest, view: Any) -> dict[str, Any]:
        wanted, asked = filters(req.GET, SNAPSHOT_FILTERS), paging(req)
        order, begin = sort(req.GET), offset(req)
        found = self.volumes.list_snapshots(req.context, filters=wanted, sort=order, offset=begin, **asked)
        document = page(req, 'snapshots', [view(req, snapshot) for snapshot in found])
        if minor(req) >= COUNT and truth('with_count', req.GET.get('with_count', '0')):
            everybody = asked['all_projects']
            document['count'] = self.volumes.count_snapshots(req.context, filters=wanted, all_projects=everybody)
        return document

    @route('POST', '/v3/snapshots')
    def create_snapshot(self, req: FaceRequest) -> tuple[int, dict[str, Any]]:
        CREATE.check(req.document)
        asked = req.member('snapshot')
        snapshot = self.volumes.create_snapshot(
            req.context,
            asked['volume_id'],
            name=asked.get('name'),
            description=asked.get('description'),
            force=_force(req, asked.get('force')),
            metadata=asked.get('metadata'),
        )
        return 202, {'snapshot': snapshot_summary(req, snapshot)}

    @route('GET', '/v3/snapshots/{snapshot_id}')
    def show_snapshot(self, req: FaceRequest, snapshot_id: str) -> dict[str, Any]:
        return {'snapshot': snapshot_view(req, self.volumes.get_snapshot(req.context, snapshot_id))}

    @route('PUT', '/v3/snapshots/{snapshot_id}')
    def update_snapshot(self, req: FaceRequest, snapshot_id: str) -> dict[str, Any]:
        UPDATE.check(req.document)
        asked = req.member('snapshot')
        facts: dict[str, Any] = {name: asked[name] for name in ('name', 'description') if name in asked}
        snapshot = self.volumes.change_snapshot(req.context, snapshot_id, lambda snapshot: facts)
        return {'snapshot': snapshot_summary(req, snapshot)}

    @route('DELETE', '/v3/snapshots/{snapshot_id}')
    def delete_snapshot(self, req: FaceRequest, snapshot_id: str) -> tuple[int, None]:
        self.volumes.delete_snapshot(req.context, snapshot_id)
        return 202, None

    @route('POST', '/v3/snapshots/{snapshot_id}/action', admin=True)
    def act_on_snapshot(self, req: FaceRequest, snapshot_id: str) -> tuple[int, None]:
        ACTION.check(req.document)
        if 'os-force_delete' in req.document:
            self.volumes.delete_snapshot(req.context, snapshot_id, force=True)
        else:
            status = req.document['os-reset_status']['status']
            self.volumes.change_snapshot(req.context, snapshot_id, lambda snapshot: {'status': status})
        return 202, None


def _force(req: FaceRequest, given: Any) -> bool:
    """Whether a volume in use may be snapshot too; since 3.66 that goes without saying, and cannot be denied."""
    if minor(req) < ALWAYS_FORCED:
        return is_true(given)
    if given is not None and not is_true(given):
        raise errors.Invalid('force: since microversion 3.66 it cannot be false.')
    return True
