"""Servers that have tags, in the order of their age: along the index of a tag, which tells how old its servers are."""

import functools
import heapq
import itertools
import operator
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from computeapi.db import walks
from computeapi.db.server_branches import MOST_BRANCHES, Reach, nearness
from computeapi.db.tables.servers import server_tags
from computeapi.db.walks import Place, Walk, index_of

OF_ALL = index_of(server_tags, 'ix_server_tags_tag_created_at_server_id')
OF_PROJECT = index_of(server_tags, 'ix_server_tags_project_id_tag_created_at_server_id')
KEYS = 2
"""Servers of a tag stand by when they were made, and then by their UUIDs, for their numbers are not told."""
AGELESS = (
    sa.select(sa.literal(1))
    .where(server_tags.c.tag.in_(sa.bindparam('tags', expanding=True)), server_tags.c.created_at.is_(None))
    .limit(1)
)
OTHERS = server_tags.alias('others')
IsEnough = Callable[[int, int], bool]
"""Whether to end, so many having been looked at and found."""


class TaggedServer(NamedTuple):
    """A server that has the tags; or (fits) the last one that was looked at, which may not."""

    created_at: datetime
    uuid: str
    fits: bool = True


class Tags(NamedTuple):
    """every: whether a server must have all of them, and not just one."""

    names: Sequence[str]
    every: bool


def are_told(connection: sa.Connection, tags: Collection[str]) -> bool:
    """Whether the age of all servers is known that have one of these tags: a process of an older release, which runs
    beside this one during an upgrade, does not tell it."""
    return len(tags) <= MOST_BRANCHES and connection.execute(AGELESS, {'tags': list(tags)}).first() is None


def groups(
    connection: sa.Connection, reach: Reach, tags: Tags, descending: bool, marker: datetime | None, is_enough: IsEnough
) -> Iterator[list[TaggedServer]]:
    """Those that are as old as the marker or come after it, each group as old as one another: which of them comes first
    is not told."""
    servers = _servers(connection, reach, tags, descending, marker, is_enough)
    for _, group in itertools.groupby(servers, operator.itemgetter(0)):
        yield list({each.uuid: each for each in group}.values())


def _servers(
    connection: sa.Connection, reach: Reach, tags: Tags, descending: bool, marker: datetime | None, is_enough: IsEnough
) -> Iterator[TaggedServer]:
    along = [_walk(reach, tag, descending, marker) for tag in tags.names]
    if not tags.every or len(along) == 1:
        ways = [walks.places(connection, walk) for walk in along]
        merged = heapq.merge(*ways, key=operator.itemgetter(0), reverse=descending)
        return itertools.starmap(TaggedServer, merged)
    fewest = min(range(len(along)), key=lambda number: nearness(connection, [along[number]]))
    fits = _has(tuple(name for number, name in enumerate(tags.names) if number != fewest))
    return _fitting(walks.places(connection, along[fewest], more=(fits,)), is_enough)


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


def _walk(reach: Reach, tag: str, descending: bool, marker: datetime | None) -> Walk:
    created_at = server_tags.c.created_at
    beyond = () if marker is None else ((created_at <= marker) if descending else (created_at >= marker),)
    along, fixed = (OF_ALL, (tag,)) if reach.project_id is None else (OF_PROJECT, (reach.project_id, tag))
    return Walk(along, fixed, KEYS, descending, where=beyond)


@functools.lru_cache(maxsize=64)
def _has(names: tuple[str, ...]) -> sa.ColumnElement[Any]:
    """Whether the server of a row of tags has these, too."""
    its = (OTHERS.c.server_id == server_tags.c.server_id) & OTHERS.c.tag.in_(names)
    return (sa.select(sa.func.count()).select_from(OTHERS).where(its).scalar_subquery() == len(names)).label('fits')
