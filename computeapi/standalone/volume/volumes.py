"""Volumes."""

from typing import Any

from computeapi import errors
from computeapi.standalone.face import FaceRequest, route
from computeapi.standalone.query import sort, truth
from computeapi.standalone.schema import body
from computeapi.standalone.volume.documents import (
    BOOLEAN,
    ID,
    NAME,
    NOTHING,
    PAIRS,
    SIZE,
    is_true,
    summary,
    volume_view,
    written_view,
)
from computeapi.standalone.volume.query import VOLUME_FILTERS, filters
from computeapi.standalone.volume.service import VolumeService, begins_at, minor, offset, page, paging

CREATE = body(
    'volume',
    {
        'size': {'anyOf': [SIZE, NOTHING]},
        'name': NAME,
        'description': NAME,
        'imageRef': ID,
        'snapshot_id': ID,
        'source_volid': ID,
        'volume_type': NAME,
        'availability_zone': NAME,
        'metadata': {'anyOf': [PAIRS, NOTHING]},
        'multiattach': {'anyOf': [BOOLEAN, NOTHING]},
        # What this service does not have can only be left out.
        'backup_id': NOTHING,
        'group_id': NOTHING,
        'consistencygroup_id': NOTHING,
    },
    extra=True,
)
UPDATE = body('volume', {'name': NAME, 'description': NAME, 'metadata': PAIRS}, extra=True)

COUNT = 45
SUMMARY = 12
SUMMARY_METADATA = 36
FORCE = 23


class VolumeRoutes(VolumeService):
    @route('GET', '/v3/volumes')
    def list_volumes(self, req: FaceRequest) -> dict[str, Any]:
        return self._list(req, summary)

    @route('GET', '/v3/volumes/detail')
    def list_volumes_in_detail(self, req: FaceRequest) -> dict[str, Any]:
        return self._list(req, volume_view)

    def _list(self, req: FaceRequest, view: Any) -> dict[str, Any]:
        wanted = filters(req.GET, VOLUME_FILTERS)
        asked = paging(req)
        found = self.volumes.list(req.context, filters=wanted, sort=sort(req.GET), offset=offset(req), **asked)
        document = page(req, 'volumes', [view(req, volume) for volume in found])
        if minor(req) >= COUNT and truth('with_count', req.GET.get('with_count', '0')):
            all_projects = asked['all_projects']
            document['count'] = self.volumes.count(req.context, filters=wanted, all_projects=all_projects)[0]
        return document

    @route('GET', '/v3/volumes/summary')
    def summarize(self, req: FaceRequest) -> dict[str, Any]:
        begins_at(req, SUMMARY)
        wanted, everybody = filters(req.GET, VOLUME_FILTERS), paging(req)['all_projects']
        count, size = self.volumes.count(req.context, filters=wanted, all_projects=everybody)
        document: dict[str, Any] = {'total_count': count, 'total_size': size}
        if minor(req) >= SUMMARY_METADATA:
            document['metadata'] = self.volumes.metadata_values(req.context, filters=wanted, all_projects=everybody)
        return {'volume-summary': document}

    @route('POST', '/v3/volumes')
    def create_volume(self, req: FaceRequest) -> tuple[int, dict[str, Any]]:
        CREATE.check(req.document)
        asked = req.member('volume')
        volume = self.volumes.create(
            req.context,
            int(asked['size']) if asked.get('size') is not None else None,
            name=asked.get('name'),
            description=asked.get('description'),
            image_id=asked.get('imageRef') or None,
            snapshot_id=asked.get('snapshot_id') or None,
            source_volume_id=asked.get('source_volid') or None,
            volume_type=asked.get('volume_type') or None,
            availability_zone=asked.get('availability_zone') or None,
            metadata=asked.get('metadata'),
            multiattach=is_true(asked.get('multiattach')),
        )
        return 202, {'volume': written_view(req, volume)}

    @route('GET', '/v3/volumes/{volume_id}')
    def show_volume(self, req: FaceRequest, volume_id: str) -> dict[str, Any]:
        return {'volume': volume_view(req, self.volumes.get(req.context, volume_id))}

    @route('PUT', '/v3/volumes/{volume_id}')
    def update_volume(self, req: FaceRequest, volume_id: str) -> dict[str, Any]:
        UPDATE.check(req.document)
        asked = req.member('volume')
        facts = {name: asked[name] for name in ('name', 'description', 'metadata') if name in asked}
        return {'volume': written_view(req, self.volumes.update(req.context, volume_id, **facts))}

    @route('DELETE', '/v3/volumes/{volume_id}')
    def delete_volume(self, req: FaceRequest, volume_id: str) -> tuple[int, None]:
        force = minor(req) >= FORCE and truth('force', req.GET.get('force', '0'))
        if force and not req.context.is_admin:
            raise errors.Forbidden('force: only an administrator may delete a volume whatever its status.')
        cascade = truth('cascade', req.GET.get('cascade', '0'))
        self.volumes.delete(req.context, volume_id, force=force, cascade=cascade)
        return 202, None
