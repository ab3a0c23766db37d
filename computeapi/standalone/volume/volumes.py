"""Volumes."""

from collections.abc import Iterable
from typing import Any

from computeapi import errors
from computeapi.backends.volume import Volume
from computeapi.booleans import is_true
from computeapi.standalone.access import CALLER, WRITER
from computeapi.standalone.query import truth
from computeapi.standalone.schema import wrapped
from computeapi.standalone.volume.documents import (
    BOOLEAN,
    ID,
    NAME,
    NOTHING,
    PAIRS,
    SIZE,
    VOLUME,
    VOLUME_SUMMARY,
    WRITTEN_VOLUME,
)
from computeapi.standalone.volume.lists import VOLUME_FILTERS, CinderCollection, window
from computeapi.standalone.volume.service import added
from computeapi.web.controller import api_version, operation
from computeapi.web.request import Request

CREATE = wrapped(
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
        'backup_id': added('3.47', ID),
        'group_id': added('3.13', ID),
        # Unsupported features: only null is accepted.
        'consistencygroup_id': NOTHING,
    },
    extra=True,
)
UPDATABLE = {'name': NAME, 'description': NAME, 'metadata': PAIRS}
UPDATE = wrapped('volume', UPDATABLE, extra=True)


class CinderVolumeResources(CinderCollection):
    path = '/volumes'
    noun, summary, detail, filters = 'volumes', VOLUME_SUMMARY, VOLUME, VOLUME_FILTERS

    def found(self, req: Request, **options: Any) -> Iterable[Volume]:
        return self.volumes.list(req.context, **window(req), **options)

    def count(self, req: Request, **options: Any) -> int:
        return self.volumes.count(req.context, **options)

    @operation('GET', '/summary', policy=CALLER, behaviour={'metadata': added('3.36', True)})
    @api_version('3.12')
    def summarize(self, req: Request) -> dict[str, Any]:
        options = self.search_options(req)
        count, size = self.volumes.totals(req.context, **options)
        document: dict[str, Any] = {'total_count': count, 'total_size': size}
        if req.behaviour.metadata:
            document['metadata'] = self.volumes.metadata_values(req.context, **options)
        return {'volume-summary': document}

    @operation('POST', policy=WRITER, body=CREATE, status=202)
    def create(self, req: Request, body: dict[str, Any]) -> dict[str, Any]:
        requested = body['volume']
        volume = self.volumes.create(
            req.context,
            int(requested['size']) if requested.get('size') is not None else None,
            name=requested.get('name'),
            description=requested.get('description'),
            image_id=requested.get('imageRef') or None,
            snapshot_id=requested.get('snapshot_id') or None,
            source_volume_id=requested.get('source_volid') or None,
            volume_type=requested.get('volume_type') or None,
            availability_zone=requested.get('availability_zone') or None,
            metadata=requested.get('metadata'),
            multiattach=is_true(requested.get('multiattach')),
            backup_id=requested.get('backup_id') or None,
            group_id=requested.get('group_id') or None,
        )
        return {'volume': WRITTEN_VOLUME.render(req, volume)}

    @operation('GET', '/{volume_id}', policy=CALLER)
    def show(self, req: Request, volume_id: str) -> dict[str, Any]:
        return {'volume': VOLUME.render(req, self.volumes.get(req.context, volume_id))}

    @operation('PUT', '/{volume_id}', policy=WRITER, body=UPDATE)
    def update(self, req: Request, volume_id: str, body: dict[str, Any]) -> dict[str, Any]:
        facts = {name: value for name, value in body['volume'].items() if name in UPDATABLE}
        return {'volume': WRITTEN_VOLUME.render(req, self.volumes.update(req.context, volume_id, **facts))}

    @operation('DELETE', '/{volume_id}', policy=WRITER, status=202, behaviour={'force': added('3.23', True)})
    def delete(self, req: Request, volume_id: str) -> None:
        force = bool(req.behaviour.force) and truth('force', req.parameter('force', '0'))
        if force and not req.context.is_admin:
            raise errors.Forbidden('force: only an administrator may delete a volume whatever its status.')
        cascade = truth('cascade', req.parameter('cascade', '0'))
        self.volumes.delete(req.context, volume_id, force=force, cascade=cascade)
