"""Limits, and what counts against them, as rows."""

from collections.abc import Mapping

import sqlalchemy as sa

from computeapi.db import quota_usages
from computeapi.db.records import lock_row, upsert
from computeapi.db.tables.compute import quota_classes, quota_locks, quotas

COUNTED = ('instances', 'cores', 'ram', 'server_groups')
# What the user_id of a limit is when it is the whole project's.
EVERYBODY = ''


OF_CLASS = sa.select(quota_classes).where(quota_classes.c.class_name == sa.bindparam('class'))
OF_PROJECT = sa.select(quotas.c.user_id, quotas.c.resource, quotas.c.hard_limit).where(
    quotas.c.project_id == sa.bindparam('project'),
    sa.or_(quotas.c.user_id == EVERYBODY, quotas.c.user_id == sa.bindparam('user')),
)


def class_limits(connection: sa.Connection, class_name: str) -> dict[str, int]:
    return {row.resource: row.hard_limit for row in connection.execute(OF_CLASS, {'class': class_name})}


def own_limits(
    connection: sa.Connection, project_id: str, user_id: str | None = None
) -> tuple[dict[str, int], dict[str, int]]:
    """The limits set for the project, and those set for the user in it."""
    project: dict[str, int] = {}
    user: dict[str, int] = {}
    whose = {'project': project_id, 'user': user_id or EVERYBODY}
    for holder, resource, limit in connection.execute(OF_PROJECT, whose):
        (project if holder == EVERYBODY else user)[resource] = limit
    return project, user


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
    used = quota_usages.used(connection, project_id, user_id)
    return {resource: used[resource] for resource in COUNTED}


def key_pairs(connection: sa.Connection, user_id: str) -> int:
    """How many key pairs the user has."""
    return quota_usages.used(connection, quota_usages.ANYWHERE, user_id)['key_pairs']


def group_members(connection: sa.Connection, group_id: str, user_id: str) -> int:
    """How many servers the user has in the server group."""
    return quota_usages.used(connection, group_id, user_id)['server_group_members']
