"""Projects in the network service: ownership, quotas and usage."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from computeapi import errors
from computeapi.db.network_collection import Work
from computeapi.db.records import lock_row, upsert
from computeapi.db.tables import network as tables
from computeapi.db.tables.network import quota_locks, quotas

UNLIMITED = -1
# The maximum length of a project ID.
MAX_PROJECT_LENGTH = 255

# By Neutron's resource name: the table that is counted, and the default limit.
RESOURCES: dict[str, tuple[sa.Table, int]] = {
    'floatingip': (tables.floating_ips, 50),
    'network': (tables.networks, 100),
    'port': (tables.ports, 500),
    'rbac_policy': (tables.rbac_policies, 10),
    'router': (tables.routers, 10),
    'security_group': (tables.security_groups, 10),
    'security_group_rule': (tables.security_group_rules, 100),
    'subnet': (tables.subnets, 100),
    'subnetpool': (tables.subnet_pools, UNLIMITED),
}


LIMITS = sa.select(quotas.c.resource, quotas.c.limit).where(quotas.c.project_id == sa.bindparam('project'))


def defaults() -> dict[str, int]:
    return {resource: default for resource, (_, default) in RESOURCES.items()}


def limits(work: Work, project_id: str) -> dict[str, int]:
    rows = work.connection.execute(LIMITS, {'project': project_id})
    return defaults() | {row.resource: row.limit for row in rows}


def all_limits(work: Work) -> dict[str, dict[str, int]]:
    """By project, for projects with limits of their own."""
    rows = work.connection.execute(sa.select(quotas).order_by(quotas.c.project_id))
    projects_limits: dict[str, dict[str, int]] = {}
    for row in rows:
        projects_limits.setdefault(row.project_id, defaults())[row.resource] = row.limit
    return projects_limits


def usage(work: Work, project_id: str, names: Sequence[str] = tuple(RESOURCES)) -> dict[str, int]:
    """How many of each the project has, in one query."""
    row = work.connection.execute(_counting(tuple(names)), {'project': project_id}).one()
    return dict(zip(names, row, strict=True))


@functools.cache
def _counting(names: tuple[str, ...]) -> sa.Select[Any]:
    counts: list[sa.ColumnElement[Any]] = [_count(RESOURCES[name][0]) for name in names]
    return sa.select(*counts)


def _count(table: sa.Table) -> sa.ScalarSelect[int]:
    mine = table.c.project_id == sa.bindparam('project')
    return sa.select(sa.func.count()).select_from(table).where(mine).scalar_subquery()


def set_limits(work: Work, project_id: str, changes: dict[str, int]) -> None:
    """Set limits of the project; those not named are kept."""
    rows = [{'project_id': project_id, 'resource': name, 'limit': limit} for name, limit in changes.items()]
    upsert(work.connection, quotas, rows)


def check_limits(work: Work, project_id: str, wanted: Mapping[str, int]) -> None:
    """Invalid for a limit below the project's current use."""
    lock_project(work, project_id)
    used = usage(work, project_id)
    for name, limit in wanted.items():
        if UNLIMITED != limit < used[name]:
            raise errors.Invalid(f'Quota limit {limit} of {name} must be greater than or equal to used {used[name]}')


def reset_limits(work: Work, project_id: str) -> None:
    work.connection.execute(quotas.delete().where(quotas.c.project_id == project_id))


def lock_project(work: Work, project_id: str) -> None:
    """Serialize creations for a project, so that two of them cannot use the last place of a quota."""
    lock_row(work.connection, quota_locks, {'project_id': project_id})


def lock_cloud(work: Work) -> None:
    """Serialize the creation of things that are unique in the cloud."""
    lock_project(work, '')


def owner(work: Work, facts: Mapping[str, Any]) -> str:
    """The project in *facts*, or the caller's; only an administrator may name another one."""
    project_id: str | None = facts.get('project_id', work.context.project_id)
    if not project_id:
        raise errors.Invalid('Invalid input for project_id. Reason: the token has no project, so it must be given.')
    if project_id != work.context.project_id and not work.context.is_admin:
        raise errors.Invalid(
            "Specifying 'project_id' or 'tenant_id' other than the authenticated project in request requires admin "
            'privileges'
        )
    return project_id


def reserve(work: Work, project_id: str, resource: str, count: int = 1) -> None:
    """OverQuota if the project may not have *count* more; other calls for it wait until the transaction ends."""
    lock_project(work, project_id)
    there = left(work, project_id, resource)
    if there is not None and there < count:
        raise errors.OverQuota(f"Quota exceeded for resources: ['{resource}'].")


def left(work: Work, project_id: str, resource: str) -> int | None:
    """How many more of a resource the project may have; None if unlimited, in which case nothing is counted."""
    limit = limits(work, project_id)[resource]
    if limit == UNLIMITED:
        return None
    return max(0, limit - usage(work, project_id, (resource,))[resource])
