"""Volumes in the store, their snapshots, backups and attachments, and quotas."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from computeapi import errors
from computeapi.db.listing import Clause
from computeapi.db.records import Among, grouped, lock_row, upsert
from computeapi.db.resource_table import Facts, ResourceTable
from computeapi.db.tables.volume import (
    volume_attachments,
    volume_backup_image_metadata,
    volume_backup_metadata,
    volume_backup_volume_metadata,
    volume_backups,
    volume_image_metadata,
    volume_messages,
    volume_metadata,
    volume_projects,
    volume_quota_classes,
    volume_quotas,
    volume_snapshot_metadata,
    volume_snapshots,
    volume_transfers,
    volume_type_encryptions,
    volume_types,
    volumes,
)

HELD = volume_attachments.c
ATTACHMENT = ('attachment_id', 'server_id', 'host', 'device', 'attached_at')
ATTACHED = Among(
    sa.select(HELD.volume_id, HELD.id, HELD.server_id, HELD.host, HELD.device, HELD.attached_at)
    .where(HELD.status == 'attached')
    .order_by(HELD.attached_at, HELD.id),
    HELD.volume_id,
)


def _attached(connection: sa.Connection, volume_ids: Collection[str]) -> dict[str, tuple[Facts, ...]]:
    """The active attachments of each volume."""
    found: dict[str, tuple[Facts, ...]] = dict.fromkeys(volume_ids, ())
    for volume_id, *values in ATTACHED.rows(connection, volume_ids) if volume_ids else ():
        found[volume_id] += (dict(zip(ATTACHMENT, values, strict=True)),)
    return found


def _continued(connection: sa.Connection, backup_ids: Sequence[str]) -> dict[str, bool]:
    """Whether there are incremental backups based on each of these backups."""
    query = sa.select(volume_backups.c.parent_id).where(volume_backups.c.parent_id.in_(backup_ids)).distinct()
    parents = set(connection.scalars(query)) if backup_ids else set()
    return {backup_id: backup_id in parents for backup_id in backup_ids}


def _sorts(table: sa.Table, *more: str) -> dict[str, sa.Column[Any]]:
    """The sort keys of lists; clients use two names for the name."""
    names = ('id', 'name', 'display_name', 'status', 'size', *more, 'created_at', 'updated_at')
    return {name: table.c[name.removeprefix('display_')] for name in names}


VOLUMES = ResourceTable(
    volumes,
    errors.VolumeNotFound,
    source=volumes.join(volume_types, volume_types.c.id == volumes.c.volume_type_id).outerjoin(
        volume_type_encryptions, volume_type_encryptions.c.volume_type_id == volumes.c.volume_type_id
    ),
    joined={
        'volume_type': volume_types.c.name,
        'encrypted': volume_type_encryptions.c.encryption_id.is_not(None),
    },
    pairs={'metadata': volume_metadata, 'image_metadata': volume_image_metadata},
    found={'attachments': _attached},
    sorts=_sorts(volumes, 'availability_zone', 'bootable'),
)
SNAPSHOTS = ResourceTable(
    volume_snapshots,
    errors.SnapshotNotFound,
    source=volume_snapshots.join(volumes, volumes.c.id == volume_snapshots.c.volume_id),
    joined={'availability_zone': volumes.c.availability_zone},
    pairs={'metadata': volume_snapshot_metadata},
    sorts=_sorts(volume_snapshots, 'volume_id'),
)
ATTACHMENTS = ResourceTable(
    volume_attachments,
    errors.AttachmentNotFound,
    VOLUMES.visible,
    source=volume_attachments.join(volumes, volumes.c.id == volume_attachments.c.volume_id),
    joined={'project_id': volumes.c.project_id},
    sorts={'created_at': volume_attachments.c.created_at},
)
BACKUPS = ResourceTable(
    volume_backups,
    errors.BackupNotFound,
    found={'has_dependent_backups': _continued},
    pairs={
        'metadata': volume_backup_metadata,
        'image_metadata': volume_backup_image_metadata,
        'volume_metadata': volume_backup_volume_metadata,
    },
    sorts=_sorts(volume_backups, 'volume_id'),
)
TRANSFERS = ResourceTable(
    volume_transfers,
    errors.TransferNotFound,
    source=volume_transfers.join(volumes, volumes.c.id == volume_transfers.c.volume_id),
    sorts={name: volume_transfers.c[name] for name in ('id', 'name', 'created_at')},
)
MESSAGES = ResourceTable(
    volume_messages,
    errors.MessageNotFound,
    sorts={
        name: volume_messages.c[name]
        for name in ('id', 'event_id', 'resource_type', 'resource_uuid', 'request_id', 'created_at')
    },
)


def metadata_values(connection: sa.Connection, *where: Clause) -> dict[str, list[str]]:
    """The values of each key in the metadata of these volumes."""
    name, value = volume_metadata.c.name, volume_metadata.c.value
    source = VOLUMES.source.join(volume_metadata, volumes.c.id == volume_metadata.c.owner_id)
    query = sa.select(name, value).select_from(source).where(*where).order_by(name, value).distinct()
    return grouped((key, text) for key, text in connection.execute(query))


# What belongs to a volume

HELD_STATUSES = ('available', 'reserved', 'attaching', 'detaching', 'in-use')
"""Those that follow from the attachments; any other stays until somebody changes it."""


def expired_messages(moment: datetime) -> Clause:
    return volume_messages.c.guaranteed_until < moment


def backups_on(backup_id: str) -> Clause:
    """The incremental backups based on this one."""
    return volume_backups.c.parent_id == backup_id


def transfers_of(volume_id: str) -> Clause:
    return volume_transfers.c.volume_id == volume_id


def snapshots_of(volume_id: str) -> Clause:
    return volume_snapshots.c.volume_id == volume_id


def attachments_of(volume_id: str) -> Clause:
    return volume_attachments.c.volume_id == volume_id


def attachment_statuses(connection: sa.Connection, volume_id: str) -> set[str]:
    """The statuses of the volume's attachments."""
    return set(connection.scalars(sa.select(volume_attachments.c.status).where(attachments_of(volume_id))))


def held_status(connection: sa.Connection, volume_id: str) -> str:
    """The status of the volume that follows from its attachments."""
    held = attachment_statuses(connection, volume_id)
    for attachment, volume in (('attached', 'in-use'), ('attaching', 'attaching'), ('reserved', 'reserved')):
        if attachment in held:
            return volume
    return 'available'


# Quotas


def limits(connection: sa.Connection, project_id: str) -> dict[str, int]:
    """The limits that were set for the project."""
    query = sa.select(volume_quotas.c.name, volume_quotas.c.limit).where(volume_quotas.c.project_id == project_id)
    return {row.name: row.limit for row in connection.execute(query)}


def set_limits(connection: sa.Connection, project_id: str, limits: Mapping[str, int]) -> None:
    """Set the given limits; the others are kept."""
    rows: list[dict[str, Any]] = [
        {'project_id': project_id, 'name': name, 'limit': limit} for name, limit in limits.items()
    ]
    upsert(connection, volume_quotas, rows)


def class_limits(connection: sa.Connection, class_name: str) -> dict[str, int]:
    """The limits that were set for a quota class."""
    limits = volume_quota_classes.c
    query = sa.select(limits.name, limits.limit).where(limits.class_name == class_name)
    return {row.name: row.limit for row in connection.execute(query)}


def set_class_limits(connection: sa.Connection, class_name: str, limits: Mapping[str, int]) -> None:
    """Set the given limits; the others are kept."""
    rows = [{'class_name': class_name, 'name': name, 'limit': limit} for name, limit in limits.items()]
    upsert(connection, volume_quota_classes, rows)


def reset_limits(connection: sa.Connection, project_id: str) -> None:
    connection.execute(sa.delete(volume_quotas).where(volume_quotas.c.project_id == project_id))


def usage_of_types(connection: sa.Connection, project_id: str) -> dict[str, dict[str, int]]:
    """By volume type, how many volumes, snapshots and gigabytes the project has."""
    used: dict[str, dict[str, int]] = {}
    sources = {'volumes': volumes, 'snapshots': volume_snapshots}
    for name, table in sources.items():
        source = table if table is volumes else table.join(volumes, volumes.c.id == table.c.volume_id)
        columns = (volumes.c.volume_type_id, sa.func.count(), sa.func.coalesce(sa.func.sum(table.c.size), 0))
        query = sa.select(*columns).select_from(source).where(table.c.project_id == project_id)
        for type_id, number, size in connection.execute(query.group_by(volumes.c.volume_type_id)):
            of_type = used.setdefault(type_id, dict.fromkeys((*sources, 'gigabytes'), 0))
            of_type[name] = number
            of_type['gigabytes'] += int(size)
    return used


def forget_limits_of_type(connection: sa.Connection, type_id: str) -> None:
    for table in (volume_quotas, volume_quota_classes):
        connection.execute(sa.delete(table).where(table.c.name.endswith(f'\\_{type_id}', escape='\\')))


def lock_project(connection: sa.Connection, project_id: str) -> None:
    """Serialize transactions that use the project's quota."""
    lock_row(connection, volume_projects, {'id': project_id})
