"""Lists of servers: what they are searched by, each filter as a condition on their rows."""

import re
from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from computeapi.clock import parsed
from computeapi.db import addresses, listing, patterns
from computeapi.db.listing import Clause, Page
from computeapi.db.servers import SERVERS, Server, load
from computeapi.db.tables.servers import server_tags, servers
from computeapi.errors import Invalid
from computeapi.states import STATUS_BY_TASK, VMState, states_of

NUMBER = re.compile(r'\d{1,9}')
DATE = 'YYYY-MM-DD'


def page(
    connection: sa.Connection,
    page: Page,
    *,
    project_id: str | None = None,
    deleted: bool | None = False,
    soft_deleted: bool | None = None,
    filters: Mapping[str, Any] | None = None,
    needs: Collection[str] = (),
) -> list[Server]:
    """One page of the servers of a project, or of any; needs: see db.servers.

    deleted: those that are deleted (True), that are not (False), or both (None).  soft_deleted: whether those
    that can be restored count as there.  filters: any of ADDRESSES, EQUAL, NUMBERS, MOMENTS and OTHERS; by its name,
    a column of text: a regular expression.

    Invalid for an unknown marker, and, naming the filter, for a value that nothing can be searched by.
    """
    scope = [] if project_id is None else [servers.c.project_id == project_id]
    wanted = [_condition(connection.dialect.name, name, value) for name, value in (filters or {}).items()]
    statement = listing.paged(
        connection,
        SERVERS.select,
        listing.ordered(servers, page, 'id'),
        page,
        marked=[*scope, servers.c.uuid == page.marker],
        where=[*scope, *_existing(deleted, soft_deleted), *wanted],
    )
    found = SERVERS.all(connection, statement)
    load(connection, found, needs)
    return found


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


def _has_flavor(flavorid: str) -> Clause:
    held: sa.ColumnElement[str] = servers.c.flavor['flavorid'].as_string()
    return held == flavorid


CHANGED = sa.func.coalesce(servers.c.updated_at, servers.c.created_at)
"""When a server changed. Clients are shown the second alone, which is then what they compare with."""


def _changed_since(moment: datetime) -> Clause:
    return _end_of_second(moment) < CHANGED if moment.microsecond else moment <= CHANGED


def _changed_before(moment: datetime) -> Clause:
    return _end_of_second(moment) >= CHANGED


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
    'flavorid': _has_flavor,
    'changes_since': _changed_since,
    'changes_before': _changed_before,
    'tags': lambda tags: _tagged(tags) == len(tags),
    'tags_any': lambda tags: _tagged(tags) > 0,
    'not_tags': lambda tags: _tagged(tags) < len(tags),
    'not_tags_any': lambda tags: _tagged(tags) == 0,
}
