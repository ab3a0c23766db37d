"""Servers with tags, by age, along a tag's index, which includes the age of its servers."""

import functools
import heapq
import itertools
import operator
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from computeapi.db import index_scans
from computeapi.db.index_scans import IndexScan, Place, index_of
from computeapi.db.server_scans import MAX_BRANCHES, Reach, nearness
from computeapi.db.tables.servers import server_tags

OF_ALL = index_of(server_tags, 'ix_server_tags_tag_created_at_server_id')
OF_PROJECT = index_of(server_tags, 'ix_server_tags_project_id_tag_created_at_server_id')
KEYS = 2
"""The servers of a tag are ordered by creation time, then UUID, because the index does not have their IDs."""
AGELESS = (
    sa.select(sa.literal(1))
    .where(server_tags.c.tag.in_(sa.bindparam('tags', expanding=True)), server_tags.c.created_at.is_(None))
    .limit(1)
)
OTHERS = server_tags.alias('others')
IsEnough = Callable[[int, int], bool]
"""Whether to end the search, given the numbers of servers examined and found."""


class TaggedServer(NamedTuple):
    """A server that has the tags; or the last one examined, which may not have them (fits is False)."""

    created_at: datetime
    uuid: str
    fits: bool = True


class Tags(NamedTuple):
    """every: whether a server must have all of the tags, not just one."""

    names: Sequence[str]
    every: bool


def are_told(connection: sa.Connection, tags: Collection[str]) -> bool:
    """Whether the rows of these tags all have the servers' age: processes of an older release, which run during a
    rolling upgrade, do not write it."""
    return len(tags) <= MAX_BRANCHES and connection.execute(AGELESS, {'tags': list(tags)}).first() is None


def groups(
    connection: sa.Connection, reach: Reach, tags: Tags, descending: bool, marker: datetime | None, is_enough: IsEnough
) -> Iterator[list[TaggedServer]]:
    """The servers that are as old as the marker or come after it, in groups of the same age, whose order within is not
    known."""
    servers = _servers(connection, reach, tags, descending, marker, is_enough)
    for _, group in itertools.groupby(servers, operator.itemgetter(0)):
        yield list({each.uuid: each for each in group}.values())


def _servers(
    connection: sa.Connection, reach: Reach, tags: Tags, descending: bool, marker: datetime | None, is_enough: IsEnough
) -> Iterator[TaggedServer]:
    along = [_scan(reach, tag, descending, marker) for tag in tags.names]
    if not tags.every or len(along) == 1:
        ways = [index_scans.places(connection, scan) for scan in along]
        merged = heapq.merge(*ways, key=operator.itemgetter(0), reverse=descending)
        return itertools.starmap(TaggedServer, merged)
    fewest = min(range(len(along)), key=lambda number: nearness(connection, [along[number]]))
    fits = _has(tuple(name for number, name in enumerate(tags.names) if number != fewest))
    return _fitting(index_scans.places(connection, along[fewest], more=(fits,)), is_enough)


def _fitting(there: Iterator[Place], is_enough: IsEnough) -> Iterator[TaggedServer]:
    found, before = 0, None
    for looked_at, place in enumerate(there):
        created_at, _, fits = place
        if before is not None and not before[2] and created_at != before[0] and is_enough(looked_at, found):
            yield TaggedServer(*before)
            return
        if fits:
            yield TaggedServer(*place)
            found += 1
        before = place


def _scan(reach: Reach, tag: str, descending: bool, marker: datetime | None) -> IndexScan:
    created_at = server_tags.c.created_at
    beyond = () if marker is None else ((created_at <= marker) if descending else (created_at >= marker),)
    along, fixed = (OF_ALL, (tag,)) if reach.project_id is None else (OF_PROJECT, (reach.project_id, tag))
    return IndexScan(along, fixed, KEYS, descending, where=beyond)


@functools.lru_cache(maxsize=64)
def _has(names: tuple[str, ...]) -> sa.ColumnElement[Any]:
    """Whether the server of a tag's row has these tags as well."""
    its = (OTHERS.c.server_id == server_tags.c.server_id) & OTHERS.c.tag.in_(names)
    return (sa.select(sa.func.count()).select_from(OTHERS).where(its).scalar_subquery() == len(names)).label('fits')
