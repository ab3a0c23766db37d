"""Snapshots of volumes."""

from collections.abc import Callable, Mapping
from datetime import datetime

from computeapi import errors, randomness
from computeapi.backends.rights import check_writer
from computeapi.backends.volume import Snapshot, Volume
from computeapi.backends.volume.local.files import Contents
from computeapi.backends.volume.local.filling import Filler
from computeapi.backends.volume.local.quotas import VolumeQuotas
from computeapi.backends.volume.local.records import SizedRecords, check_metadata
from computeapi.context import Context
from computeapi.db.engine import Store
from computeapi.db.volumes import SNAPSHOTS, VOLUMES

FOLLOWING = {'creating': ('creating', 'available', 'error'), 'deleting': ('deleting', 'error_deleting')}
"""The statuses that a hypervisor may report of a snapshot, by its current one."""


class VolumeSnapshots(SizedRecords[Snapshot]):
    table, record = SNAPSHOTS, Snapshot

    def __init__(self, store: Store, clock: Callable[[], datetime], quotas: VolumeQuotas, filler: Filler):
        super().__init__(store, clock)
        self.quotas, self.filler = quotas, filler

    def create(
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
        check_writer(context)
        with self.store.write() as connection:
            volume = Volume(**VOLUMES.get(connection, context, volume_id, lock=True))
            made = SNAPSHOTS.matches({'volume_id': volume_id, 'id': snapshot_id})
            for facts in SNAPSHOTS.select(connection, *made) if snapshot_id else ():
                return Snapshot(**facts)
            if volume.status not in (('available', 'in-use') if force else ('available',)):
                raise errors.Invalid(
                    f'Invalid volume: Volume {volume_id} status must be available, but current status is: '
                    f'{volume.status}.'
                )
            now, contents = self.clock(), Contents(source_id=volume_id)
            snapshot = Snapshot(
                id=snapshot_id or randomness.new_id(),
                name=name,
                status=self.filler.status(contents),
                size=volume.size,
                volume_id=volume_id,
                project_id=volume.project_id,
                user_id=context.user_id,
                description=description,
                availability_zone=volume.availability_zone,
                metadata=dict(metadata or {}),
                created_at=now,
                updated_at=now,
            )
            check_metadata(vars(snapshot))
            owner = (volume.project_id, volume.volume_type_id)
            self.quotas.take(connection, *owner, snapshots=1, gigabytes=volume.size)
            SNAPSHOTS.insert(connection, vars(snapshot))
            filling = self.filler.begin(snapshot.id, contents, snapshot.size, snapshot.status)
        self.filler.fill(context, filling, contents, snapshot.size, SNAPSHOTS)
        return snapshot

    def delete(self, context: Context, snapshot_id: str, *, force: bool = False) -> None:
        """force: ignore the status."""
        with self._locked(context, snapshot_id) as (connection, snapshot):
            if not force and snapshot.status not in ('available', 'error'):
                raise errors.Invalid('Invalid snapshot: Snapshot status must be available or error to be deleted.')
            SNAPSHOTS.delete(connection, SNAPSHOTS.among([snapshot_id]))
        self.filler.delete([snapshot_id])

    def report(self, context: Context, snapshot_id: str, status: str, progress: str | None) -> None:
        """Note what a hypervisor reports of the snapshot that it takes or deletes. Invalid for a status that does not
        follow from the current one."""

        def change(snapshot: Snapshot) -> dict[str, str]:
            if status not in FOLLOWING.get(snapshot.status, ()):
                raise errors.Invalid(f'A snapshot that is {snapshot.status} cannot become {status}.')
            return {'status': status} | ({'progress': progress} if progress else {})

        self.change(context, snapshot_id, change)
