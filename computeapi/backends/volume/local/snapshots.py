"""Snapshots of volumes."""

import builtins
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from computeapi import errors
from computeapi.backends.volume import Snapshot
from computeapi.backends.volume.local.base import MAX_PAGE, NEWEST_FIRST, VolumeStore, check_metadata
from computeapi.context import Context
from computeapi.db import volume_snapshots
from computeapi.db.listing import Page


class VolumeSnapshots(VolumeStore):
    def get_snapshot(self, context: Context, snapshot_id: str) -> Snapshot:
        with self.store.read() as connection:
            return _find(connection, context, snapshot_id)

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
        where = [volume_snapshots.listed(context, all_projects), *volume_snapshots.matches(filters or {})]
        page = Page(MAX_PAGE if limit is None else min(limit, MAX_PAGE), marker)
        with self.store.read() as connection:
            found = volume_snapshots.page(connection, context, *where, sort=sort, page=page, offset=offset)
        return [Snapshot(**facts) for facts in found]

    def count_snapshots(
        self, context: Context, *, filters: Mapping[str, Any] | None = None, all_projects: bool = False
    ) -> int:
        where = [volume_snapshots.listed(context, all_projects), *volume_snapshots.matches(filters or {})]
        with self.store.read() as connection:
            return volume_snapshots.count(connection, *where)[0]

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
            for facts in volume_snapshots.select(connection, volume_snapshots.made(volume_id, snapshot_id)):
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
            volume_snapshots.insert(connection, vars(snapshot))
        return snapshot

    def change_snapshot(
        self, context: Context, snapshot_id: str, change: Callable[[Snapshot], Mapping[str, Any]]
    ) -> Snapshot:
        """Change facts that depend on the snapshot as it is: nothing comes between reading and writing."""
        with self.store.write() as connection:
            snapshot = _lock(connection, context, snapshot_id)
            facts = {**change(snapshot), 'updated_at': self.clock()}
            check_metadata(facts)
            volume_snapshots.update(connection, snapshot_id, facts)
        return replace(snapshot, **facts)

    def delete_snapshot(self, context: Context, snapshot_id: str, *, force: bool = False) -> None:
        """`force` does not mind the status."""
        with self.store.write() as connection:
            snapshot = _lock(connection, context, snapshot_id)
            if not force and snapshot.status not in ('available', 'error'):
                raise errors.Invalid('Invalid snapshot: Snapshot status must be available or error to be deleted.')
            volume_snapshots.delete(connection, volume_snapshots.among([snapshot_id]))


def _find(connection: sa.Connection, context: Context, snapshot_id: str) -> Snapshot:
    where = (volume_snapshots.among([snapshot_id]), volume_snapshots.visible(context))
    for facts in volume_snapshots.select(connection, *where):
        return Snapshot(**facts)
    raise errors.SnapshotNotFound(id=snapshot_id)


def _lock(connection: sa.Connection, context: Context, snapshot_id: str) -> Snapshot:
    volume_snapshots.lock(connection, snapshot_id)
    return _find(connection, context, snapshot_id)
