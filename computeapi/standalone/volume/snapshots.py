"""Snapshots of volumes."""

from collections.abc import Iterable
from typing import Any

from computeapi import errors
from computeapi.backends.volume import Snapshot
from computeapi.booleans import is_true
from computeapi.standalone.access import ADMIN, CALLER, WRITER
from computeapi.standalone.schema import wrapped
from computeapi.standalone.volume.documents import BOOLEAN, NAME, NOTHING, PAIRS, SNAPSHOT, SNAPSHOT_SUMMARY, UUID
from computeapi.standalone.volume.lists import SNAPSHOT_FILTERS, CinderCollection, window
from computeapi.standalone.volume.service import added, argued
from computeapi.web.controller import action, operation
from computeapi.web.request import Request

CREATE = wrapped(
    'snapshot',
    {
        'volume_id': {'anyOf': [UUID, NOTHING]},
        'name': NAME,
        'description': NAME,
        'force': {'anyOf': [BOOLEAN, NOTHING]},
        'metadata': {'anyOf': [PAIRS, NOTHING]},
    },
    'volume_id',
    extra=True,
)
UPDATABLE = {'name': NAME, 'description': NAME}
UPDATE = wrapped('snapshot', UPDATABLE, extra=True)

REPORT = {
    'status': {'type': 'string', 'maxLength': 255},
    'progress': {'anyOf': [{'type': 'string', 'pattern': '^(100|[0-9]{1,2})%$'}, NOTHING]},
}
STATUSES = ('available', 'creating', 'deleting', 'error', 'error_deleting')


class CinderSnapshots(CinderCollection):
    path = '/snapshots'
    noun, summary, detail, filters = 'snapshots', SNAPSHOT_SUMMARY, SNAPSHOT, SNAPSHOT_FILTERS

    def found(self, req: Request, **options: Any) -> Iterable[Snapshot]:
        return self.volumes.snapshots.list(req.context, **window(req), **options)

    def count(self, req: Request, **options: Any) -> int:
        return self.volumes.snapshots.count(req.context, **options)

    @operation('POST', policy=WRITER, body=CREATE, status=202, behaviour={'always_forced': added('3.66', True)})
    def create(self, req: Request, body: dict[str, Any]) -> dict[str, Any]:
        requested = body['snapshot']
        snapshot = self.volumes.snapshots.create(
            req.context,
            requested['volume_id'],
            name=requested.get('name'),
            description=requested.get('description'),
            force=_force(req, requested.get('force')),
            metadata=requested.get('metadata'),
        )
        return {'snapshot': SNAPSHOT_SUMMARY.render(req, snapshot)}

    @operation('GET', '/{snapshot_id}', policy=CALLER)
    def show(self, req: Request, snapshot_id: str) -> dict[str, Any]:
        return {'snapshot': SNAPSHOT.render(req, self.volumes.snapshots.get(req.context, snapshot_id))}

    @operation('PUT', '/{snapshot_id}', policy=WRITER, body=UPDATE)
    def update(self, req: Request, snapshot_id: str, body: dict[str, Any]) -> dict[str, Any]:
        facts = {name: value for name, value in body['snapshot'].items() if name in UPDATABLE}
        if not facts:
            raise errors.Invalid('Specify the name or the description of the snapshot.')
        snapshot = self.volumes.snapshots.change(req.context, snapshot_id, lambda snapshot: facts)
        return {'snapshot': SNAPSHOT_SUMMARY.render(req, snapshot)}

    @operation('DELETE', '/{snapshot_id}', policy=WRITER, status=202)
    def delete(self, req: Request, snapshot_id: str) -> None:
        self.volumes.snapshots.delete(req.context, snapshot_id)

    @action('os-force_delete', policy=ADMIN)
    def force_delete(self, req: Request, id: str) -> None:
        self.volumes.snapshots.delete(req.context, id, force=True)

    @argued('os-reset_status', {'status': {'type': 'string', 'enum': [*STATUSES]}}, 'status', policy=ADMIN)
    def reset_status(self, req: Request, id: str, body: dict[str, Any]) -> None:
        self.volumes.snapshots.change(req.context, id, lambda snapshot: {'status': body['status']})

    @argued('os-update_snapshot_status', REPORT, 'status', policy=WRITER)
    def report(self, req: Request, id: str, body: dict[str, Any]) -> None:
        self.volumes.snapshots.report(req.context, id, body['status'], body.get('progress'))


def _force(req: Request, given: Any) -> bool:
    """Whether a volume in use may be snapshotted; since 3.66 always, and false is refused."""
    if not req.behaviour.always_forced:
        return is_true(given)
    if given is not None and not is_true(given):
        raise errors.Invalid('force: since microversion 3.66 it cannot be false.')
    return True
