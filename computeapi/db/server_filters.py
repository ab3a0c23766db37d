"""Search filters for servers, as conditions on their rows."""

import re
from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from computeapi.clock import parsed
from computeapi.db import addresses, listing, pairs, patterns
from computeapi.db.listing import Clause
from computeapi.db.tables.servers import server_tags, servers
from computeapi.errors import Invalid
from computeapi.states import STATUS_BY_TASK, states_of

NUMBER = re.compile(r'\d{1,9}')
DATE = 'YYYY-MM-DD'


def condition(dialect: str, name: str, value: Any) -> Clause:
    """The condition of a filter: one of ADDRESSES, EQUAL, NUMBERS, MOMENTS and OTHERS, or, for the name of a text
    column, a regular expression. Invalid, with the filter's name, for an unusable value.
    """
    if name in OTHERS:
        return OTHERS[name](value)
    if name in EQUAL:
        return listing.compared(servers.c[name], ('eq', value))
    if name in NUMBERS:
        return servers.c[name] == int(value) if NUMBER.fullmatch(value) else sa.false()
    if name in MOMENTS:
        return _at(name, value)
    patterns.check(name, value)
    if name in ADDRESSES:
        return addresses.match(dialect, ADDRESSES[name], value)
    if name == 'name':
        return patterns.matches(servers.c.folded_name, value, dialect, folded=True)
    return patterns.matches(servers.c[name], value, dialect)


def _at(name: str, text: str) -> Clause:
    """Within the second, or the day, that the text denotes."""
    try:
        start = parsed(text)
        end = start + (timedelta(days=1) if len(text) == len(DATE) else timedelta(seconds=1))
    except (ValueError, OverflowError):
        raise Invalid(f'Invalid filter field: {name}. It is not a date in ISO 8601.') from None
    return (servers.c[name] >= start) & (servers.c[name] < end)


def _has_status(statuses: Collection[str]) -> Clause:
    return sa.or_(sa.false(), *(in_state(*state) for status in statuses for state in states_of(status)))


def in_state(vm_state: str, task_states: Collection[str] | None) -> Clause:
    in_vm_state, task_state = servers.c.vm_state == vm_state, servers.c.task_state
    if task_states is not None:
        return in_vm_state & task_state.in_(task_states)
    special = list(STATUS_BY_TASK.get(vm_state, ()))
    return in_vm_state & sa.or_(task_state.is_(None), task_state.not_in(special)) if special else in_vm_state


def _is_locked(locked: bool) -> Clause:
    return servers.c.locked_by.is_not(None) if locked else servers.c.locked_by.is_(None)


CLOCKS_DIFFER = timedelta(days=1)
CHANGED = sa.func.coalesce(servers.c.updated_at, servers.c.created_at)
"""When a server changed. Clients see only whole seconds, so they compare with these."""


def _changed_since(moment: datetime) -> Clause:
    return end_of_second(moment) < CHANGED if moment.microsecond else moment <= CHANGED


def _changed_before(moment: datetime) -> Clause:
    return end_of_second(moment) >= CHANGED


def made_before(moment: datetime) -> Clause:
    """A condition by index that is true of all servers changed before; clocks do not differ that much."""
    return servers.c.created_at <= end_of_second(min(moment, datetime.max - CLOCKS_DIFFER)) + CLOCKS_DIFFER


def end_of_second(moment: datetime) -> datetime:
    return moment.replace(microsecond=999_999)


def _tagged(tags: Collection[str]) -> sa.ScalarSelect[int]:
    return pairs.count_tags(server_tags, servers.c.uuid, tags)


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
