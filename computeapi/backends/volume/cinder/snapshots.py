"""Snapshots of volumes."""

import builtins
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from keystoneauth1.adapter import Adapter
from oslo_utils.uuidutils import is_uuid_like

from computeapi.backends.volume import ALMOST_DONE, Snapshot
from computeapi.backends.volume.cinder.base import CinderBase, Document, act, create, get, pages
from computeapi.backends.volume.cinder.records import WANTED_ID, snapshot_of
from computeapi.backends.volume.cinder.volumes import MAX_ITEMS, missing_volume, of_project
from computeapi.context import Context
from computeapi.errors import Error, SnapshotNotFound


class CinderSnapshotLife(CinderBase):
    def get_snapshot(self, context: Context, snapshot_id: str) -> Snapshot:
        with self.client(context, missing_snapshot(snapshot_id)) as cinder:
            return snapshot_of(get(cinder, 'snapshot', snapshot_id), context)

    def list_snapshots(self, context: Context) -> builtins.list[Snapshot]:
        with self.client(context) as cinder:
            found = listed(cinder, limit=MAX_ITEMS)
            return [snapshot_of(each, context) for each in itertools.islice(found, MAX_ITEMS)]

    def create_snapshot(
        self,
        context: Context,
        volume_id: str,
        *,
        name: str | None = None,
        description: str | None = None,
        force: bool = False,
        metadata: Mapping[str, str] | None = None,
        snapshot_id: str | None = None,
    ) -> Snapshot:
        facts = {
            'volume_id': volume_id,
            'name': name,
            'description': description,
            'force': force,
            'metadata': dict(metadata or {}) | ({WANTED_ID: snapshot_id} if snapshot_id else {}),
        }
        with self.client(context, missing_volume(volume_id)) as cinder:
            made = wanted(snapshot_id, listed(cinder, volume_id=volume_id)) if snapshot_id else None
            return snapshot_of(made or create(cinder, 'snapshot', facts), context)

    def delete_snapshot(self, context: Context, snapshot_id: str) -> None:
        try:
            self._delete_snapshot(context, snapshot_id)
        except SnapshotNotFound:
            with self.client(context) as cinder:
                known = wanted(snapshot_id, listed(cinder, **of_project(context)))
            if known is None:
                raise
            self._delete_snapshot(context, known['id'])

    def _delete_snapshot(self, context: Context, snapshot_id: str) -> None:
        with self.client(context, missing_snapshot(snapshot_id)) as cinder:
            cinder.delete(f'/snapshots/{snapshot_id}')

    def report_snapshot(self, context: Context, snapshot_id: str, status: str) -> None:
        facts = {'status': status, 'progress': ALMOST_DONE}
        with self.client(context, missing_snapshot(snapshot_id)) as cinder:
            act(cinder, 'snapshot', snapshot_id, 'os-update_snapshot_status', facts)


def listed(cinder: Adapter, **query: Any) -> Iterator[Document]:
    return pages(cinder, '/snapshots/detail', 'snapshots', **query)


def wanted(snapshot_id: str, known: Iterable[Document]) -> Document | None:
    """The one among them for which compute wanted this ID."""
    return next((each for each in known if (each['metadata'] or {}).get(WANTED_ID) == snapshot_id), None)


def missing_snapshot(snapshot_id: str) -> Callable[[str], Error]:
    """Like `missing_volume`."""
    if not is_uuid_like(snapshot_id):
        raise SnapshotNotFound(id=snapshot_id)
    return lambda words: SnapshotNotFound(id=snapshot_id)
