"""Queries of the identity service: accounts, what they were granted, and their tokens."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

import sqlalchemy as sa

from computeapi.db.records import Rows
from computeapi.db.tables.identity import (
    ApplicationCredential,
    Domain,
    Grant,
    Project,
    Role,
    User,
    application_credentials,
    domains,
    grants,
    projects,
    roles,
    tokens,
    users,
)

__all__ = ['ApplicationCredential', 'Domain', 'Grant', 'Project', 'Role', 'User']

# How many rows one statement deletes.
BATCH = 500

# A user, project, domain or credential: {'id': ...}, or {'name': ...} with the 'domain' or 'user' it is unique in.
Reference = Mapping[str, Any]


class Token(NamedTuple):
    """A token and the names of all it stands for; `roles` are dicts with id and name."""

    user_id: str
    project_id: str | None
    domain_id: str | None
    system: bool
    roles: list[dict[str, Any]]
    methods: list[str]
    audit_ids: list[str]
    application_credential_id: str | None
    issued_at: datetime
    expires_at: datetime
    user_name: str
    user_domain_id: str
    user_domain_name: str
    project_name: str | None
    project_domain_id: str | None
    scope_domain_name: str | None
    application_credential_name: str | None
    unrestricted: bool | None


@dataclass(frozen=True)
class Assignment:
    """A grant in full; `prior_role_id` is the role that implies this one."""

    user_id: str
    user_name: str
    user_domain_id: str
    target_kind: str
    target_id: str
    project_name: str | None
    project_domain_id: str | None
    role_id: str
    role_name: str
    prior_role_id: str | None = None


R = TypeVar('R')


DOMAINS = Rows(Domain, domains)
PROJECTS = Rows(Project, projects)
USERS = Rows(User, users)
ROLES = Rows(Role, roles)
GRANTS = Rows(Grant, grants)
CREDENTIALS = Rows(ApplicationCredential, application_credentials)


def find_referenced(connection: sa.Connection, records: Rows[R], reference: Reference) -> R | None:
    """The record with the reference's `id`, or else with its `name` (in its `domain`, itself a reference)."""
    if 'id' in reference:
        return records.find(connection, id=reference['id'])
    if 'domain' not in reference:
        return records.find(connection, name=reference['name'])
    domain = find_referenced(connection, DOMAINS, reference['domain'])
    return records.find(connection, name=reference['name'], domain_id=domain.id) if domain else None


def find_credential(connection: sa.Connection, reference: Reference) -> ApplicationCredential | None:
    """The application credential with this `id`, or else with this `name` of this `user`."""
    if 'id' in reference:
        return CREDENTIALS.find(connection, id=reference['id'])
    user = find_referenced(connection, USERS, reference['user'])
    return CREDENTIALS.find(connection, name=reference['name'], user_id=user.id) if user else None


# Grants


ASSIGNMENTS = Rows(
    Assignment,
    grants,
    user_name=users.c.name,
    user_domain_id=users.c.domain_id,
    role_name=roles.c.name,
    project_name=projects.c.name,
    project_domain_id=projects.c.domain_id,
)


def granted_roles(connection: sa.Connection, user_id: str, kind: str, target_id: str) -> list[Role]:
    """The roles a user was given on a target, without those they imply."""
    query = ROLES.select.join(grants, grants.c.role_id == roles.c.id).order_by(roles.c.name)
    return ROLES.all(connection, query.where(_grants_of(user_id, kind, target_id)))


def granted_projects(connection: sa.Connection, user_id: str) -> list[Project]:
    return _granted(connection, PROJECTS, user_id, 'project')


def granted_domains(connection: sa.Connection, user_id: str) -> list[Domain]:
    return _granted(connection, DOMAINS, user_id, 'domain')


def assignments(connection: sa.Connection, **values: str) -> list[Assignment]:
    """Every grant with these values."""
    query = (
        ASSIGNMENTS.select.select_from(grants)
        .join(users, users.c.id == grants.c.user_id)
        .join(roles, roles.c.id == grants.c.role_id)
        .outerjoin(projects, sa.and_(grants.c.target_kind == 'project', projects.c.id == grants.c.target_id))
    )
    matching = [grants.c[column] == value for column, value in values.items()]
    order = (grants.c.user_id, grants.c.target_kind, grants.c.target_id, roles.c.name)
    return ASSIGNMENTS.all(connection, query.where(*matching).order_by(*order))


def _grants_of(user_id: str, kind: str, target_id: str | sa.Column[str]) -> sa.ColumnElement[bool]:
    return sa.and_(grants.c.user_id == user_id, grants.c.target_kind == kind, grants.c.target_id == target_id)


def _granted(connection: sa.Connection, records: Rows[R], user_id: str, kind: str) -> list[R]:
    table = records.table
    granted = sa.exists().where(_grants_of(user_id, kind, table.c.id))
    return records.all(connection, records.select.where(granted).order_by(table.c.name, table.c.id))


# Tokens


USER_DOMAIN, SCOPE_DOMAIN = domains.alias('user_domain'), domains.alias('scope_domain')
TOKENS = Rows(
    Token,
    tokens,
    user_name=users.c.name,
    user_domain_id=USER_DOMAIN.c.id,
    user_domain_name=USER_DOMAIN.c.name,
    project_name=projects.c.name,
    project_domain_id=projects.c.domain_id,
    scope_domain_name=SCOPE_DOMAIN.c.name,
    application_credential_name=application_credentials.c.name,
    unrestricted=application_credentials.c.unrestricted,
)
WHOLE_TOKENS = (
    TOKENS.select.select_from(tokens)
    .join(users, users.c.id == tokens.c.user_id)
    .join(USER_DOMAIN, USER_DOMAIN.c.id == users.c.domain_id)
    .outerjoin(projects, projects.c.id == tokens.c.project_id)
    .outerjoin(SCOPE_DOMAIN, SCOPE_DOMAIN.c.id == sa.func.coalesce(tokens.c.domain_id, projects.c.domain_id))
    .outerjoin(application_credentials, application_credentials.c.id == tokens.c.application_credential_id)
)


def find_token(connection: sa.Connection, token_hash: str, now: datetime) -> Token | None:
    """A live token; None once its user or project is disabled."""
    living = (
        tokens.c.hash == token_hash,
        tokens.c.expires_at > now,
        users.c.enabled,
        sa.or_(tokens.c.project_id.is_(None), projects.c.enabled),
    )
    return TOKENS.first(connection, WHOLE_TOKENS.where(*living))


def insert_token(connection: sa.Connection, **values: Any) -> None:
    connection.execute(sa.insert(tokens).values(values))


def delete_tokens(connection: sa.Connection, **values: Any) -> None:
    """Delete the tokens with these values."""
    _delete_tokens(connection, sa.select(tokens.c.hash).filter_by(**values))


def purge_tokens(connection: sa.Connection, now: datetime) -> None:
    """Delete some of the tokens that have expired; the next call takes more."""
    _delete_tokens(connection, sa.select(tokens.c.hash).where(tokens.c.expires_at <= now).limit(BATCH))


def _delete_tokens(connection: sa.Connection, query: sa.Select[tuple[str]]) -> None:
    # MariaDB locks index entries as it scans. Two deletions that meet would lock each other out, were
    # they not by primary key and in its order.
    hashes = sorted(connection.execute(query).scalars())
    for batch in range(0, len(hashes), BATCH):
        connection.execute(sa.delete(tokens).where(tokens.c.hash.in_(hashes[batch : batch + BATCH])))
