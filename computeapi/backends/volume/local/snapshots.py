"""Snapshots of volumes."""

import builtins
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from computeapi import errors
from computeapi.backends.volume import Snapshot
from computeapi.backends.volume.local.base import VolumeStore, check_metadata
from computeapi.backends.volume.local.kept import NEWEST_FIRST
from computeapi.context import Context
from computeapi.db.listing import bounded
from computeapi.db.volumes import SNAPSHOTS


class VolumeSnapshots(VolumeStore):
    def get_snapshot(self, context: Context, snapshot_id: str) -> Snapshot:
        with self.store.read() as connection:
            return Snapshot(**SNAPSHOTS.get(connection, context, snapshot_id))

    def list_snapshots(
        self,
        context: Context,
        *,
        filters: Mapping[str, Any] | None = None,
        sort: Sequence[tuple[str, str]] = NEWEST_FIRST,
        limit: int | None = None,
        offset: int | None = None,
        marker: str | None = None,
        all_projects: bool = False,
    ) -> builtins.list[Snapshot]:
        """`all_projects` is for administrators; for others it means nothing."""
        where = SNAPSHOTS.listed(context, filters, all_projects)
        with self.store.read() as connection:
            found = SNAPSHOTS.page(connection, context, *where, sort=sort, page=bounded(limit, marker), offset=offset)
        return [Snapshot(**facts) for facts in found]

    def count_snapshots(
        self, context: Context, *, filters: Mapping[str, Any] | None = None, all_projects: bool = False
    ) -> int:
        with self.store.read() as connection:
            return SNAPSHOTS.count(connection, *SNAPSHOTS.listed(context, filters, all_projects))[0]

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
        with self._locked(context, volume_id) as (connection, volume):
            made = SNAPSHOTS.matches({'volume_id': volume_id, 'id': snapshot_id})
            for facts in SNAPSHOTS.select(connection, *made) if snapshot_id else ():
                return Snapshot(**facts)
            if volume.status not in (('available', 'in-use') if force else ('available',)):
                raise errors.Invalid(
                    f'Invalid volume: Volume {volume_id} status must be available, but current status is: '
                    f'{volume.status}.'
                )
            now = self.clock()
            snapshot = Snapshot(
                id=snapshot_id or str(uuid.uuid4()),
                name=name,
                status='available',
                size=volume.size,
                volume_id=volume_id,
                project_id=volume.project_id,
                user_id=context.user_id,
                description=description,
                metadata=dict(metadata or {}),
                created_at=now,
                updated_at=now,
            )
            check_metadata(vars(snapshot))
            self.quotas.take(connection, volume.project_id, snapshots=1, gigabytes=volume.size)
            SNAPSHOTS.insert(connection, vars(snapshot))
        return snapshot

    def change_snapshot(
        self, context: Context, snapshot_id: str, change: Callable[[Snapshot], Mapping[str, Any]]
    ) -> Snapshot:
        """Change facts that depend on the snapshot as it is: nothing comes between reading and writing."""
        with self.store.write() as connection:
            snapshot = Snapshot(**SNAPSHOTS.get(connection, context, snapshot_id, lock=True))
            facts = {**change(snapshot), 'updated_at': self.clock()}
            check_metadata(facts)
            SNAPSHOTS.update(connection, snapshot_id, facts)
        return replace(snapshot, **facts)

    def delete_snapshot(self, context: Context, snapshot_id: str, *, force: bool = False) -> None:
        """`force` does not mind the status."""
        with self.store.write() as connection:
            snapshot = SNAPSHOTS.get(connection, context, snapshot_id, lock=True)
            if not force and snapshot['status'] not in ('available', 'error'):
                raise errors.Invalid('Invalid snapshot: Snapshot status must be available or error to be deleted.')
            SNAPSHOTS.delete(connection, SNAPSHOTS.among([snapshot_id]))
