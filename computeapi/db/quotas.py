"""Limits, and what counts against them, as rows."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa

from computeapi.db import quota_usages
from computeapi.db.records import lock_row, upsert
from computeapi.db.tables.compute import quota_classes, quota_locks, quotas

COUNTED = ('instances', 'cores', 'ram', 'server_groups')
# What the user_id of a limit is when it is the whole project's.
EVERYBODY = ''


class QuotaBounds(NamedTuple):
    """Limits by resource, of which those of the user come before those of the project, and these before the class's;
    and what is used."""

    of_class: dict[str, int]
    project: dict[str, int]
    user: dict[str, int]
    used: Counter[str]


OF_CLASS = sa.select(quota_classes.c.resource, quota_classes.c.hard_limit).where(
    quota_classes.c.class_name == sa.bindparam('class')
)
OF_PROJECT = sa.select(quotas.c.resource, quotas.c.hard_limit).where(quotas.c.project_id == sa.bindparam('project'))
OF_EVERYBODY = OF_PROJECT.where(quotas.c.user_id == EVERYBODY)
OF_USER = OF_PROJECT.where(quotas.c.user_id == sa.bindparam('user'))


def _together(*parts: sa.Select[Any]) -> sa.CompoundSelect[Any]:
    """What all of these find, each row with its part's place in QuotaBounds."""
    return sa.union_all(*(part.add_columns(sa.literal_column(str(place))) for place, part in enumerate(parts)))


LIMITS = _together(OF_CLASS, OF_EVERYBODY, OF_USER)
BOUNDS = _together(OF_CLASS, OF_EVERYBODY, OF_USER, quota_usages.OF_HOLDER)
BOUNDS_OF_USER = _together(OF_CLASS, OF_EVERYBODY, OF_USER, quota_usages.OF_USER)


def class_limits(connection: sa.Connection, class_name: str) -> dict[str, int]:
    return {row.resource: row.hard_limit for row in connection.execute(OF_CLASS, {'class': class_name})}


def limits(connection: sa.Connection, class_name: str, project_id: str, user_id: str | None = None) -> QuotaBounds:
    """The limits of the class, and those set for the project and for the user in it; nothing of what is used."""
    return _bounds(connection, LIMITS, class_name, project_id, user_id)


def bounds(
    connection: sa.Connection, class_name: str, project_id: str, user_id: str | None = None, *, of_user: bool = False
) -> QuotaBounds:
    """As `limits`, with what all in the project use, or the user does, as `usage` tells it."""
    found = _bounds(connection, BOUNDS_OF_USER if of_user else BOUNDS, class_name, project_id, user_id)
    quota_usages.add_pending(connection, found.used, project_id, user_id if of_user else None)
    return found


def _bounds(
    connection: sa.Connection, statement: sa.Executable, class_name: str, project_id: str, user_id: str | None
) -> QuotaBounds:
    whose = {'class': class_name, 'project': project_id, 'holder': project_id, 'user': user_id or None}
    found = QuotaBounds({}, {}, {}, Counter())
    for resource, amount, place in connection.execute(statement, whose):
        found[place][resource] = int(amount)
    return found


def given_to_users(connection: sa.Connection, project_id: str, besides: str | None = None) -> dict[str, int]:
    """By resource, what the limits of single users in the project (other than one) add up to."""
    statement = (
        sa.select(quotas.c.resource, sa.func.sum(quotas.c.hard_limit))
        .where(quotas.c.project_id == project_id, quotas.c.user_id.not_in([EVERYBODY, besides or EVERYBODY]))
        .where(quotas.c.hard_limit > 0)
        .group_by(quotas.c.resource)
    )
    return {resource: int(total) for resource, total in connection.execute(statement)}


def set_limits(connection: sa.Connection, project_id: str, user_id: str | None, limits: Mapping[str, int]) -> None:
    """Limits of the project, or of one user in it; those not named stay."""
    holder = {'project_id': project_id, 'user_id': user_id or EVERYBODY}
    upsert(connection, quotas, [holder | {'resource': name, 'hard_limit': limit} for name, limit in limits.items()])


def set_class_limits(connection: sa.Connection, class_name: str, limits: Mapping[str, int]) -> None:
    rows = [{'class_name': class_name, 'resource': name, 'hard_limit': limit} for name, limit in limits.items()]
    upsert(connection, quota_classes, rows)


def delete_limits(connection: sa.Connection, project_id: str, user_id: str | None = None) -> None:
    """Forget the limits of the project and of all users in it, or of one user."""
    conditions = [quotas.c.project_id == project_id]
    if user_id:
        conditions.append(quotas.c.user_id == user_id)
    connection.execute(sa.delete(quotas).where(*conditions))


def lock(connection: sa.Connection, holder: str) -> None:
    """Wait for other transactions that count what this project (or user) has, and make later ones wait for this."""
    lock_row(connection, quota_locks, {'project_id': holder})


def usage(connection: sa.Connection, project_id: str, user_id: str | None = None) -> dict[str, int]:
    """How many servers, cores, MiB of memory and server groups the project (or one user in it) has."""
    return of_servers(quota_usages.used(connection, project_id, user_id))


def of_servers(used: Counter[str]) -> dict[str, int]:
    """What is used of the resources that a project has."""
    return {resource: used[resource] for resource in COUNTED}


def key_pairs(connection: sa.Connection, user_id: str) -> int:
    """How many key pairs the user has."""
    return quota_usages.used(connection, quota_usages.ANYWHERE, user_id)['key_pairs']


def group_members(connection: sa.Connection, group_id: str, user_id: str) -> int:
    """How many servers the user has in the server group."""
    return quota_usages.used(connection, group_id, user_id)['server_group_members']
