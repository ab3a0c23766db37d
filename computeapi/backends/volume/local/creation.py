"""Creation of volumes: blank, or from an image, a snapshot, another volume or a backup."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from computeapi import errors, randomness
from computeapi.backends.image import Image
from computeapi.backends.volume import Volume, VolumeType
from computeapi.backends.volume.local.base import STORAGE, VolumeStore, project_of
from computeapi.backends.volume.local.files import Contents
from computeapi.backends.volume.local.groups import VolumeGroup, check_member
from computeapi.backends.volume.local.records import check_metadata
from computeapi.backends.volume.local.types import keep_type
from computeapi.context import Context
from computeapi.db.volume_groups import GROUPS
from computeapi.db.volumes import BACKUPS, SNAPSHOTS, VOLUMES

NO_BACKEND = ('VOLUME_VOLUME_001_002', 'schedule allocate volume: No backend is what the type of the volume asks for.')

IMAGE_TYPE = 'cinder_img_volume_type'
"""The property of an image that names the type of its volumes."""

GIB = 1024**3
MAX_SIZE = 2**31 - 1


@dataclass(frozen=True)
class Origin:
    """The source of a volume; by default there is none. sized: whether its size is the default size of the volume."""

    size: int = 0
    sized: bool = False
    volume_type_id: str | None = None
    availability_zone: str | None = None
    bootable: bool = False
    image_metadata: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)


class VolumeCreation(VolumeStore):
    def create(
        self,
        context: Context,
        size: int | None,
        *,
        name: str | None = None,
        description: str | None = None,
        image_id: str | None = None,
        snapshot_id: str | None = None,
        source_volume_id: str | None = None,
        volume_type: str | None = None,
        availability_zone: str | None = None,
        metadata: Mapping[str, str] | None = None,
        multiattach: bool = False,
        backup_id: str | None = None,
        group_id: str | None = None,
        volume_id: str | None = None,
    ) -> Volume:
        """The size defaults to that of the snapshot, volume or backup that the volume is created from."""
        if volume_id is not None and (made := self.get_many(context, [volume_id])):
            return made[volume_id]
        project_id = project_of(context)
        self._check_request(availability_zone, image_id, snapshot_id, source_volume_id, backup_id)
        image = None if image_id is None else self._image(context, image_id)
        volume_type = volume_type or (image.properties.get(IMAGE_TYPE) if image else None)
        wanted = self.types.get(context, volume_type) if volume_type else None
        default = wanted or self.types.default(project_id)
        contents = contents_of(image_id, snapshot_id or source_volume_id or backup_id)
        with self.store.write() as connection:
            # Lock the group before its volumes, as moving volumes and deleting the group do.
            group = None if group_id is None else VolumeGroup(**GROUPS.get(connection, context, group_id, lock=True))
            source = self._source(connection, context, image, snapshot_id, source_volume_id, backup_id)
            kind = keep_type(connection, wanted.id if wanted else source.volume_type_id or default.id)
            volume = Volume(
                **self._facts(source, kind, contents),
                id=volume_id or randomness.new_id(),
                name=name,
                size=checked_size(size, source),
                project_id=project_id,
                user_id=context.user_id,
                description=description,
                multiattach=multiattach or kind.multiattach,
                availability_zone=availability_zone or source.availability_zone or self.zones[0],
                snapshot_id=snapshot_id,
                source_volume_id=source_volume_id,
                metadata={**source.metadata, **(metadata or {})},
            )
            self._insert(connection, volume)
            if group is not None:
                check_member(group, volume)
                volume = self._write(connection, volume, {'group_id': group.id})
            if volume.status == 'error':
                self.messages.add(connection, context, volume, *NO_BACKEND)
            filling = self.filler.begin(volume.id, contents, volume.size, volume.status)
        self.filler.fill(context, filling, contents, volume.size, VOLUMES)
        return volume

    def get_many(self, context: Context, volume_ids: Iterable[str]) -> dict[str, Volume]:
        with self.store.read() as connection:
            found = VOLUMES.select(connection, VOLUMES.among(volume_ids), VOLUMES.visible(context))
        return {facts['id']: Volume(**facts) for facts in found}

    def _check_request(self, zone: str | None, *origins: str | None) -> None:
        if sum(origin is not None for origin in origins) > 1:
            raise errors.Invalid('Only one of imageRef, snapshot_id, source_volid and backup_id may be given.')
        if zone is not None and zone not in self.zones:
            raise errors.Invalid(f"Availability zone '{zone}' is invalid.")

    def _image(self, context: Context, image_id: str) -> Image:
        try:
            image = self.images.get(context, image_id)
        except errors.ImageNotFound:
            raise errors.Invalid('Invalid image identifier or unable to access requested image.') from None
        if image.status != 'active':
            raise errors.Invalid(f'Image {image_id} is not active.')
        return image

    def _source(
        self,
        connection: sa.Connection,
        context: Context,
        image: Image | None,
        snapshot_id: str | None,
        volume_id: str | None,
        backup_id: str | None,
    ) -> Origin:
        if image is not None:
            return from_image(image)
        if snapshot_id is not None:
            return _from_snapshot(connection, context, snapshot_id)
        if volume_id is not None:
            return _from_volume(self._lock(connection, context, volume_id))
        if backup_id is not None:
            return _from_backup(connection, context, backup_id)
        return Origin()

    def _insert(self, connection: sa.Connection, volume: Volume) -> None:
        check_metadata(vars(volume))
        size, owner = volume.size, (volume.project_id, volume.volume_type_id)
        self.quotas.take(connection, *owner, volumes=1, gigabytes=size, per_volume_gigabytes=size)
        VOLUMES.insert(connection, vars(volume))

    def _facts(self, source: Origin, kind: VolumeType, contents: Contents | None) -> dict[str, Any]:
        """The attributes that do not depend on the request."""
        now = self.clock()
        return {
            'status': self.filler.status(contents) if _held_here(kind) else 'error',
            'encrypted': kind.encryption is not None,
            'bootable': source.bootable,
            'image_metadata': source.image_metadata,
            'volume_type': kind.name,
            'volume_type_id': kind.id,
            'created_at': now,
            'updated_at': now,
        }


def contents_of(image_id: str | None, source_id: str | None) -> Contents | None:
    return Contents(image_id, source_id) if image_id or source_id else None


def _held_here(kind: VolumeType) -> bool:
    """Whether the extra specs of the type name this storage, or none."""
    wanted = {name.removeprefix('capabilities:'): value for name, value in kind.extra_specs.items()}
    return all(wanted.get(name, value) == value for name, value in STORAGE.items())


def from_image(image: Image) -> Origin:
    facts = {
        'image_id': image.id,
        'image_name': image.name,
        'checksum': image.checksum,
        'container_format': image.container_format,
        'disk_format': image.disk_format,
        'min_disk': image.min_disk,
        'min_ram': image.min_ram,
        'size': image.size,
    }
    texts = {name: str(value) for name, value in {**image.properties, **facts}.items() if value is not None}
    return Origin(max(image.min_disk, math.ceil((image.size or 0) / GIB), 1), bootable=True, image_metadata=texts)


def _from_snapshot(connection: sa.Connection, context: Context, snapshot_id: str) -> Origin:
    snapshot = SNAPSHOTS.get(connection, context, snapshot_id, lock=True)
    if snapshot['status'] != 'available':
        raise errors.Invalid(f'Invalid snapshot: Originating snapshot {snapshot_id} is {snapshot["status"]}.')
    origin = VOLUMES.get(connection, context.elevated(), snapshot['volume_id'])
    return _like(Volume(**origin), snapshot['size'])


def _from_backup(connection: sa.Connection, context: Context, backup_id: str) -> Origin:
    backup = BACKUPS.get(connection, context, backup_id, lock=True)
    if backup['status'] != 'available':
        raise errors.Invalid(f'Invalid backup: Backup {backup_id} is {backup["status"]}.')
    kept = {name: backup[name] for name in ('bootable', 'image_metadata', 'availability_zone')}
    return Origin(backup['size'], sized=True, metadata=backup['volume_metadata'], **kept)


def _from_volume(volume: Volume) -> Origin:
    if volume.status not in ('available', 'in-use'):
        raise errors.Invalid(f'Invalid volume: Source volume {volume.id} is {volume.status}.')
    return _like(volume, volume.size)


def _like(volume: Volume, size: int) -> Origin:
    return Origin(size, True, volume.volume_type_id, volume.availability_zone, volume.bootable, volume.image_metadata)


def checked_size(size: int | None, source: Origin) -> int:
    if size is None and source.sized:
        return source.size
    if size is None or not 1 <= size <= MAX_SIZE:
        raise errors.Invalid(f'size must be a number of GiB from 1 to {MAX_SIZE}.')
    if size < source.size:
        raise errors.Invalid(f'size must not be less than the {source.size} GiB of what the volume is made from.')
    return size
