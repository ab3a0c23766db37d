"""Snapshots of volumes in the store."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from computeapi.context import Context
from computeapi.db import listing, pairs
from computeapi.db.listing import Clause, Page
from computeapi.db.tables.volume import volume_snapshot_metadata, volume_snapshots

Facts = dict[str, Any]

SORT_KEYS = {
    'id': volume_snapshots.c.id,
    **dict.fromkeys(('name', 'display_name'), sa.func.coalesce(volume_snapshots.c.name, '')),
    'status': volume_snapshots.c.status,
    'size': volume_snapshots.c.size,
    'volume_id': volume_snapshots.c.volume_id,
    'created_at': volume_snapshots.c.created_at,
    'updated_at': volume_snapshots.c.updated_at,
}


def among(snapshot_ids: Iterable[str]) -> Clause:
    return volume_snapshots.c.id.in_(set(snapshot_ids))


def of(volume_id: str) -> Clause:
    return volume_snapshots.c.volume_id == volume_id


def made(volume_id: str, snapshot_id: str | None) -> Clause:
    """The snapshot of the volume that was made under this id before."""
    return sa.and_(of(volume_id), among([snapshot_id or '']))


def owned(context: Context) -> Clause:
    return volume_snapshots.c.project_id == (context.project_id or '')


def visible(context: Context) -> Clause:
    return sa.true() if context.is_admin else owned(context)


def matches(filters: Mapping[str, Any]) -> list[Clause]:
    """One clause for each filter: a column, or `metadata` as a mapping."""
    return [_match(name, value) for name, value in filters.items()]


def _match(name: str, value: Any) -> Clause:
    if name == 'metadata':
        owner = volume_snapshots.c.id
        return sa.and_(*(pairs.has(volume_snapshot_metadata, owner, key, text) for key, text in value.items()))
    if name in ('created_at', 'updated_at'):
        return listing.compared(volume_snapshots.c[name], value)
    return listing.equals(volume_snapshots.c[name], value)


def listed(context: Context, all_projects: bool) -> Clause:
    return visible(context) if all_projects else owned(context)


def select(connection: sa.Connection, *where: Clause) -> list[Facts]:
    """Snapshots with their metadata, in two queries."""
    return _load(connection, sa.select(volume_snapshots).where(*where))


def page(
    connection: sa.Connection,
    context: Context,
    *where: Clause,
    sort: Sequence[tuple[str, str]],
    page: Page,
    offset: int | None = None,
) -> list[Facts]:
    """As `select`, sorted; Invalid for a marker that the caller does not see."""
    order = listing.sorted_by(sort, SORT_KEYS, volume_snapshots.c.id)
    marked = [among([page.marker or '']), visible(context)]
    unknown = 'marker: Snapshot {marker} could not be found.'
    statement = listing.paged(
        connection, sa.select(volume_snapshots), order, page, marked=marked, where=where, unknown=unknown
    )
    return _load(connection, statement.offset(offset))


def _load(connection: sa.Connection, query: sa.Select[Any]) -> list[Facts]:
    rows = connection.execute(query).mappings().all()
    metadata = pairs.load(connection, volume_snapshot_metadata, [row['id'] for row in rows])
    return [{**row, 'metadata': metadata[row['id']]} for row in rows]


def count(connection: sa.Connection, *where: Clause) -> tuple[int, int]:
    """How many there are, and their size in all."""
    size = sa.func.coalesce(sa.func.sum(volume_snapshots.c.size), 0)
    number, total = connection.execute(sa.select(sa.func.count(), size).where(*where)).one()
    return number, int(total)


def lock(connection: sa.Connection, snapshot_id: str) -> None:
    """Keep others from changing the snapshot until this transaction ends."""
    query = sa.select(volume_snapshots.c.id).where(volume_snapshots.c.id == snapshot_id)
    connection.execute(query.with_for_update()).all()


def insert(connection: sa.Connection, facts: Facts) -> None:
    connection.execute(sa.insert(volume_snapshots).values(_columns(facts)))
    pairs.add(connection, volume_snapshot_metadata, facts['id'], facts['metadata'])


def update(connection: sa.Connection, snapshot_id: str, facts: Facts) -> None:
    """Set what is given; `metadata` replaces all there is."""
    query = sa.update(volume_snapshots).where(volume_snapshots.c.id == snapshot_id)
    connection.execute(query.values(_columns(facts)))
    if 'metadata' in facts:
        pairs.replace(connection, volume_snapshot_metadata, snapshot_id, facts['metadata'])


def _columns(facts: Facts) -> Facts:
    return {name: value for name, value in facts.items() if name in volume_snapshots.c}


def delete(connection: sa.Connection, *where: Clause) -> None:
    connection.execute(sa.delete(volume_snapshots).where(*where))
