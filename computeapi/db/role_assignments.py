"""Queries of roles: implications, grants, and effective roles."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, TypeVar

import sqlalchemy as sa

from computeapi.db.identity import DOMAINS, PROJECTS
from computeapi.db.records import Rows, required
from computeapi.db.tables.identity import (
    Domain,
    Grant,
    Implication,
    Project,
    Role,
    ancestors,
    domains,
    grants,
    groups,
    implications,
    memberships,
    projects,
    roles,
    users,
)

__all__ = ['Implication', 'Role']

NO_DOMAIN = ''
R = TypeVar('R')


@dataclass(frozen=True)
class Assignment:
    """A role granted to a user or a group, or (effective) held by a user.

    origin_id: the target of the grant, from which a project inherits it.  member_of: the group through which the user
    has it.
    granted_role_id: the role of the grant, if that implies this one.  prior_role_id: the role that implies it directly.
    """

    user_id: str | None
    user_name: str | None
    user_domain_id: str | None
    group_id: str | None
    group_name: str | None
    group_domain_id: str | None
    target_kind: str
    target_id: str
    project_name: str | None
    project_domain_id: str | None
    role_id: str
    role_name: str
    role_domain_id: str
    inherited: bool
    origin_kind: str
    origin_id: str
    member_of: str | None
    granted_role_id: str
    prior_role_id: str | None = None


ROLES = Rows(Role, roles)
IMPLICATIONS = Rows(Implication, implications)
GRANTS = Rows(Grant, grants)

# An inherited grant gives the role on each of the projects below its target.
TARGET_KIND = sa.case((ancestors.c.project_id.is_not(None), 'project'), else_=grants.c.target_kind)
TARGET_ID = sa.func.coalesce(ancestors.c.project_id, grants.c.target_id)

BESIDES: dict[str, sa.ColumnElement[Any]] = {
    'user_id': users.c.id,
    'user_name': users.c.name,
    'user_domain_id': users.c.domain_id,
    'role_name': roles.c.name,
    'role_domain_id': roles.c.domain_id,
    'project_name': projects.c.name,
    'project_domain_id': projects.c.domain_id,
    'origin_kind': grants.c.target_kind,
    'origin_id': grants.c.target_id,
    'granted_role_id': grants.c.role_id,
}
GIVEN = Rows(
    Assignment,
    grants,
    **BESIDES,
    group_id=groups.c.id,
    group_name=groups.c.name,
    group_domain_id=groups.c.domain_id,
    member_of=sa.null(),
)
EFFECTIVE = Rows(
    Assignment,
    grants,
    **BESIDES,
    **dict.fromkeys(('group_id', 'group_name', 'group_domain_id'), sa.null()),
    target_kind=TARGET_KIND,
    target_id=TARGET_ID,
    member_of=memberships.c.group_id,
)


def given_roles(connection: sa.Connection, **grant: Any) -> list[Role]:
    """The roles of the grants with these values, by name."""
    query = ROLES.select.join(grants, grants.c.role_id == roles.c.id)
    matching = [grants.c[name] == value for name, value in grant.items()]
    return ROLES.all(connection, query.where(*matching).order_by(roles.c.name, roles.c.id))


def effective_roles(
    connection: sa.Connection, user_id: str, kind: str, target_id: str, among: Collection[str] | None = None
) -> list[Role]:
    """The roles of a user on a target: granted, inherited, through groups, implied. Domain-specific roles count only
    through the roles that they imply.

    among: the roles that an application credential is limited to, with the roles that they imply.
    """
    held = _with_implied(sa.select(grants.c.role_id).where(_of_user(user_id), _reaching(kind, target_id)), 'held')
    if among is not None:
        held = _with_implied(sa.select(held.c.role_id).where(held.c.role_id.in_(among)), 'chosen')
    query = ROLES.select.where(roles.c.id.in_(sa.select(held.c.role_id)), roles.c.domain_id == NO_DOMAIN)
    return ROLES.all(connection, query.order_by(roles.c.name))


def granted_projects(connection: sa.Connection, user_id: str) -> list[Project]:
    """The projects on which a user has a role."""
    return _granted(connection, PROJECTS, user_id, _reaching('project', projects.c.id))


def granted_domains(connection: sa.Connection, user_id: str) -> list[Domain]:
    return _granted(connection, DOMAINS, user_id, _reaching('domain', domains.c.id))


def assignments(connection: sa.Connection, *, below: str | None = None, **values: Any) -> list[Assignment]:
    """Every grant with these values in the record; below: on that project or its descendants."""
    query = (
        GIVEN.select.select_from(grants)
        .outerjoin(users, users.c.id == grants.c.actor_id)
        .outerjoin(groups, groups.c.id == grants.c.actor_id)
        .join(roles, roles.c.id == grants.c.role_id)
        .outerjoin(projects, sa.and_(grants.c.target_kind == 'project', projects.c.id == grants.c.target_id))
    )
    return _matching(connection, GIVEN, query, below, values)


def effective_assignments(connection: sa.Connection, *, below: str | None = None, **values: Any) -> list[Assignment]:
    """Every role that a user has by a grant, on each project that the grant reaches, without implied roles."""
    query = (
        EFFECTIVE.select.select_from(grants)
        .outerjoin(memberships, memberships.c.group_id == grants.c.actor_id)
        .join(users, users.c.id == sa.func.coalesce(memberships.c.user_id, grants.c.actor_id))
        .outerjoin(ancestors, sa.and_(grants.c.inherited, ancestors.c.ancestor_id == grants.c.target_id))
        .join(roles, roles.c.id == grants.c.role_id)
        .outerjoin(projects, sa.and_(TARGET_KIND == 'project', projects.c.id == TARGET_ID))
        .where(sa.or_(~grants.c.inherited, ancestors.c.project_id.is_not(None)))
    )
    return _matching(connection, EFFECTIVE, query, below, values)


def delete_grants_of_domain(connection: sa.Connection, domain_id: str) -> None:
    """Delete the grants on a domain and its projects, and those of its users and groups."""
    connection.execute(
        sa.delete(grants).where(
            sa.or_(
                grants.c.target_id == domain_id,
                grants.c.target_id.in_(sa.select(projects.c.id).where(projects.c.domain_id == domain_id)),
                grants.c.actor_id.in_(sa.select(users.c.id).where(users.c.domain_id == domain_id)),
                grants.c.actor_id.in_(sa.select(groups.c.id).where(groups.c.domain_id == domain_id)),
            )
        )
    )


def _of_user(user_id: str) -> sa.ColumnElement[bool]:
    """Whether a grant belongs to the user, or to a group that the user is in."""
    own_groups = sa.select(memberships.c.group_id).where(memberships.c.user_id == user_id)
    return sa.or_(grants.c.actor_id == user_id, grants.c.actor_id.in_(own_groups))


def _reaching(kind: str, target_id: str | sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
    """Whether a grant is on the target, or is inherited by it."""
    own = sa.and_(grants.c.target_kind == kind, grants.c.target_id == target_id, ~grants.c.inherited)
    if kind != 'project':
        return own
    above = sa.select(ancestors.c.ancestor_id).where(ancestors.c.project_id == target_id)
    return sa.or_(own, sa.and_(grants.c.inherited, grants.c.target_id.in_(above)))


def _with_implied(given: sa.Select[tuple[str]], name: str) -> sa.CTE:
    """The IDs of roles and of all roles that they imply."""
    held = given.cte(name, recursive=True)
    implied = sa.select(implications.c.implied_role_id).join(held, implications.c.prior_role_id == held.c.role_id)
    return held.union(implied)


def _granted(connection: sa.Connection, records: Rows[R], user_id: str, reaching: sa.ColumnElement[bool]) -> list[R]:
    table = records.table
    granted = sa.exists().where(_of_user(user_id), reaching).correlate(table)
    return records.all(connection, records.select.where(granted).order_by(table.c.name, table.c.id))


def _matching(
    connection: sa.Connection, rows: Rows[Assignment], query: sa.Select[Any], below: str | None, values: dict[str, Any]
) -> list[Assignment]:
    columns = dict(zip(required(Assignment), rows.columns, strict=True))
    matching = [columns[name] == value for name, value in values.items()]
    if below is not None:
        under = sa.select(ancestors.c.project_id).where(ancestors.c.ancestor_id == below)
        matching.append(sa.or_(columns['target_id'] == below, columns['target_id'].in_(under)))
    order = [columns[name] for name in ('user_id', 'target_kind', 'target_id', 'role_name')]
    return rows.all(connection, query.where(*matching).order_by(grants.c.actor_id, *order))
