"""Servers that are few: where they stand, by an index of what few have."""

import re
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from computeapi.db import patterns
from computeapi.db.server_branches import BY, LIVING, OF_PROJECT, Reach
from computeapi.db.server_filters import ADDRESSES, CLOCKS_DIFFER
from computeapi.db.tables.servers import server_addresses, server_tags, servers
from computeapi.db.walks import FEW, Place, hinted

COSTLIER = 10
"""How much more it takes to get a row than to look at its entry in an index."""
LAST_LETTER = chr(0x10FFFF)
WHOLE_RESERVATION = re.compile(r'\^?(r-[a-z0-9]{8})\$?')

Places = sa.Select[Any]
PLACES: Places = sa.select(servers.c.created_at, servers.c.id)
THERE = servers.c.deleted_at.is_(None)


class Lookup(NamedTuple):
    """Statements that together tell the places of all servers that a filter lets pass.

    scanned: of what the statement looks at all, as far as it may; else it finds them by an index.
    ids: what the servers are found by, which tells at less cost when they are not few.
    """

    statements: list[Places]
    scanned: Places | None = None
    ids: sa.Select[Any] | None = None


def places(
    connection: sa.Connection, reach: Reach, filters: Mapping[str, Any], far: int | None, most: int
) -> list[Place] | None:
    """Where the servers stand among which are all that are wanted, if there is something of which they are few.

    far: how many servers are wanted, if in the way to them there are those of other projects.
    most: how many rows may be looked at, where there is nothing to go by.
    """
    entries = most * COSTLIER
    dialect = connection.dialect.name
    if far is not None and reach.project_id is not None:
        everyone = _of_project(reach)
        if _is_small(connection, everyone, far):
            return list(connection.execute(everyone))
    for name, value in filters.items():
        for lookup in _lookups(dialect, reach, name, value, entries):
            if (found := _found(connection, lookup, entries)) is not None:
                return found
    return None


def _is_small(connection: sa.Connection, everyone: Places, wanted: int) -> bool:
    """Whether to look at all servers of a project takes less than to look for them among others."""
    some = everyone.limit(FEW + 1).subquery()
    there = connection.scalar(sa.select(sa.func.count()).select_from(some)) or 0
    everybody = connection.scalar(sa.select(sa.func.max(servers.c.id))) or 0
    return there <= FEW and everybody * min(wanted, there) > COSTLIER * there * there


def _found(connection: sa.Connection, lookup: Lookup, most: int) -> list[Place] | None:
    if lookup.ids is not None and _is_beyond(connection, lookup.ids, FEW):
        return None
    found: set[Place] = set()
    for statement in lookup.statements:
        # A server may be there twice.
        some = connection.execute(statement.limit(FEW + 1)).all()
        if len(some) > FEW:
            return None
        found.update(map(tuple, some))
    if lookup.scanned is not None and _is_beyond(connection, lookup.scanned, most):
        return None
    return list(found)


def _is_beyond(connection: sa.Connection, rows: sa.Select[Any], most: int) -> bool:
    counted = sa.select(sa.func.count()).select_from(rows.limit(most + 1).subquery())
    return (connection.scalar(counted) or 0) > most


def _of_project(reach: Reach) -> Places:
    if reach.deleted is False:
        return hinted(PLACES.where(THERE, *reach.owned()), BY['project_id'])
    return hinted(PLACES.where(*reach.owned()), OF_PROJECT)


def _lookups(dialect: str, reach: Reach, name: str, value: Any, most: int) -> Iterator[Lookup]:
    """By one filter, in one way or another."""
    if name == 'uuid':
        yield Lookup([PLACES.where(servers.c.uuid == value)])
    elif name == 'reservation_id' and (whole := WHOLE_RESERVATION.fullmatch(value)):
        yield Lookup([PLACES.where(servers.c.reservation_id == whole[1])])
    elif name == 'changes_since':
        yield Lookup(_changed(reach, value.replace(microsecond=0)))
    elif name in ('tags', 'tags_any'):
        for tags in [value] if name == 'tags_any' else ([tag] for tag in value):
            yield _tagged(tags)
    elif name in ADDRESSES:
        yield _addressed(dialect, ADDRESSES[name], value, most)
    elif name == 'name' and reach.deleted is False:
        yield _named(dialect, reach, value, most)


def _tagged(tags: Collection[str]) -> Lookup:
    return _of(sa.select(server_tags.c.server_id).where(server_tags.c.tag.in_(tags)))


def _changed(reach: Reach, moment: datetime) -> list[Places]:
    """Who may have changed since: those who did, who were made, and who were deleted, within what clocks may differ."""
    deleted = servers.c.deleted_at >= max(moment, datetime.min + CLOCKS_DIFFER) - CLOCKS_DIFFER
    living = [
        hinted(PLACES.where(THERE, servers.c.updated_at >= moment, *reach.owned()), BY['updated_at']),
        hinted(PLACES.where(THERE, servers.c.created_at >= moment, *reach.owned()), LIVING),
    ]
    gone = hinted(PLACES.where(deleted, *reach.owned()), LIVING)
    return living if reach.deleted is False else [*living, gone]


def _addressed(dialect: str, version: int, pattern: str, most: int) -> Lookup:
    address = server_addresses.c.address
    seen = sa.select(server_addresses.c.server_id, address).where(server_addresses.c.version == version)
    if prefix := patterns.prefix(pattern):
        held = seen.where(address.between(prefix, prefix + LAST_LETTER), patterns.matches(address, pattern, dialect))
        return _of(held)
    some = seen.limit(most).subquery()
    found = sa.select(some.c.server_id).where(patterns.matches(some.c.address, pattern, dialect))
    return Lookup(_of(found).statements, seen)


def _of(ids: sa.Select[Any]) -> Lookup:
    """The servers of these ids, of which one may be there twice."""
    some = ids.limit(FEW + 1).subquery()
    return Lookup([PLACES.select_from(some.join(servers, servers.c.uuid == some.c.server_id))], ids=ids)


def _named(dialect: str, reach: Reach, pattern: str, most: int) -> Lookup:
    name = servers.c.folded_name
    there = hinted(PLACES.where(THERE, *reach.owned()), BY['folded_name'])
    if prefix := patterns.prefix(pattern):
        within = name.between(prefix, prefix + LAST_LETTER), patterns.matches(name, pattern, dialect)
        return Lookup([there.where(*within)])
    seen = there.add_columns(name)
    some = seen.limit(most).subquery()
    found = sa.select(some.c.created_at, some.c.id).where(patterns.matches(some.c.folded_name, pattern, dialect))
    return Lookup([found], seen)
