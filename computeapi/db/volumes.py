"""Volumes in the store: who sees which, filters, and what belongs to a volume."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from computeapi.context import Context
from computeapi.db import listing, pairs
from computeapi.db.listing import Clause, Page
from computeapi.db.tables.volume import (
    volume_attachments,
    volume_image_metadata,
    volume_metadata,
    volume_types,
    volumes,
)

Facts = dict[str, Any]

PAIRS = {'metadata': volume_metadata, 'image_metadata': volume_image_metadata}

SORT_KEYS = {
    'id': volumes.c.id,
    **dict.fromkeys(('name', 'display_name'), sa.func.coalesce(volumes.c.name, '')),
    'status': volumes.c.status,
    'size': volumes.c.size,
    'availability_zone': volumes.c.availability_zone,
    'bootable': volumes.c.bootable,
    'created_at': volumes.c.created_at,
    'updated_at': volumes.c.updated_at,
}


def among(volume_ids: Iterable[str]) -> Clause:
    return volumes.c.id.in_(set(volume_ids))


def owned(context: Context) -> Clause:
    return volumes.c.project_id == (context.project_id or '')


def visible(context: Context) -> Clause:
    return sa.true() if context.is_admin else owned(context)


def matches(filters: Mapping[str, Any]) -> list[Clause]:
    """One clause for each filter: a column, `volume_type` by name, `metadata` or `image_metadata` as a mapping."""
    return [_match(name, value) for name, value in filters.items()]


def _match(name: str, value: Any) -> Clause:
    if name in PAIRS:
        return sa.and_(*(pairs.has(PAIRS[name], volumes.c.id, key, text) for key, text in value.items()))
    if name in ('created_at', 'updated_at'):
        return listing.compared(volumes.c[name], value)
    return listing.equals(volume_types.c.name if name == 'volume_type' else volumes.c[name], value)


def listed(context: Context, all_projects: bool) -> Clause:
    return visible(context) if all_projects else owned(context)


SELECT = sa.select(volumes, volume_types.c.name.label('volume_type')).join(
    volume_types, volume_types.c.id == volumes.c.volume_type_id
)


def select(connection: sa.Connection, *where: Clause) -> list[Facts]:
    """Volumes with the name of their type, metadata and attachments, in four queries."""
    return _load(connection, SELECT.where(*where))


def page(
    connection: sa.Connection,
    context: Context,
    *where: Clause,
    sort: Sequence[tuple[str, str]],
    page: Page,
    offset: int | None = None,
) -> list[Facts]:
    """As `select`, sorted; Invalid for a marker that the caller does not see."""
    order, marked = listing.sorted_by(sort, SORT_KEYS, volumes.c.id), [among([page.marker or '']), visible(context)]
    unknown = 'marker: Volume {marker} could not be found.'
    statement = listing.paged(connection, SELECT, order, page, marked=marked, where=where, unknown=unknown)
    return _load(connection, statement.offset(offset))


def _load(connection: sa.Connection, query: sa.Select[Any]) -> list[Facts]:
    rows = connection.execute(query).mappings().all()
    ids = [row['id'] for row in rows]
    parts = {name: pairs.load(connection, table, ids) for name, table in PAIRS.items()}
    attached = _attached(connection, ids)
    return [
        {**row, **{name: found[row['id']] for name, found in parts.items()}, 'attachments': tuple(attached[row['id']])}
        for row in rows
    ]


def _attached(connection: sa.Connection, volume_ids: Collection[str]) -> dict[str, list[Facts]]:
    """The attachments that are in use, by volume."""
    found: dict[str, list[Facts]] = {volume_id: [] for volume_id in volume_ids}
    query = (
        sa.select(
            volume_attachments.c.volume_id,
            volume_attachments.c.id.label('attachment_id'),
            volume_attachments.c.server_id,
            volume_attachments.c.host,
            volume_attachments.c.device,
            volume_attachments.c.attached_at,
        )
        .where(volume_attachments.c.volume_id.in_(volume_ids), volume_attachments.c.status == 'attached')
        .order_by(volume_attachments.c.attached_at, volume_attachments.c.id)
    )
    for row in connection.execute(query).mappings() if volume_ids else ():
        found[row['volume_id']].append({name: value for name, value in row.items() if name != 'volume_id'})
    return found


def count(connection: sa.Connection, *where: Clause) -> tuple[int, int]:
    """How many there are, and their size in all."""
    query = (
        sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(volumes.c.size), 0))
        .select_from(volumes.join(volume_types, volume_types.c.id == volumes.c.volume_type_id))
        .where(*where)
    )
    number, size = connection.execute(query).one()
    return number, int(size)


def metadata_values(connection: sa.Connection, *where: Clause) -> dict[str, list[str]]:
    """The values that each name has in the metadata of these volumes."""
    found: dict[str, list[str]] = {}
    query = (
        sa.select(volume_metadata.c.name, volume_metadata.c.value)
        .join(volumes, volumes.c.id == volume_metadata.c.owner_id)
        .join(volume_types, volume_types.c.id == volumes.c.volume_type_id)
        .where(*where)
        .order_by(volume_metadata.c.name, volume_metadata.c.value)
        .distinct()
    )
    for name, value in connection.execute(query):
        found.setdefault(name, []).append(value)
    return found


def lock(connection: sa.Connection, volume_id: str) -> None:
    """Keep others from changing the volume, its attachments and snapshots until this transaction ends."""
    connection.execute(sa.select(volumes.c.id).where(volumes.c.id == volume_id).with_for_update()).all()


def insert(connection: sa.Connection, facts: Facts) -> None:
    connection.execute(sa.insert(volumes).values(_columns(facts)))
    for name, table in PAIRS.items():
        pairs.add(connection, table, facts['id'], facts.get(name, {}))


def update(connection: sa.Connection, volume_id: str, facts: Facts) -> None:
    """Set what is given; `metadata` and `image_metadata` replace all there is."""
    connection.execute(sa.update(volumes).where(volumes.c.id == volume_id).values(_columns(facts)))
    for name, table in PAIRS.items():
        if name in facts:
            pairs.replace(connection, table, volume_id, facts[name])


def _columns(facts: Facts) -> Facts:
    return {name: value for name, value in facts.items() if name in volumes.c}


def delete(connection: sa.Connection, volume_id: str) -> None:
    connection.execute(sa.delete(volumes).where(volumes.c.id == volume_id))
