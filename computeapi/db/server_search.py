"""Pages of servers: in any order, with any filters, along an index."""

import heapq
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from computeapi.db import index_scans, listing, server_lookups, server_tagged
from computeapi.db.constant_queries import Row
from computeapi.db.index_scans import IndexScan, Place
from computeapi.db.listing import UNKNOWN_MARKER, Clause, Page
from computeapi.db.records import Rows
from computeapi.db.server_filters import ADDRESSES, condition
from computeapi.db.server_scans import BY, USUAL, Reach, by_age, in_order_of
from computeapi.db.server_tagged import TaggedServer, Tags
from computeapi.db.servers import SERVERS, load
from computeapi.db.tables.server_lists import TIES
from computeapi.db.tables.servers import servers
from computeapi.errors import Invalid

COLUMNS = {'name': 'folded_name'}
"""The column that is used for sorting instead."""
BATCH = 1000
EXTENSION_FACTOR = 10
"""The factor by which a search goes on if no server has matched yet."""


class Search(NamedTuple):
    """The wanted servers.

    project_id: None for those of all projects.  deleted: those that are deleted (True), that are not (False), or both
    (None).  soft_deleted: whether those that can be restored count as existing.  filters: see server_filters.condition.
    max_examined: how many servers are examined for a page, if no index fits the filters.
    """

    project_id: str | None = None
    deleted: bool | None = False
    soft_deleted: bool | None = None
    filters: Mapping[str, Any] = {}
    max_examined: int = 20_000


class Found(NamedTuple):
    """The servers of a page, as the requested records.  last: the UUID of the last server that was examined, if the
    page is not full but there are more to examine."""

    servers: list[Any]
    last: str | None = None


def page(
    connection: sa.Connection,
    page: Page,
    search: Search,
    needs: Collection[str] = (),
    records: Rows[Any] = SERVERS,
) -> Found:
    """One page of the wanted servers; needs: see db.servers.

    Invalid for an unknown marker, and, with the filter's name, for an unusable value.
    """
    found = Pager(connection, page, search, records).found()
    load(connection, found.servers, needs)
    return found


class Pager:
    """Finds one page.

    If the servers of the page are consecutive in an index, it is scanned. If they are among a few that an index finds,
    or in several indexes, those are examined in order until the page is full.
    """

    def __init__(self, connection: sa.Connection, page: Page, search: Search, records: Rows[Any]):
        self.connection, self.page, self.search, self.records = connection, page, search, records
        project_id = search.filters.get('project_id') if search.project_id is None else search.project_id
        self.reach = Reach(project_id, search.deleted, search.soft_deleted)
        self.filters = {name: value for name, value in search.filters.items() if name != 'project_id'}
        dialect = connection.dialect.name
        self.conditions = {name: condition(dialect, name, value) for name, value in self.filters.items()}
        self.key, self.descending = _order(page.sort)
        if self.key == 'project_id' and project_id is not None:
            self.key = USUAL
        self.marker = self._marked(page.marker)

    def found(self) -> Found:
        reach = self.reach
        scans, told = self._scans()
        if scans is None:
            return self._sorted(self._wanted())
        sought = {name: value for name, value in self.filters.items() if name not in told}
        tags = None if told or self.key != USUAL or reach.deleted is not False else self._tags(sought)
        if tags is not None:
            del sought['tags' if tags.every else 'tags_any']
        where = [*reach.beyond_scans(), *(self.conditions[name] for name in sought)]
        far = None if all(is_near(scan, reach) for scan in scans) else self.page.limit
        few = server_lookups.places(self.connection, reach, sought, far, self.search.max_examined)
        if few is not None:
            return self._among(few, self._wanted())
        if tags is not None:
            return self._tagged(tags, [*reach.conditions(), *(self.conditions[name] for name in sought)])
        if (found := self._through_all(sought, self.page.limit or BATCH)) is not None:
            return found
        alone = self.key == USUAL and len(scans) == 1
        if lets_most_pass(sought) and (alone or self.key != USUAL):
            return Found(self._scanned(scans, where))
        entries = self.search.max_examined * server_lookups.COSTLIER
        if alone:
            return self._bounded(scans[0], where, lambda: self._through_all(sought, entries))
        there = self._side_by_side(scans) if self.key == USUAL else self._one_by_one(scans)
        return self._through_all(sought, entries) or self._sifted(there, where)

    def _wanted(self) -> list[Clause]:
        """All conditions on the servers, some of which a scan includes already."""
        return [*self.reach.conditions(), *self.conditions.values()]

    def _scans(self) -> tuple[list[IndexScan] | None, Collection[str]]:
        if self.key == USUAL:
            return by_age(self.connection, self.reach, self.descending, self.filters)
        return (in_order_of(self.reach, self.key, self.descending) if self.key else None), ()

    def _marked(self, marker: str | None) -> sa.Row[Any] | None:
        if marker is None:
            return None
        statement = sa.select(servers).where(servers.c.uuid == marker)
        if self.search.project_id is not None:
            statement = statement.where(servers.c.project_id == self.search.project_id)
        found = self.connection.execute(statement).first()
        if found is None:
            raise Invalid(UNKNOWN_MARKER.format(marker=marker))
        return found

    # ------------------------------------------------------------ along an index

    def _further(self, some: Sequence[IndexScan]) -> Iterator[tuple[IndexScan, Place | None]]:
        """Of consecutive scans, those that continue after the marker, the first one from there."""
        reached = self.marker is None
        for scan in some:
            if reached:
                yield scan, None
            # The scan of rows with a key contains the marker only if the marker's row has the key.
            elif len(some) == 1 or scan.present == (self._held(self.key) is not None):
                reached = True
                yield scan, self._place(scan)

    def _held(self, name: str) -> Any:
        return None if self.marker is None else self.marker._mapping[name]

    def _place(self, scan: IndexScan) -> Place | None:
        return None if self.marker is None else [self._held(column.name) for column in scan.order]

    def _scanned(self, some: Sequence[IndexScan], where: Sequence[Clause]) -> list[Any]:
        found: list[Row] = []
        for scan, after in self._further(some):
            room = None if self.page.limit is None else self.page.limit - len(found)
            if room != 0:
                scan = scan._replace(uncovered=(*scan.uncovered, *where))
                found += index_scans.rows(self.connection, self.records.select, scan, after, room)
        return self.records.of(found)

    def _bounded(self, scan: IndexScan, where: Sequence[Clause], otherwise: Callable[[], Found | None]) -> Found:
        """Like `_scanned`, but examines only a limited number of servers, and more only while none matches. It proceeds
        in stretches of growing size, so that a page that fills up soon does not pay for what follows.

        otherwise: finds the page in another way, if possible, when it will not be full within the limit.
        """
        if self.page.limit is None:
            return Found(self._scanned([scan], where))
        found, end, looked_at = list[Row](), self._place(scan), 0
        for number, size in enumerate(self._stretches(self.page.limit)):
            will_be_full = len(found) * self.search.max_examined >= self.page.limit * looked_at
            if number == 1 and not will_be_full and (told := otherwise()) is not None:
                return told
            after, end = end, index_scans.place_at(self.connection, scan, end, size)
            narrow = scan._replace(uncovered=(*scan.uncovered, *where))
            room = self.page.limit - len(found)
            found += index_scans.stretch(self.connection, self.records.select, narrow, after, end, size, room)
            looked_at += size
            if end is None or len(found) == self.page.limit or self._is_enough(looked_at, len(found)):
                break
        last = None if end is None or len(found) == self.page.limit else self._id_of(end)
        return Found(self.records.of(found), last)

    def _stretches(self, limit: int) -> Iterator[int]:
        """The sizes of stretches, chosen so that one ends exactly at each limit."""
        # For a long stretch PostgreSQL would search all matching addresses, however few the page needs.
        first = BATCH if ADDRESSES.keys().isdisjoint(self.filters) else max(limit, 1) * 2
        looked_at = 0
        for bound in (self.search.max_examined, self.search.max_examined * EXTENSION_FACTOR):
            while looked_at < bound:
                size = min(looked_at * 2 or first, bound - looked_at)
                yield size
                looked_at += size

    def _is_enough(self, looked_at: int, found: int) -> bool:
        """Whether the page ends, full or not."""
        return self.page.limit is not None and looked_at >= self.search.max_examined * (
            1 if found else EXTENSION_FACTOR
        )

    # ------------------------------------------------------------ in portions

    def _side_by_side(self, some: Sequence[IndexScan]) -> Iterator[Place]:
        ways = [index_scans.places(self.connection, scan, self._place(scan)) for scan in some]
        return heapq.merge(*ways, key=tuple, reverse=self.descending)

    def _one_by_one(self, some: Sequence[IndexScan]) -> Iterator[Place]:
        for scan, after in self._further(some):
            yield from index_scans.places(self.connection, scan, after)

    def _tags(self, filters: Mapping[str, Any]) -> Tags | None:
        """The tags that are searched for, if there is an index to find them by."""
        name = next((name for name in ('tags', 'tags_any') if filters.get(name)), None)
        if name is None or not server_tagged.are_told(self.connection, filters[name]):
            return None
        return Tags(list(filters[name]), every=name == 'tags')

    def _tagged(self, tags: Tags, where: Sequence[Clause]) -> Found:
        """The servers with the tags that match, until the page is full, or enough were examined."""
        limit, found, looked_at, beyond = self.page.limit, list[Any](), 0, self._held(USUAL)
        groups = server_tagged.groups(self.connection, self.reach, tags, self.descending, beyond, self._is_enough)
        while some := _taken(groups, self._likely(looked_at, len(found))):
            fitting = self.records.select.where(
                *_those([each.uuid for each in some if each.fits], where, servers.c.uuid)
            )
            made = {each.uuid: each.created_at for each in some}
            places = {(made[each.uuid], each.id): each for each in self.records.all(self.connection, fitting)}
            ordered = sorted(places, reverse=self.descending)
            found += [places[place] for place in ordered if self._is_beyond(place)]
            looked_at += len(some)
            if limit is not None and len(found) >= limit:
                return Found(found[:limit])
            if not some[-1].fits or self._is_enough(looked_at, len(found)):
                return Found(found, self._last_of(some))
        return Found(found)

    def _likely(self, looked_at: int, found: int) -> int:
        """How many to examine next, so that the page fills up if the match rate stays the same."""
        if self.page.limit is None:
            return BATCH
        return min((self.page.limit - found) * (looked_at // max(found, 1) + 1), BATCH)

    def _is_beyond(self, place: Place) -> bool:
        """Whether the place comes after the marker."""
        if self.marker is None:
            return True
        held = (self.marker.created_at, self.marker.id)
        return tuple(place) < held if self.descending else tuple(place) > held

    def _last_of(self, some: Sequence[TaggedServer]) -> str | None:
        """The last in order of those that are as old as the last of these."""
        alike = [each.uuid for each in some if each.created_at == some[-1].created_at]
        number = servers.c.id.asc() if self.descending else servers.c.id.desc()
        statement = sa.select(servers.c.uuid).where(servers.c.uuid.in_(alike)).order_by(number).limit(1)
        return self.connection.scalar(statement)

    def _among(self, few: Sequence[Place], where: Sequence[Clause]) -> Found:
        if self.key != USUAL:
            return self._sorted(_those([number for *_, number in few], where))
        ordered = sorted(map(tuple, few), reverse=self.descending)
        return self._sifted(filter(self._is_beyond, ordered), where, bounded=False)

    def _through_all(self, sought: Mapping[str, Any], entries: int) -> Found | None:
        few = server_lookups.through_all(self.connection, self.reach, sought, entries)
        return None if few is None else self._among(few, self._wanted())

    def _sifted(self, there: Iterable[Place], where: Sequence[Clause], *, bounded: bool = True) -> Found:
        """The matching servers at these places, until the page is full, or enough were examined."""
        limit, found, looked_at, size = self.page.limit, list[Any](), 0, self.page.limit or BATCH
        source = iter(there)
        while some := [place[-1] for place in itertools.islice(source, min(size, BATCH))]:
            fitting = self.records.select.where(*_those(some, where))
            by_id = {each.id: each for each in self.records.all(self.connection, fitting)}
            found += [by_id[number] for number in some if number in by_id]
            looked_at, size = looked_at + len(some), size * 2
            if limit is not None and len(found) >= limit:
                return Found(found[:limit])
            if bounded and self._is_enough(looked_at, len(found)):
                return Found(found, self._id_of([some[-1]]))
        return Found(found)

    def _sorted(self, where: Sequence[Clause]) -> Found:
        """Without an index."""
        names = [(COLUMNS.get(name, name), descending) for name, descending in self.page.sort]
        order = listing.ordered(servers, self.page._replace(sort=names), *TIES)
        marked = [servers.c.uuid == self.page.marker]
        statement = listing.paged(self.connection, self.records.select, order, self.page, marked=marked, where=where)
        return Found(self.records.all(self.connection, statement))

    def _id_of(self, place: Place) -> str | None:
        return self.connection.scalar(sa.select(servers.c.uuid).where(servers.c.id == place[-1]))


def _order(sort: Sequence[tuple[str, bool]]) -> tuple[str, bool]:
    """The column that servers are sorted by, before their age, and whether it is descending; '' if the sort order has
    no index. The default is oldest first."""
    names = [COLUMNS.get(name, name) for name, _ in sort] or [USUAL]
    same = len({descending for _, descending in sort}) < 2
    alone = names[0] == USUAL and names[1:] in ([], ['id']) or len(names) == 1
    return (names[0] if same and alone else ''), sort[0][1] if sort else False


def _taken(groups: Iterator[list[TaggedServer]], size: int) -> list[TaggedServer]:
    """The next whole groups, together at least *size* servers, if there are as many."""
    some: list[TaggedServer] = []
    while len(some) < size and (group := next(groups, None)):
        some += group
    return some


def _those(ids: Sequence[Any], where: Sequence[Clause], key: sa.ColumnElement[Any] = servers.c.id) -> list[Clause]:
    """Conditions for the matching servers among these IDs; the CASE keeps databases from using any other index."""
    return [key.in_(ids), sa.case((sa.and_(sa.true(), *where), 1), else_=0) == 1]


def is_near(scan: IndexScan, reach: Reach) -> bool:
    """Whether a scan passes no servers of other projects."""
    return reach.project_id is None or scan.along is BY['project_id']


def lets_most_pass(filters: Mapping[str, Any]) -> bool:
    """Whether most servers match these filters."""
    rest = filters.keys() - {'host_not_in', 'changes_before'}
    return not rest or (rest == {'locked'} and not filters['locked'])
