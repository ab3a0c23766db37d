"""Volumes in the store, their types, snapshots and attachments, and how much of them a project may have."""

from collections.abc import Collection, Mapping
from typing import Any

import sqlalchemy as sa

from computeapi import errors
from computeapi.context import Context
from computeapi.db.facts import Facts, FactTable
from computeapi.db.listing import Clause
from computeapi.db.records import lock_row, upsert
from computeapi.db.tables.volume import (
    volume_attachments,
    volume_image_metadata,
    volume_metadata,
    volume_projects,
    volume_quotas,
    volume_snapshot_metadata,
    volume_snapshots,
    volume_type_projects,
    volume_type_specs,
    volume_types,
    volumes,
)


def _attached(connection: sa.Connection, volume_ids: Collection[str]) -> dict[str, tuple[Facts, ...]]:
    """The attachments that are in use, by volume."""
    found: dict[str, tuple[Facts, ...]] = dict.fromkeys(volume_ids, ())
    held = volume_attachments.c
    query = (
        sa.select(held.volume_id, held.id.label('attachment_id'), held.server_id, held.host, held.device)
        .add_columns(held.attached_at)
        .where(held.volume_id.in_(volume_ids), held.status == 'attached')
        .order_by(held.attached_at, held.id)
    )
    for row in connection.execute(query).mappings() if volume_ids else ():
        facts = dict(row)
        found[facts.pop('volume_id')] += (facts,)
    return found


def _usable_types(context: Context) -> Clause:
    """Public types, and private ones for the projects that were let in."""
    if context.is_admin:
        return sa.true()
    grants = volume_type_projects.c
    granted = sa.select(grants.type_id).where(grants.project_id == (context.project_id or ''))
    return sa.or_(volume_types.c.is_public, volume_types.c.id.in_(granted))


def _sorts(table: sa.Table, *more: str) -> dict[str, sa.Column[Any]]:
    """What lists can be sorted by; clients call the name by two names."""
    names = ('id', 'name', 'display_name', 'status', 'size', *more, 'created_at', 'updated_at')
    return {name: table.c[name.removeprefix('display_')] for name in names}


VOLUMES = FactTable(
    volumes,
    errors.VolumeNotFound,
    source=volumes.join(volume_types, volume_types.c.id == volumes.c.volume_type_id),
    joined={'volume_type': volume_types.c.name},
    pairs={'metadata': volume_metadata, 'image_metadata': volume_image_metadata},
    found={'attachments': _attached},
    sorts=_sorts(volumes, 'availability_zone', 'bootable'),
    unknown='marker: Volume {marker} could not be found.',
)
SNAPSHOTS = FactTable(
    volume_snapshots,
    errors.SnapshotNotFound,
    pairs={'metadata': volume_snapshot_metadata},
    sorts=_sorts(volume_snapshots, 'volume_id'),
    unknown='marker: Snapshot {marker} could not be found.',
)
ATTACHMENTS = FactTable(
    volume_attachments,
    errors.AttachmentNotFound,
    VOLUMES.visible,
    source=volume_attachments.join(volumes, volumes.c.id == volume_attachments.c.volume_id),
    joined={'project_id': volumes.c.project_id},
    sorts={'created_at': volume_attachments.c.created_at},
    unknown='marker: attachment {marker} could not be found.',
)
TYPES = FactTable(
    volume_types,
    errors.VolumeTypeNotFound,
    _usable_types,
    pairs={'extra_specs': volume_type_specs},
    order=[volume_types.c.name],
)


def metadata_values(connection: sa.Connection, *where: Clause) -> dict[str, list[str]]:
    """The values that each name has in the metadata of these volumes."""
    found: dict[str, list[str]] = {}
    name, value = volume_metadata.c.name, volume_metadata.c.value
    source = VOLUMES.source.join(volume_metadata, volumes.c.id == volume_metadata.c.owner_id)
    query = sa.select(name, value).select_from(source).where(*where).order_by(name, value).distinct()
    for key, text in connection.execute(query):
        found.setdefault(key, []).append(text)
    return found


# Snapshots and attachments


def snapshots_of(volume_id: str) -> Clause:
    return volume_snapshots.c.volume_id == volume_id


def attachments_of(volume_id: str) -> Clause:
    return volume_attachments.c.volume_id == volume_id


def attachment_statuses(connection: sa.Connection, volume_id: str) -> set[str]:
    """What the attachments of the volume are doing."""
    return set(connection.scalars(sa.select(volume_attachments.c.status).where(attachments_of(volume_id))))


# Types


def types_named(name_or_id: str) -> Clause:
    return sa.or_(volume_types.c.id == name_or_id, volume_types.c.name == name_or_id)


def keep_type(connection: sa.Connection, type_id: str) -> bool:
    """Whether the type is there; if so nobody deletes it before this transaction ends."""
    query = sa.select(volume_types.c.id).where(volume_types.c.id == type_id)
    return connection.scalar(query.with_for_update(read=True)) is not None


def type_is_used(connection: sa.Connection, type_id: str) -> bool:
    query = sa.select(volumes.c.id).where(volumes.c.volume_type_id == type_id).limit(1)
    return connection.scalar(query) is not None


def type_projects(connection: sa.Connection, type_id: str) -> list[str]:
    """The projects that were let in to a private type."""
    query = sa.select(volume_type_projects.c.project_id).where(volume_type_projects.c.type_id == type_id)
    return list(connection.scalars(query.order_by(volume_type_projects.c.project_id)))


def grant_type(connection: sa.Connection, type_id: str, project_id: str) -> None:
    connection.execute(sa.insert(volume_type_projects).values(type_id=type_id, project_id=project_id))


def revoke_type(connection: sa.Connection, type_id: str, project_id: str) -> bool:
    """Whether there was a grant to take back."""
    query = sa.delete(volume_type_projects).filter_by(type_id=type_id, project_id=project_id)
    return connection.execute(query).rowcount > 0


# Quotas


def limits(connection: sa.Connection, project_id: str) -> dict[str, int]:
    """The limits that were set for the project."""
    query = sa.select(volume_quotas.c.name, volume_quotas.c.limit).where(volume_quotas.c.project_id == project_id)
    return {row.name: row.limit for row in connection.execute(query)}


def set_limits(connection: sa.Connection, project_id: str, limits: Mapping[str, int]) -> None:
    """Set the limits that are given; the others stay."""
    rows: list[dict[str, Any]] = [
        {'project_id': project_id, 'name': name, 'limit': limit} for name, limit in limits.items()
    ]
    upsert(connection, volume_quotas, rows)


def reset_limits(connection: sa.Connection, project_id: str) -> None:
    connection.execute(sa.delete(volume_quotas).where(volume_quotas.c.project_id == project_id))


def lock_project(connection: sa.Connection, project_id: str) -> None:
    """Let one transaction at a time take from the quota of the project."""
    lock_row(connection, volume_projects, {'id': project_id})
