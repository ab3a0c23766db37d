"""Servers that are wanted for something that few have: their ids, by the index of that."""

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from computeapi.db import patterns
from computeapi.db.listing import Clause
from computeapi.db.tables.servers import server_tags, servers
from computeapi.states import states_of

FEW = 1000
"""So many are looked up and sorted as quickly as a page is made."""
LAST_LETTER = chr(0x10FFFF)

Ids = sa.Select[Any]
IDS: Ids = sa.select(servers.c.id)


def ids(
    connection: sa.Connection, project_id: str | None, living: bool, filters: Mapping[str, Any]
) -> list[int] | None:
    """Of the servers among which are all that fit, if one of the filters is known to let no more than FEW pass."""
    for statements in _lookups(project_id, living, filters):
        found: set[int] = set()
        for statement in statements:
            found.update(connection.scalars(statement.limit(FEW + 1)))
        if len(found) <= FEW:
            return sorted(found)
    return None


def _lookups(project_id: str | None, living: bool, filters: Mapping[str, Any]) -> Iterator[list[Ids]]:
    """By each filter for which there is an index, what looks up those who fit."""
    scope = [] if project_id is None else [servers.c.project_id == project_id]
    for name, value in filters.items():
        if name in ANYWHERE:
            yield ANYWHERE[name](value)
        elif name == 'changes_since':
            yield _changed_since(scope, value)
        elif name in HERE and living:
            clause = HERE[name](value)
            if clause is not None:
                yield [IDS.where(*scope, servers.c.deleted_at.is_(None), clause)]


def _tagged(tags: Collection[str]) -> Ids:
    of_server = server_tags.c.server_id == servers.c.uuid
    return IDS.select_from(server_tags.join(servers, of_server)).where(server_tags.c.tag.in_(tags))


def _changed_since(scope: list[Clause], moment: datetime) -> list[Ids]:
    """Or a little before."""
    begin = moment.replace(microsecond=0)
    return [IDS.where(*scope, column >= begin) for column in (servers.c.updated_at, servers.c.created_at)]


def _named(pattern: str) -> Clause | None:
    prefix = patterns.prefix(pattern)
    if not prefix:
        return None
    return servers.c.folded_name.between(prefix, prefix + LAST_LETTER)


def _in_states(statuses: Collection[str]) -> Clause | None:
    states = [state for status in statuses for state in states_of(status)]
    if all(tasks for _, tasks in states):
        return servers.c.task_state.in_({task for _, tasks in states for task in tasks or ()})
    return servers.c.vm_state.in_({vm_state for vm_state, _ in states})


ANYWHERE: dict[str, Callable[[Any], list[Ids]]] = {
    'uuid': lambda server_id: [IDS.where(servers.c.uuid == server_id)],
    'tags': lambda tags: [_tagged(tags[:1])],
    'tags_any': lambda tags: [_tagged(tags)],
}
"""Filters whose indexes have nothing but what they filter by."""
HERE: dict[str, Callable[[Any], Clause | None]] = {
    'name': _named,
    'statuses': _in_states,
    'locked': lambda locked: servers.c.locked_by.is_not(None) if locked else None,
    **{name: servers.c[name].__eq__ for name in ('host', 'user_id', 'image_id', 'flavorid', 'vm_state', 'task_state')},
}
"""Filters with indexes of the servers that are not deleted, of a project or of all."""
