"""Quota limits, and the usage that counts against them, as rows."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa

from computeapi.db import quota_usages
from computeapi.db.constant_queries import Query, fetch
from computeapi.db.records import lock_row, upsert
from computeapi.db.tables.compute import quota_classes, quota_locks, quotas

COUNTED = ('instances', 'cores', 'ram', 'server_groups')
# The user_id of a limit that applies to the whole project.
EVERYBODY = ''


class QuotaBounds(NamedTuple):
    """Limits by resource, and the usage; limits of the user override those of the project, and these those of the
    class."""

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
    """The union of these, each row with its part's index in QuotaBounds."""
    return sa.union_all(*(part.add_columns(sa.literal_column(str(place))) for place, part in enumerate(parts)))


LIMITS = _together(OF_CLASS, OF_EVERYBODY, OF_USER)
BOUNDS = _together(OF_CLASS, OF_EVERYBODY, OF_USER, quota_usages.OF_HOLDER)
BOUNDS_OF_USER = _together(OF_CLASS, OF_EVERYBODY, OF_USER, quota_usages.OF_USER)


def class_limits(connection: sa.Connection, class_name: str) -> dict[str, int]:
    return {resource: int(limit) for resource, limit in fetch(connection, OF_CLASS, {'class': class_name})}


def limits(connection: sa.Connection, class_name: str, project_id: str, user_id: str | None = None) -> QuotaBounds:
    """The limits of the class, and those set for the project and for the user in it; without the usage."""
    return _bounds(connection, LIMITS, class_name, project_id, user_id)


def bounds(
    connection: sa.Connection, class_name: str, project_id: str, user_id: str | None = None, *, of_user: bool = False
) -> QuotaBounds:
    """Like `limits`, with the usage of the whole project, or (*of_user*) of the user."""
    found = _bounds(connection, BOUNDS_OF_USER if of_user else BOUNDS, class_name, project_id, user_id)
    quota_usages.add_pending(connection, found.used, project_id, user_id if of_user else None)
    return found


def _bounds(
    connection: sa.Connection, statement: Query, class_name: str, project_id: str, user_id: str | None
) -> QuotaBounds:
    whose = {'class': class_name, 'project': project_id, 'holder': project_id, 'user': user_id or None}
    found = QuotaBounds({}, {}, {}, Counter())
    for resource, amount, place in fetch(connection, statement, whose):
        found[place][resource] = int(amount)
    return found


def given_to_users(connection: sa.Connection, project_id: str, exclude: str | None = None) -> dict[str, int]:
    """By resource, the sum of the limits of individual users in the project (except one)."""
    statement = (
        sa.select(quotas.c.resource, sa.func.sum(quotas.c.hard_limit))
        .where(quotas.c.project_id == project_id, quotas.c.user_id.not_in([EVERYBODY, exclude or EVERYBODY]))
        .where(quotas.c.hard_limit > 0)
        .group_by(quotas.c.resource)
    )
    return {resource: int(total) for resource, total in connection.execute(statement)}


def set_limits(connection: sa.Connection, project_id: str, user_id: str | None, limits: Mapping[str, int]) -> None:
    """Set limits of the project, or of one user in it; those not named are kept."""
    holder = {'project_id': project_id, 'user_id': user_id or EVERYBODY}
    upsert(connection, quotas, [holder | {'resource': name, 'hard_limit': limit} for name, limit in limits.items()])


def set_class_limits(connection: sa.Connection, class_name: str, limits: Mapping[str, int]) -> None:
    rows = [{'class_name': class_name, 'resource': name, 'hard_limit': limit} for name, limit in limits.items()]
    upsert(connection, quota_classes, rows)


def delete_limits(connection: sa.Connection, project_id: str, user_id: str | None = None) -> None:
    """Delete the limits of the project and of all users in it, or of one user."""
    conditions = [quotas.c.project_id == project_id]
    if user_id:
        conditions.append(quotas.c.user_id == user_id)
    connection.execute(sa.delete(quotas).where(*conditions))


def lock(connection: sa.Connection, holder: str) -> None:
    """Serialize with other transactions that count the usage of this project (or user)."""
    lock_row(connection, quota_locks, {'project_id': holder})


def usage(connection: sa.Connection, project_id: str, user_id: str | None = None) -> dict[str, int]:
    """The number of servers, cores, MiB of memory and server groups of the project (or of one user in it)."""
    return of_servers(quota_usages.used(connection, project_id, user_id))


def of_servers(used: Counter[str]) -> dict[str, int]:
    """The usage of the resources that are counted by project."""
    return {resource: used[resource] for resource in COUNTED}


def key_pairs(connection: sa.Connection, user_id: str) -> int:
    """How many key pairs the user has."""
    return quota_usages.used(connection, quota_usages.ANYWHERE, user_id)['key_pairs']


def group_members(connection: sa.Connection, group_id: str, user_id: str) -> int:
    """How many servers the user has in the server group."""
    return quota_usages.used(connection, group_id, user_id)['server_group_members']
