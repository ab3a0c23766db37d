"""Lists of servers: what they are searched by, each filter as a condition on their rows."""

import re
from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import sqlalchemy as sa

from computeapi.clock import parsed
from computeapi.db import addresses, listing, patterns, rare
from computeapi.db.listing import Clause, Order, Page
from computeapi.db.servers import SERVERS, Server, load
from computeapi.db.tables.server_lists import CHOSEN
from computeapi.db.tables.servers import server_tags, servers
from computeapi.errors import Invalid
from computeapi.states import STATUS_BY_TASK, VMState, states_of

NUMBER = re.compile(r'\d{1,9}')
DATE = 'YYYY-MM-DD'


class Search(NamedTuple):
    """Which servers are wanted.

    project_id: None for those of all projects.  deleted: those that are deleted (True), that are not (False), or both
    (None).  soft_deleted: whether those that can be restored count as there.  filters: any of ADDRESSES, EQUAL,
    NUMBERS, MOMENTS and OTHERS; by its name, a column of text: a regular expression.
    """

    project_id: str | None = None
    deleted: bool | None = False
    soft_deleted: bool | None = None
    filters: Mapping[str, Any] = {}


class Found(NamedTuple):
    """The servers of a page; *last* is the id of the one that was looked at last, if there are more to look at."""

    servers: list[Server]
    last: str | None = None


def page(connection: sa.Connection, page: Page, search: Search, most: int, needs: Collection[str] = ()) -> Found:
    """One page of the servers that are wanted; needs: see db.servers.

    Where the order of the page and what is wanted have an index in common, it is walked. Else, if something that is
    wanted is rare, that is looked up, and sorted; else at most so many servers are looked at, in their order.

    Invalid for an unknown marker, and, naming the filter, for a value that nothing can be searched by.
    """
    order = _order(page, search)
    project_id = search.filters.get('project_id') if search.project_id is None else search.project_id
    scope = [] if search.project_id is None else [servers.c.project_id == search.project_id]
    existing = _existing(search.deleted, search.soft_deleted)
    dialect = connection.dialect.name
    along, chosen = _walkable(search.filters, order[0][0].name == 'created_at')
    walked, sought = (
        [_condition(dialect, name, value) for name, value in search.filters.items() if (name in along) is side]
        for side in (True, False)
    )
    if search.deleted:
        existing, sought = [], [*existing, *sought]
    marked, where = [*scope, servers.c.uuid == page.marker], [*scope, *existing, *walked]
    if 'changes_before' in search.filters:
        where.append(_made_before(search.filters['changes_before']))
    fixed = _fixed(chosen, project_id is not None, search.deleted is False)
    last = None
    if not sought:
        rows = listing.walked(connection, SERVERS.select, order, page, marked=marked, where=where, fixed=fixed)
    elif (ids := rare.ids(connection, project_id, search.deleted is False, search.filters)) is not None:
        where = listing.among(servers.c.id, ids, [*where, *sought])
        rows = listing.walked(connection, SERVERS.select, order, page, marked=marked, where=where)
    else:
        rows, last = listing.sifted(
            connection, SERVERS.select, order, page, sought, most, marked=marked, where=where, fixed=fixed
        )
    found = SERVERS.of(rows)
    load(connection, found, needs)
    return Found(found, None if last is None else connection.scalar(UUID, {'id': last.id}))


UUID = sa.select(servers.c.uuid).where(servers.c.id == sa.bindparam('id'))
ALONG = ('statuses', *CHOSEN)
"""What there are indexes for, in the usual order of servers."""


def _order(page: Page, search: Search) -> Order:
    """That of the page, but for the project, where it is the same in all."""
    order = listing.ordered(servers, page, 'id')
    return order if search.project_id is None else [each for each in order if each[0] is not servers.c.project_id]


def _walkable(filters: Mapping[str, Any], usual: bool) -> tuple[set[str], str | None]:
    """The filters of which it can be told along an index, or that let most servers pass; and the column that those who
    are found by them have in common."""
    most = {'project_id', 'host_not_in', *(['locked'] if filters.get('locked') is False else [])}
    statuses = [state for status in filters.get('statuses', ()) for state in states_of(status)]
    one = len(statuses) == 1 and statuses[0][1] is None
    chosen = next((name for name in ALONG if usual and name in filters and (name != 'statuses' or one)), None)
    return most if chosen is None else {*most, chosen}, 'vm_state' if chosen == 'statuses' else chosen


def _fixed(chosen: str | None, project: bool, living: bool) -> list[sa.Column[Any]]:
    """The columns that an index begins with for what is chosen, the project and whether servers are there."""
    scope = [servers.c.project_id] if project else []
    existence = [servers.c.deleted_at] if living else []
    return [*scope, *existence, *([] if chosen is None else [servers.c[chosen]])]


def _existing(deleted: bool | None, soft_deleted: bool | None) -> list[Clause]:
    gone = servers.c.deleted_at.is_not(None)
    restorable = servers.c.vm_state == VMState.SOFT_DELETED
    if deleted is None:
        return []
    if deleted:
        return [gone if soft_deleted is False else gone | restorable]
    return [~gone] if soft_deleted else [~gone, ~restorable]


def _condition(dialect: str, name: str, value: Any) -> Clause:
    if name in OTHERS:
        return OTHERS[name](value)
    if name in EQUAL:
        return listing.compared(servers.c[name], ('eq', value))
    if name in NUMBERS:
        return servers.c[name] == int(value) if NUMBER.fullmatch(value) else sa.false()
    if name in MOMENTS:
        return _at(name, value)
    if not patterns.is_bounded(value):
        raise Invalid(f'Invalid filter field: {name}. It is no regular expression, or one that takes too long.')
    if name in ADDRESSES:
        return addresses.matches(dialect, ADDRESSES[name], value)
    return patterns.matches(servers.c[name], value, dialect)


def _at(name: str, text: str) -> Clause:
    """Within the second, or the day, that the text says."""
    try:
        start = parsed(text)
        end = start + (timedelta(days=1) if len(text) == len(DATE) else timedelta(seconds=1))
    except (ValueError, OverflowError):
        raise Invalid(f'Invalid filter field: {name}. It is no date in ISO 8601.') from None
    return (servers.c[name] >= start) & (servers.c[name] < end)


def _has_status(statuses: Collection[str]) -> Clause:
    return sa.or_(sa.false(), *(_in_state(*state) for status in statuses for state in states_of(status)))


def _in_state(vm_state: str, task_states: Collection[str] | None) -> Clause:
    in_vm_state, task_state = servers.c.vm_state == vm_state, servers.c.task_state
    if task_states is not None:
        return in_vm_state & task_state.in_(task_states)
    special = list(STATUS_BY_TASK.get(vm_state, ()))
    return in_vm_state & sa.or_(task_state.is_(None), task_state.not_in(special)) if special else in_vm_state


def _is_locked(locked: bool) -> Clause:
    return servers.c.locked_by.is_not(None) if locked else servers.c.locked_by.is_(None)


CLOCKS_DIFFER = timedelta(days=1)
CHANGED = sa.func.coalesce(servers.c.updated_at, servers.c.created_at)
"""When a server changed. Clients are shown the second alone, which is then what they compare with."""


def _changed_since(moment: datetime) -> Clause:
    return _end_of_second(moment) < CHANGED if moment.microsecond else moment <= CHANGED


def _changed_before(moment: datetime) -> Clause:
    return _end_of_second(moment) >= CHANGED


def _made_before(moment: datetime) -> Clause:
    """What holds for all that changed before, and has an index; clocks do not differ that much."""
    return servers.c.created_at <= _end_of_second(min(moment, datetime.max - CLOCKS_DIFFER)) + CLOCKS_DIFFER


def _end_of_second(moment: datetime) -> datetime:
    return moment.replace(microsecond=999_999)


def _tagged(tags: Collection[str]) -> sa.ScalarSelect[int]:
    """How many of these tags a server has."""
    same = (server_tags.c.server_id == servers.c.uuid) & server_tags.c.tag.in_(tags)
    return sa.select(sa.func.count()).select_from(server_tags).where(same).scalar_subquery()


ADDRESSES = {'ip': 4, 'ip6': 6}
EQUAL = frozenset(
    {
        'uuid',
        'project_id',
        'user_id',
        'host',
        'image_id',
        'flavorid',
        'vm_state',
        'task_state',
        'locked_by',
        'disk_config',
        'config_drive',
    }
)
NUMBERS = frozenset({'power_state', 'launch_index', 'progress'})
MOMENTS = frozenset({'created_at', 'launched_at', 'terminated_at'})
OTHERS: dict[str, Callable[[Any], Clause]] = {
    'host_in': lambda hosts: servers.c.host.in_(hosts),
    'host_not_in': lambda hosts: servers.c.host.is_(None) | servers.c.host.not_in(hosts) if hosts else sa.true(),
    'statuses': _has_status,
    'locked': _is_locked,
    'changes_since': _changed_since,
    'changes_before': _changed_before,
    'tags': lambda tags: _tagged(tags) == len(tags),
    'tags_any': lambda tags: _tagged(tags) > 0,
    'not_tags': lambda tags: _tagged(tags) < len(tags),
    'not_tags_any': lambda tags: _tagged(tags) == 0,
}
