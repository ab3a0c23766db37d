"""Backups of volumes: records and, where volumes have data, full copies of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from computeapi import errors, randomness
from computeapi.backends.volume import Volume
from computeapi.backends.volume.local.base import project_of, unfit
from computeapi.backends.volume.local.files import Contents
from computeapi.backends.volume.local.filling import Filler
from computeapi.backends.volume.local.quotas import VolumeQuotas
from computeapi.backends.volume.local.records import SizedRecords, check_metadata
from computeapi.context import Context
from computeapi.db.engine import Store
from computeapi.db.volumes import BACKUPS, SNAPSHOTS, VOLUMES, backups_on

DELETABLE = ('available', 'error')


@dataclass(frozen=True)
class Backup:
    """A backup; `size` in GiB. A backup with a parent counts as incremental, although its data are complete.

    data_timestamp: the time of the backed-up state.
    """

    id: str
    project_id: str
    volume_id: str
    name: str | None
    status: str
    size: int
    availability_zone: str
    bootable: bool
    data_timestamp: datetime
    created_at: datetime
    updated_at: datetime
    user_id: str | None = None
    snapshot_id: str | None = None
    parent_id: str | None = None
    description: str | None = None
    container: str | None = None
    has_dependent_backups: bool = False
    metadata: Mapping[str, str] = field(default_factory=dict)
    image_metadata: Mapping[str, str] = field(default_factory=dict)
    volume_metadata: Mapping[str, str] = field(default_factory=dict)


class VolumeBackups(SizedRecords[Backup]):
    table, record = BACKUPS, Backup

    def __init__(self, store: Store, clock: Callable[[], datetime], quotas: VolumeQuotas, filler: Filler):
        super().__init__(store, clock)
        self.quotas, self.filler = quotas, filler

    def create(
        self,
        context: Context,
        volume_id: str,
        *,
        snapshot_id: str | None = None,
        incremental: bool = False,
        force: bool = False,
        name: str | None = None,
        description: str | None = None,
        container: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> Backup:
        """Back up an available volume (with force also one in use), or a snapshot of it; raises OverQuota or
        Invalid."""
        check_metadata({'metadata': metadata or {}})
        project_id = project_of(context)
        with self.store.write() as connection:
            volume = Volume(**VOLUMES.get(connection, context, volume_id, lock=True))
            size, moment = self._source(connection, context, volume, snapshot_id, force)
            now, contents = self.clock(), Contents(source_id=snapshot_id or volume_id)
            backup = Backup(
                id=randomness.new_id(),
                project_id=project_id,
                user_id=context.user_id,
                volume_id=volume_id,
                snapshot_id=snapshot_id,
                parent_id=self._newest(connection, project_id, volume_id) if incremental else None,
                name=name,
                description=description,
                status=self.filler.status(contents),
                size=size,
                container=container,
                availability_zone=volume.availability_zone,
                bootable=volume.bootable,
                image_metadata=volume.image_metadata,
                volume_metadata=volume.metadata,
                metadata=dict(metadata or {}),
                data_timestamp=moment or now,
                created_at=now,
                updated_at=now,
            )
            self.quotas.take(connection, project_id, backups=1, backup_gigabytes=size)
            BACKUPS.insert(connection, vars(backup))
            filling = self.filler.begin(backup.id, contents, size, backup.status)
        self.filler.fill(context, filling, contents, size, BACKUPS)
        return backup

    def _source(
        self, connection: sa.Connection, context: Context, volume: Volume, snapshot_id: str | None, force: bool
    ) -> tuple[int, datetime | None]:
        """The size of the source, and the time of a snapshot's state; None: the state is the current one."""
        if snapshot_id is not None:
            snapshot = SNAPSHOTS.get(connection, context, snapshot_id)
            if snapshot['volume_id'] != volume.id or snapshot['status'] != 'available':
                raise errors.Invalid(f'Invalid snapshot: {snapshot_id} is not an available snapshot of the volume.')
            return snapshot['size'], snapshot['created_at']
        if volume.status not in (('available', 'in-use') if force else ('available',)):
            raise unfit(volume, 'backed up')
        return volume.size, None

    def _newest(self, connection: sa.Connection, project_id: str, volume_id: str) -> str:
        """The newest available backup of the project, as the parent of the next one; locked, so that nobody deletes
        it before that exists."""
        where = {'volume_id': volume_id, 'project_id': project_id, 'status': 'available'}
        while found := BACKUPS.select(connection, *BACKUPS.matches(where)):
            newest: str = max(found, key=lambda facts: (facts['data_timestamp'], facts['created_at']))['id']
            BACKUPS.lock(connection, newest)
            # It may have been deleted just before the lock was taken.
            if BACKUPS.select(connection, BACKUPS.among([newest])):
                return newest
        raise errors.Invalid('No backups available to do an incremental backup.')

    def delete(self, context: Context, backup_id: str, *, force: bool = False) -> None:
        """force: ignore the status."""
        with self._locked(context, backup_id) as (connection, backup):
            if not force and backup.status not in DELETABLE:
                raise errors.Invalid('Invalid backup: Backup status must be available or error')
            if BACKUPS.select(connection, backups_on(backup_id)):
                raise errors.Invalid('Invalid backup: Incremental backups exist for this backup.')
            BACKUPS.delete(connection, BACKUPS.among([backup_id]))
        self.filler.delete([backup_id])

    def restore(self, context: Context, backup: Backup, volume_id: str) -> Volume:
        """Write an available backup over an available volume that is large enough."""
        if backup.status != 'available':
            raise errors.Invalid(f'Invalid backup: Backup {backup.id} is {backup.status}.')
        with self.store.write() as connection:
            volume = Volume(**VOLUMES.get(connection, context, volume_id, lock=True))
            if volume.status != 'available':
                raise unfit(volume, 'restored to')
            if volume.size < backup.size:
                raise errors.Invalid(f'Invalid volume: Volume {volume_id} is smaller than the backup.')
            source = Contents(source_id=backup.id)
            status = 'available' if self.filler.files is None else 'restoring-backup'
            facts = {**contents(backup), 'status': status, 'updated_at': self.clock()}
            VOLUMES.update(connection, volume_id, facts)
            filling = self.filler.begin(volume_id, source, volume.size, status)
        self.filler.fill(context, filling, source, volume.size, VOLUMES, failed='error_restoring')
        return volume


def contents(backup: Backup) -> dict[str, Any]:
    """The attributes that a volume takes over from its backup."""
    return {
        'bootable': backup.bootable,
        'image_metadata': backup.image_metadata,
        'metadata': backup.volume_metadata,
    }
