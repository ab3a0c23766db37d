"""Finds the few servers that match a selective filter, by an index on that value."""

import re
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from computeapi.db import patterns
from computeapi.db.index_scans import FEW, Place, hinted
from computeapi.db.server_filters import ADDRESSES, CLOCKS_DIFFER
from computeapi.db.server_scans import BY, LIVING, OF_PROJECT, THERE, Reach
from computeapi.db.tables.servers import server_addresses, server_tags, servers

COSTLIER = 10
"""How much more expensive reading a row is than examining an index entry."""
LAST_LETTER = chr(0x10FFFF)
WHOLE_ADDRESS = re.compile(r'\^([0-9]+)' + r'\\?\.([0-9]+)' * 3 + r'\$')
WHOLE_RESERVATION = re.compile(r'\^?(r-[a-z0-9]{8})\$?')

Places = sa.Select[Any]
PLACES: Places = sa.select(servers.c.created_at, servers.c.id)


class Lookup(NamedTuple):
    """Statements that together find the places of all servers that match a filter.

    ids: finds the servers' IDs, which shows more cheaply whether they are few.
    scanned, max_rows: the rows that the last statement scans, and the limit for these.
    """

    statements: list[Places]
    ids: sa.Select[Any] | None = None
    scanned: sa.Select[Any] | None = None
    max_rows: int = 0


def places(
    connection: sa.Connection, reach: Reach, filters: Mapping[str, Any], far: int | None, max_rows: int
) -> list[Place] | None:
    """The places of servers that include all wanted ones, if some filter shows that they are few.

    far: how many servers are wanted, if a scan would pass servers of other projects on the way to them.
    max_rows: how many rows may be examined without an index to rely on.
    """
    if far is not None and reach.project_id is not None:
        everyone = _of_project(reach)
        if _is_small(connection, everyone, far):
            return list(connection.execute(everyone))
    for name, value in filters.items():
        for lookup in _lookups(connection.dialect.name, reach, name, value, max_rows * COSTLIER):
            if (found := _found(connection, lookup)) is not None:
                return found
    return None


def through_all(
    connection: sa.Connection, reach: Reach, filters: Mapping[str, Any], entries: int
) -> list[Place] | None:
    """Like `places`, by scanning all names or addresses, if there are no more than *entries* of them."""
    for name, value in filters.items():
        lookup = _looking_through(connection.dialect.name, reach, name, value, entries)
        if lookup is not None and not _is_too_much(connection, lookup):
            return _found(connection, lookup._replace(scanned=None))
    return None


def _is_small(connection: sa.Connection, everyone: Places, wanted: int) -> bool:
    """Whether reading all servers of a project takes less than looking for them among others."""
    if _is_beyond(connection, everyone, FEW):
        return False
    there = connection.scalar(sa.select(sa.func.count()).select_from(everyone.subquery())) or 0
    everybody = connection.scalar(sa.select(sa.func.max(servers.c.id))) or 0
    return everybody * min(wanted, there) > COSTLIER * there * there


def _found(connection: sa.Connection, lookup: Lookup) -> list[Place] | None:
    if lookup.ids is not None and _is_beyond(connection, lookup.ids, FEW):
        return None
    found: set[Place] = set()
    for statement in lookup.statements:
        # A server may occur twice.
        some = connection.execute(statement.limit(FEW + 1)).all()
        if len(some) > FEW:
            return None
        found.update(map(tuple, some))
    return None if _is_too_much(connection, lookup) else list(found)


def _is_too_much(connection: sa.Connection, lookup: Lookup) -> bool:
    return lookup.scanned is not None and _is_beyond(connection, lookup.scanned, lookup.max_rows)


def _is_beyond(connection: sa.Connection, rows: sa.Select[Any], max_rows: int) -> bool:
    """Whether there are more than that; skipping rows costs a third of counting them."""
    return connection.execute(rows.offset(max_rows).limit(1)).first() is not None


def _of_project(reach: Reach) -> Places:
    if reach.deleted is False:
        return hinted(PLACES.where(THERE, *reach.owned()), BY['project_id'])
    return hinted(PLACES.where(*reach.owned()), OF_PROJECT)


def _lookups(dialect: str, reach: Reach, name: str, value: Any, max_rows: int) -> Iterator[Lookup]:
    """The ways to look servers up by one filter."""
    if name == 'uuid':
        yield Lookup([PLACES.where(servers.c.uuid == value)])
    elif name == 'reservation_id' and (whole := WHOLE_RESERVATION.fullmatch(value)):
        yield Lookup([PLACES.where(servers.c.reservation_id == whole[1])])
    elif name == 'changes_since':
        yield _changed(reach, value.replace(microsecond=0))
    elif name in ('tags', 'tags_any'):
        for tags in [value] if name == 'tags_any' else ([tag] for tag in value):
            yield _tagged(tags)
    elif name in ADDRESSES and (prefix := _beginning_of(name, value)):
        yield _at(dialect, ADDRESSES[name], value, prefix, max_rows)
    elif name == 'name' and reach.deleted is False and (prefix := patterns.prefix(value)):
        yield _named(dialect, reach, value, prefix, max_rows)


def _looking_through(dialect: str, reach: Reach, name: str, value: Any, max_rows: int) -> Lookup | None:
    if name in ADDRESSES:
        return _at(dialect, ADDRESSES[name], value, '', max_rows)
    return _named(dialect, reach, value, '', max_rows) if name == 'name' and reach.deleted is False else None


def _tagged(tags: Collection[str]) -> Lookup:
    return _of(sa.select(server_tags.c.server_id).where(server_tags.c.tag.in_(tags)))


def _changed(reach: Reach, moment: datetime) -> Lookup:
    """Servers that changed or were created since then: by those indexes; deleted ones: among all deletions since then,
    allowing for clock differences."""
    living = [
        hinted(PLACES.where(THERE, servers.c.updated_at >= moment, *reach.owned()), BY['updated_at']),
        hinted(PLACES.where(THERE, servers.c.created_at >= moment, *reach.owned()), LIVING),
    ]
    if reach.deleted is False:
        return Lookup(living)
    max_rows = FEW * COSTLIER
    deleted = servers.c.deleted_at >= max(moment, datetime.min + CLOCKS_DIFFER) - CLOCKS_DIFFER
    seen = hinted(PLACES.add_columns(servers.c.updated_at).where(deleted, *reach.owned()), BY['updated_at'])
    some = seen.limit(max_rows).subquery()
    changed = sa.func.coalesce(some.c.updated_at, some.c.created_at)
    gone = sa.select(some.c.created_at, some.c.id).where(changed >= moment)
    return Lookup([*living, gone], scanned=seen, max_rows=max_rows)


def _at(dialect: str, version: int, pattern: str, prefix: str, max_rows: int) -> Lookup:
    seen = sa.select(server_addresses.c.server_id, server_addresses.c.address)
    seen = seen.where(server_addresses.c.version == version, *_beginning(server_addresses.c.address, prefix))
    some = seen.limit(max_rows).subquery()
    found = sa.select(some.c.server_id).where(patterns.matches(some.c.address, pattern, dialect))
    return _of(found)._replace(scanned=seen, max_rows=max_rows)


def _beginning_of(name: str, pattern: str) -> str:
    """The common prefix of all addresses that the pattern matches."""
    if name == 'ip' and (whole := WHOLE_ADDRESS.fullmatch(pattern)):
        # An unescaped dot matches any character, but in an address of this form it can only be a dot.
        return '.'.join(whole.groups())
    return patterns.prefix(pattern)


def _of(ids: sa.Select[Any]) -> Lookup:
    """The servers with these IDs, among which there may be duplicates."""
    some = ids.limit(FEW + 1).subquery()
    return Lookup([PLACES.select_from(some.join(servers, servers.c.uuid == some.c.server_id))], ids=ids)


def _named(dialect: str, reach: Reach, pattern: str, prefix: str, max_rows: int) -> Lookup:
    name = servers.c.folded_name
    there = hinted(PLACES.where(THERE, *reach.owned(), *_beginning(name, prefix)), BY['folded_name'])
    seen = there.add_columns(name)
    some = seen.limit(max_rows).subquery()
    found = sa.select(some.c.created_at, some.c.id).where(
        patterns.matches(some.c.folded_name, pattern, dialect, folded=True)
    )
    return Lookup([found], scanned=seen, max_rows=max_rows)


def _beginning(column: sa.ColumnElement[str], prefix: str) -> list[sa.ColumnElement[bool]]:
    return [column.between(prefix, prefix + LAST_LETTER)] if prefix else []
