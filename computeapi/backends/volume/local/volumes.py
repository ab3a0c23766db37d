"""The lifecycle of volumes."""

import builtins
from collections.abc import Mapping
from typing import Any

from computeapi import errors
from computeapi.backends.rights import owns
from computeapi.backends.volume import Volume, VolumeType
from computeapi.backends.volume.local.base import unfit
from computeapi.backends.volume.local.creation import MAX_SIZE, VolumeCreation, checked_size, from_image
from computeapi.backends.volume.local.files import Contents
from computeapi.backends.volume.local.types import keep_type
from computeapi.context import Context
from computeapi.db import volumes
from computeapi.db.volumes import ATTACHMENTS, SNAPSHOTS, VOLUMES

DELETABLE = ('available', 'error', 'error_restoring', 'error_extending', 'error_managing')
UNDELETABLE = (
    f'Invalid volume: Volume status must be {" or ".join(DELETABLE)} and must not be migrating, attached, belong to a '
    'group, have snapshots, awaiting a transfer, or be disassociated from snapshots after volume transfer.'
)


class VolumeLife(VolumeCreation):
    def metadata_values(
        self, context: Context, *, filters: Mapping[str, Any] | None = None, all_projects: bool = False
    ) -> dict[str, builtins.list[str]]:
        """The values of each metadata key of these volumes."""
        with self.store.read() as connection:
            return volumes.metadata_values(connection, *VOLUMES.listed(context, filters, all_projects))

    def update(self, context: Context, volume_id: str, **kwargs: Any) -> Volume:
        """Change name, description, metadata, bootable, readonly or image_metadata; mappings are replaced."""
        return self.change(context, volume_id, lambda volume: kwargs)

    def extend(self, context: Context, volume_id: str, size: int, *, in_use: bool = True) -> Volume:
        """in_use: whether volumes in use may be extended."""
        with self._locked(context, volume_id) as (connection, volume):
            if volume.status not in (('available', 'in-use') if in_use else ('available',)):
                raise unfit(volume, 'extended')
            if not volume.size < size <= MAX_SIZE:
                raise errors.Invalid(
                    'Invalid input received: New size for extend must be greater than current size. '
                    f'(current: {volume.size}, extended: {size}).'
                )
            owner = (volume.project_id, volume.volume_type_id)
            self.quotas.take(connection, *owner, gigabytes=size - volume.size, per_volume_gigabytes=size)
            grown = self._write(connection, volume, {'size': size})
            self.filler.grow(volume_id, size)
        if grown.status == 'in-use':
            for listener in self.listeners:
                listener(context, grown)
        return grown

    def retype(self, context: Context, volume_id: str, volume_type: str) -> Volume:
        """Raises Invalid if it is the volume's type already, or if multiattach would change for a volume in use."""
        wanted = self.types.get(context, volume_type)
        with self._locked(context, volume_id) as (connection, volume):
            kind = keep_type(connection, wanted.id)
            if volume.status not in ('available', 'in-use'):
                raise errors.Invalid(
                    f'Invalid volume: Volume {volume_id} cannot be retyped while it is {volume.status}.'
                )
            if kind.id == volume.volume_type_id:
                raise errors.Invalid(f'Invalid volume: Volume {volume_id} already has the type {kind.name}.')
            if volume.status == 'in-use' and kind.multiattach != volume.multiattach:
                raise errors.Invalid('Invalid volume: multiattach cannot change while the volume is in use.')
            self.quotas.take_of_type(connection, volume.project_id, kind.id, volumes=1, gigabytes=volume.size)
            facts = {'volume_type_id': kind.id, 'volume_type': kind.name, 'multiattach': kind.multiattach}
            return self._write(connection, volume, facts)

    def reimage(self, context: Context, volume_id: str, image_id: str, *, reserved: bool = True) -> None:
        """reserved: whether a reserved volume may be overwritten."""
        source = from_image(self._image(context, image_id))

        def change(volume: Volume) -> dict[str, Any]:
            if volume.status not in ('available', 'error', 'reserved' if reserved else None):
                raise unfit(volume, 'reimaged')
            checked_size(volume.size, source)
            status = self.filler.status(contents, volume.status)
            return {'bootable': True, 'image_metadata': source.image_metadata, 'status': status}

        contents = Contents(image_id)
        with self._locked(context, volume_id) as (connection, former):
            if len(ATTACHMENTS.select(connection, volumes.attachments_of(volume_id))) > 1:
                raise errors.Conflict(f'Volume {volume_id} is attached to more than one server.')
            volume = self._write(connection, former, change(former))
            filling = self.filler.begin(volume_id, contents, volume.size, volume.status)
        self.filler.fill(context, filling, contents, volume.size, VOLUMES, former.status)

    def revert(self, context: Context, volume_id: str, snapshot_id: str) -> None:
        """Write the newest snapshot back over its volume. Raises Invalid if it is not that, or if the volume was
        extended since, and Conflict unless both are available."""
        source = Contents(source_id=snapshot_id)
        with self._locked(context, volume_id) as (connection, volume):
            own = (volumes.snapshots_of(volume_id), *SNAPSHOTS.matches({'project_id': volume.project_id}))
            found = max(SNAPSHOTS.select(connection, *own), key=lambda facts: facts['created_at'], default={'id': None})
            if found['id'] != snapshot_id:
                raise errors.Invalid(f'Snapshot {snapshot_id} is not the latest one of volume {volume_id}.')
            if found['size'] != volume.size:
                raise errors.Invalid(f'Volume {volume_id} and its snapshot {snapshot_id} differ in size.')
            if (volume.status, found['status']) != ('available', 'available'):
                raise errors.Conflict(f'Volume {volume_id} and its snapshot {snapshot_id} must be available.')
            status = 'available' if self.filler.files is None else 'reverting'
            self._write(connection, volume, {'status': status})
            filling = self.filler.begin(volume_id, source, volume.size, status)
        self.filler.fill(context, filling, source, volume.size, VOLUMES)

    def swap(self, context: Context, old_volume_id: str, new_volume_id: str, *, failed: bool = False) -> str:
        old = self.get(context, old_volume_id)
        taken_over = {} if failed else {'bootable': old.bootable, 'image_metadata': old.image_metadata}
        self.update(context, new_volume_id, migration_status=None, **taken_over)
        self.update(context, old_volume_id, migration_status=None)
        return old_volume_id if failed else new_volume_id

    def reset_status(
        self,
        context: Context,
        volume_id: str,
        status: str | None = None,
        *,
        detached: bool = False,
        migration_status: str | None = None,
    ) -> Volume:
        """Set the status regardless of the current one. detached: delete the attachments.  migration_status: `none`
        clears the current one.  Raises Invalid for `in-use` without attachments."""
        gone: builtins.list[str] = []
        with self._locked(context, volume_id) as (connection, volume):
            if detached:
                held = volumes.attachments_of(volume_id)
                gone += [each['id'] for each in ATTACHMENTS.select(connection, held)]
                ATTACHMENTS.delete(connection, held)
            if status == 'in-use' and not volumes.attachment_statuses(connection, volume_id):
                raise errors.Invalid('Cannot reset-state to in-use because volume does not have any attachments.')
            moving = migration_status or volume.migration_status
            facts = {'status': status or volume.status, 'migration_status': None if moving == 'none' else moving}
            self._write(connection, volume, facts)
        self.unexport(gone)
        return self.get(context, volume_id)

    def delete(self, context: Context, volume_id: str, *, force: bool = False, cascade: bool = False) -> None:
        """force: ignore the status.  cascade: delete the snapshots, too."""
        with self._locked(context, volume_id) as (connection, volume):
            held = ATTACHMENTS.select(connection, volumes.attachments_of(volume_id))
            busy = held or volume.group_id or volume.status not in DELETABLE
            if any(each['status'] == 'attached' for each in held) or not force and busy:
                raise errors.Invalid(UNDELETABLE)
            snapshots = SNAPSHOTS.select(connection, volumes.snapshots_of(volume_id))
            # A project that transferred the volume may have kept them.
            if not all(cascade and owns(context, facts['project_id']) for facts in snapshots):
                raise errors.Invalid(UNDELETABLE)
            # Delete by ID: with another index, InnoDB would lock index entries before the rows, while the deletion of a
            # single snapshot locks its row first.
            SNAPSHOTS.delete(connection, SNAPSHOTS.among(facts['id'] for facts in snapshots))
            VOLUMES.delete(connection, VOLUMES.among([volume_id]))
        self.unexport(each['id'] for each in held)
        self.filler.delete([volume_id, *(facts['id'] for facts in snapshots)])

    def availability_zones(self, context: Context) -> builtins.list[str]:
        return [*self.zones]

    def volume_type(self, context: Context, name_or_id: str) -> VolumeType:
        return self.types.get(context, name_or_id)
