"""Plans the index scans for a list of servers: consecutive ones in the order of a key, or parallel ones in the default
order, if there is an index of a value that the servers share."""

import functools
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from computeapi.db import index_scans, patterns
from computeapi.db.index_scans import IndexScan, hinted, index_of
from computeapi.db.listing import Clause
from computeapi.db.server_filters import NUMBER, in_state, made_before
from computeapi.db.tables.server_lists import KEYS, SELDOM, TIES, name_of
from computeapi.db.tables.servers import servers
from computeapi.states import VMState, states_of

BY = {key: index_of(servers, name_of(key)) for key in (*KEYS, *SELDOM)}
LIVING, GONE, OF_PROJECT = (index_of(servers, f'ix_servers_{each}') for each in ('living', 'gone', 'of_project'))
USUAL = TIES[0]
MAX_VALUES, MAX_BRANCHES = 5000, 30
RESTORABLE = servers.c.vm_state == VMState.SOFT_DELETED
NOT_RESTORABLE, THERE = ~RESTORABLE, servers.c.deleted_at.is_(None)


class Reach(NamedTuple):
    """The project (None: all), and whether deleted servers (True), existing ones (False), or both (None) are wanted.

    soft_deleted: whether servers that can be restored count as existing.
    """

    project_id: str | None
    deleted: bool | None
    soft_deleted: bool | None

    def owned(self) -> tuple[Clause, ...]:
        return () if self.project_id is None else (servers.c.project_id == self.project_id,)

    def conditions(self) -> tuple[Clause, ...]:
        return *self.owned(), *self._existing(), *self.beyond_scans()

    def _existing(self) -> tuple[Clause, ...]:
        if self.deleted is None:
            return ()
        if self.deleted:
            gone = servers.c.deleted_at.is_not(None)
            return (gone if self.soft_deleted is False else gone | RESTORABLE,)
        return (THERE,)

    def beyond_scans(self) -> tuple[Clause, ...]:
        """The conditions that the scans do not include, unlike those on the project and on deletion."""
        return (NOT_RESTORABLE,) if self.deleted is False and not self.soft_deleted else ()


def in_order_of(reach: Reach, key: str, descending: bool) -> list[IndexScan] | None:
    """Consecutive scans over the servers of a reach by a key, then by age; None without an index."""
    if reach.deleted is not False or key not in BY:
        return None
    present = IndexScan(BY[key], (None,), 1 + len(TIES), descending, where=reach.owned())
    if not servers.c[key].nullable:
        return [present]
    missing = IndexScan(BY[key], (None, None), len(TIES), descending, where=reach.owned())
    if key in SELDOM:
        # The key's index omits rows without a value.
        missing = _living(reach, descending)
        missing = missing._replace(where=(*missing.where, servers.c[key].is_(None)))
    pieces = [missing, present._replace(present=True)]
    return pieces[::-1] if descending else pieces


def by_age(
    connection: sa.Connection, reach: Reach, descending: bool, filters: Mapping[str, Any]
) -> tuple[list[IndexScan], Collection[str]]:
    """The servers of a reach in the default order: parallel scans, and the filters that they already apply."""
    if reach.deleted is None:
        return [_not_after(filters, each) for each in (_living(reach, descending), _gone(reach, descending))], ()
    if reach.deleted:
        restorable = _having(reach, descending, Value('vm_state', VMState.SOFT_DELETED))
        return [_gone(reach, descending), *([restorable] if reach.soft_deleted is not False else [])], ()
    ways = {name: _having_one_of(reach, descending, each) for name, each in _values(connection, filters)}
    if not ways:
        return [_not_after(filters, _living(reach, descending))], ()
    name = next(iter(ways)) if len(ways) == 1 else min(ways, key=lambda name: nearness(connection, ways[name]))
    return ways[name], (name,)


def _values(connection: sa.Connection, filters: Mapping[str, Any]) -> Iterator[tuple[str, list['Value']]]:
    """By filter, the column values that it accepts, if there is an index of them and they are few."""
    for name in (name for name in VALUES if name in filters):
        values = VALUES[name](connection, name, filters[name])
        if values is not None and len(values) <= MAX_BRANCHES:
            yield name, values


def nearness(connection: sa.Connection, some: Sequence[IndexScan]) -> float:
    """How soon a scan passes many servers: the sooner, the more must be examined to find matching ones."""
    ends = [(scan, index_scans.place_at(connection, scan, None, index_scans.FEW)) for scan in some]
    moments = [end[0].timestamp() * (1 if scan.descending else -1) for scan, end in ends if end is not None]
    return max(moments, default=-math.inf)


def _not_after(filters: Mapping[str, Any], scan: IndexScan) -> IndexScan:
    """The scan, limited to servers that can have changed before `changes_before`."""
    before = filters.get('changes_before')
    return scan if before is None else scan._replace(where=(*scan.where, made_before(before)))


def _living(reach: Reach, descending: bool) -> IndexScan:
    if reach.project_id is None:
        return IndexScan(LIVING, (None,), len(TIES), descending)
    return IndexScan(BY['project_id'], (None, reach.project_id), len(TIES), descending)


def _gone(reach: Reach, descending: bool) -> IndexScan:
    return IndexScan(GONE, (), len(TIES), descending, where=(servers.c.deleted_at.is_not(None), *reach.owned()))


def _having_one_of(reach: Reach, descending: bool, values: Sequence['Value']) -> list[IndexScan]:
    return [_having(reach, descending, value) for value in values]


def _having(reach: Reach, descending: bool, value: 'Value') -> IndexScan:
    fixed = (None, value.value)
    return IndexScan(BY[value.key], fixed, len(TIES), descending, where=reach.owned(), uncovered=value.where)


# ------------------------------------------------------------------ values that filters accept


class Value(NamedTuple):
    """A column value that a filter accepts, with further conditions."""

    key: str
    value: Any
    where: tuple[Clause, ...] = ()


Values = list[Value] | None


def _equal(connection: sa.Connection, name: str, value: Any) -> Values:
    return [Value(name, value)]


def _number(connection: sa.Connection, name: str, text: str) -> Values:
    return [Value(name, int(text))] if NUMBER.fullmatch(text) else []


def _statuses(connection: sa.Connection, name: str, statuses: Collection[str]) -> Values:
    return [value for status in statuses for state in states_of(status) for value in _in_state(*state)]


def _in_state(vm_state: str, task_states: Collection[str] | None) -> Iterator[Value]:
    if task_states is None:
        yield Value('vm_state', vm_state, (in_state(vm_state, None),))
    for task_state in task_states or ():
        yield Value('task_state', task_state, (servers.c.vm_state == vm_state,))


def _locked(connection: sa.Connection, name: str, locked: bool) -> Values:
    """By all values of locked_by; a cloud with imported data may have others than the API uses."""
    found = held(connection, 'locked_by') if locked else None
    return None if found is None else [Value('locked_by', value) for value in found]


def _matching(connection: sa.Connection, name: str, pattern: str) -> Values:
    """The matching values of a column with many servers but few values."""
    if not patterns.is_bounded(pattern):
        return None
    found = held(connection, name)
    return None if found is None else [Value(name, value) for value in filter(patterns.matcher(pattern), found)]


def held(connection: sa.Connection, name: str) -> Sequence[Any] | None:
    """All values of a column; None if there are too many."""
    found = connection.scalars(_distinct(connection.dialect.name, name)).all()
    return None if len(found) > MAX_VALUES else found


@functools.cache
def _distinct(dialect: str, key: str) -> sa.Select[Any]:
    """The values of servers that are not deleted, each found from the previous one along the index."""
    column = servers.c[key]
    there = servers.c.deleted_at.is_(None) & column.is_not(None)
    if dialect in ('mysql', 'mariadb'):
        # MariaDB does this by itself, if the statement selects all columns of the index up to this one.
        distinct = hinted(sa.select(column, servers.c.deleted_at).where(there).distinct(), BY[key])
        return distinct.limit(MAX_VALUES + 1)
    # PostgreSQL finds no minimum along an index whose first column is another one, unless ordered by both.
    least = hinted(sa.select(column).where(there).order_by(servers.c.deleted_at, column).limit(1), BY[key])
    known = sa.select(least.scalar_subquery().label('value')).cte('known', recursive=True)
    following = least.where(column > known.c.value).scalar_subquery()
    known = known.union_all(sa.select(following).select_from(known).where(known.c.value.is_not(None)))
    return sa.select(known.c.value).where(known.c.value.is_not(None)).limit(MAX_VALUES + 1)


VALUES: dict[str, Callable[[sa.Connection, str, Any], Values]] = {
    **dict.fromkeys(('host', 'image_id', 'flavorid', 'user_id', 'task_state', 'locked_by'), _equal),
    'statuses': _statuses,
    'vm_state': _equal,
    'locked': _locked,
    **dict.fromkeys(('node', 'key_name', 'availability_zone'), _matching),
    **dict.fromkeys(('power_state', 'launch_index', 'progress'), _number),
    **dict.fromkeys(('config_drive', 'disk_config'), _equal),
}
"""The filters that have an index of the values that they accept, each with a function that returns those values."""
