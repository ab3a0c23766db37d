"""Backups of volumes."""

from collections.abc import Iterable
from typing import Any

from computeapi.backends.volume.local.backups import Backup
from computeapi.booleans import is_true
from computeapi.standalone.access import ADMIN, CALLER, WRITER
from computeapi.standalone.fields import constant, each, read, time
from computeapi.standalone.schema import optional, wrapped
from computeapi.standalone.volume.documents import BOOLEAN, NAME, NOTHING, PAIRS, TIMES, UUID, links_to
from computeapi.standalone.volume.lists import BACKUP_FILTERS, CinderCollection, window
from computeapi.standalone.volume.service import added, argued
from computeapi.web.contract import View, attr
from computeapi.web.controller import action, api_version, operation
from computeapi.web.request import Request

STATUSES = ('available', 'error')
ORDINARY = {'name': NAME, 'description': NAME, 'metadata': added('3.43', {'anyOf': [PAIRS, NOTHING]})}
CREATE = wrapped(
    'backup',
    {
        'volume_id': UUID,
        'snapshot_id': {'anyOf': [UUID, NOTHING]},
        'container': NAME,
        'incremental': BOOLEAN,
        'force': BOOLEAN,
        'availability_zone': added('3.51', NAME),
        **ORDINARY,
    },
    'volume_id',
)
UPDATE = wrapped('backup', ORDINARY)
RESTORE = wrapped('restore', {'volume_id': optional(UUID), 'name': NAME})

LINKS = links_to('backups')
SUMMARY = View({**each('id', 'name'), 'links': LINKS})
BACKUP = View(
    {
        **each('id', 'name', 'description', 'status', 'size', 'container', 'availability_zone', 'volume_id'),
        **each('snapshot_id', 'has_dependent_backups'),
        'object_count': constant(0),
        'fail_reason': constant(None),
        'is_incremental': read(lambda backup: backup.parent_id is not None),
        'data_timestamp': read(lambda backup: time(backup.data_timestamp)),
        **TIMES,
        'links': LINKS,
        'os-backup-project-attr:project_id': added('3.18', read(attr('project_id'))),
        'metadata': added('3.43', read(attr('metadata'))),
        'user_id': added('3.56', read(attr('user_id'))),
        'encryption_key_id': added('3.64', constant(None)),
    }
)


class CinderBackups(CinderCollection):
    path = '/backups'
    noun, summary, detail, filters = 'backups', SUMMARY, BACKUP, BACKUP_FILTERS

    def found(self, req: Request, **options: Any) -> Iterable[Backup]:
        return self.volumes.backups.list(req.context, **window(req), **options)

    def count(self, req: Request, **options: Any) -> int:
        return self.volumes.backups.count(req.context, **options)

    @operation('POST', policy=WRITER, body=CREATE, status=202)
    def create(self, req: Request, body: dict[str, Any]) -> dict[str, Any]:
        requested = body['backup']
        backup = self.volumes.backups.create(
            req.context,
            requested['volume_id'],
            snapshot_id=requested.get('snapshot_id'),
            incremental=is_true(requested.get('incremental')),
            force=is_true(requested.get('force')),
            name=requested.get('name'),
            description=requested.get('description'),
            container=requested.get('container'),
            metadata=requested.get('metadata'),
        )
        return {'backup': SUMMARY.render(req, backup)}

    @operation('GET', '/{backup_id}', policy=CALLER)
    def show(self, req: Request, backup_id: str) -> dict[str, Any]:
        return {'backup': BACKUP.render(req, self.volumes.backups.get(req.context, backup_id))}

    @operation('PUT', '/{backup_id}', policy=WRITER, body=UPDATE)
    @api_version('3.9')
    def update(self, req: Request, backup_id: str, body: dict[str, Any]) -> dict[str, Any]:
        facts = {name: value for name, value in body['backup'].items() if name != 'metadata' or value is not None}
        return {'backup': SUMMARY.render(req, self.volumes.backups.change(req.context, backup_id, lambda _: facts))}

    @operation('DELETE', '/{backup_id}', policy=WRITER, status=202)
    def delete(self, req: Request, backup_id: str) -> None:
        self.volumes.backups.delete(req.context, backup_id)

    @operation('POST', '/{backup_id}/restore', policy=WRITER, body=RESTORE, status=202)
    def restore(self, req: Request, backup_id: str, body: dict[str, Any]) -> dict[str, Any]:
        """Restore into the given volume, or into a new one."""
        requested, backup = body['restore'], self.volumes.backups.get(req.context, backup_id)
        if requested.get('volume_id'):
            volume = self.volumes.backups.restore(req.context, backup, requested['volume_id'])
        else:
            name = requested.get('name') or f'restore_backup_{backup_id}'
            volume = self.volumes.create(req.context, None, name=name, backup_id=backup_id)
        return {'restore': {'backup_id': backup_id, 'volume_id': volume.id, 'volume_name': volume.name}}

    @action('os-force_delete', policy=ADMIN)
    def force_delete(self, req: Request, id: str) -> None:
        self.volumes.backups.delete(req.context, id, force=True)

    @argued('os-reset_status', {'status': {'type': 'string', 'enum': [*STATUSES]}}, 'status', policy=ADMIN)
    def reset_status(self, req: Request, id: str, body: dict[str, Any]) -> None:
        self.volumes.backups.change(req.context, id, lambda backup: {'status': body['status']})
