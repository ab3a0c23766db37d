"""Queries of the identity service: accounts, what they were granted, and their tokens."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from computeapi.db.tables.identity import application_credentials, domains, grants, projects, roles, tokens, users

# How many rows one statement deletes.
BATCH = 500

Record = sa.Row[Any]
"""A row of one of these tables, or of several, read by the names of its columns."""


def find(connection: sa.Connection, table: sa.Table, *, lock: bool = False, **values: Any) -> sa.Row[Any] | None:
    """The one row whose columns have these values; with `lock`, nobody else changes it in this transaction."""
    query = sa.select(table).filter_by(**values)
    return connection.execute(query.with_for_update() if lock else query).one_or_none()


def list_all(connection: sa.Connection, table: sa.Table, **values: Any) -> Sequence[sa.Row[Any]]:
    """The rows whose columns have these values, by name."""
    return connection.execute(sa.select(table).filter_by(**values).order_by(table.c.name, table.c.id)).all()


def insert(connection: sa.Connection, table: sa.Table, **values: Any) -> None:
    connection.execute(sa.insert(table).values(values))


def update(connection: sa.Connection, table: sa.Table, record_id: str, **values: Any) -> bool:
    """Whether there is such a row; it now has these values."""
    if not values:
        return find(connection, table, id=record_id) is not None
    return connection.execute(sa.update(table).filter_by(id=record_id).values(values)).rowcount == 1


def delete(connection: sa.Connection, table: sa.Table, **values: Any) -> int:
    """How many rows with these values were there to delete."""
    return connection.execute(sa.delete(table).filter_by(**values)).rowcount


def find_referenced(connection: sa.Connection, table: sa.Table, reference: Mapping[str, Any]) -> sa.Row[Any] | None:
    """The row with the reference's `id`, or else with its `name` (in its `domain`, itself a reference)."""
    if 'id' in reference:
        return find(connection, table, id=reference['id'])
    if 'domain' not in reference:
        return find(connection, table, name=reference['name'])
    domain = find_referenced(connection, domains, reference['domain'])
    return find(connection, table, name=reference['name'], domain_id=domain.id) if domain else None


def find_credential(connection: sa.Connection, reference: Mapping[str, Any]) -> sa.Row[Any] | None:
    """The application credential with this `id`, or else with this `name` of this `user`."""
    if 'id' in reference:
        return find(connection, application_credentials, id=reference['id'])
    user = find_referenced(connection, users, reference['user'])
    return find(connection, application_credentials, name=reference['name'], user_id=user.id) if user else None


# Grants


def granted_roles(connection: sa.Connection, user_id: str, kind: str, target_id: str) -> Sequence[sa.Row[Any]]:
    """The roles a user was given on a target, without those they imply."""
    query = sa.select(roles).join(grants, grants.c.role_id == roles.c.id).order_by(roles.c.name)
    return connection.execute(query.where(_grants_of(user_id, kind, target_id))).all()


def granted_projects(connection: sa.Connection, user_id: str) -> Sequence[sa.Row[Any]]:
    return _granted(connection, projects, user_id, 'project')


def granted_domains(connection: sa.Connection, user_id: str) -> Sequence[sa.Row[Any]]:
    return _granted(connection, domains, user_id, 'domain')


def assignments(connection: sa.Connection, **values: str) -> Sequence[sa.Row[Any]]:
    """Every grant with these values, and the names of those it joins."""
    query = (
        sa.select(
            grants,
            users.c.name.label('user_name'),
            users.c.domain_id.label('user_domain_id'),
            roles.c.name.label('role_name'),
            projects.c.name.label('project_name'),
            projects.c.domain_id.label('project_domain_id'),
        )
        .join(users, users.c.id == grants.c.user_id)
        .join(roles, roles.c.id == grants.c.role_id)
        .outerjoin(projects, sa.and_(grants.c.target_kind == 'project', projects.c.id == grants.c.target_id))
    )
    matching = [grants.c[column] == value for column, value in values.items()]
    order = (grants.c.user_id, grants.c.target_kind, grants.c.target_id, roles.c.name)
    return connection.execute(query.where(*matching).order_by(*order)).all()


def _grants_of(user_id: str, kind: str, target_id: str | sa.Column[str]) -> sa.ColumnElement[bool]:
    return sa.and_(grants.c.user_id == user_id, grants.c.target_kind == kind, grants.c.target_id == target_id)


def _granted(connection: sa.Connection, table: sa.Table, user_id: str, kind: str) -> Sequence[sa.Row[Any]]:
    granted = sa.exists().where(_grants_of(user_id, kind, table.c.id))
    return connection.execute(sa.select(table).where(granted).order_by(table.c.name, table.c.id)).all()


# Tokens


def find_token(connection: sa.Connection, token_hash: str, now: datetime) -> sa.Row[Any] | None:
    """A live token and the names of all it stands for; None once its user or project is disabled."""
    user_domain = domains.alias('user_domain')
    scope_domain = domains.alias('scope_domain')
    query = (
        sa.select(
            tokens,
            users.c.name.label('user_name'),
            user_domain.c.id.label('user_domain_id'),
            user_domain.c.name.label('user_domain_name'),
            projects.c.name.label('project_name'),
            projects.c.domain_id.label('project_domain_id'),
            scope_domain.c.name.label('scope_domain_name'),
            application_credentials.c.name.label('application_credential_name'),
            application_credentials.c.unrestricted,
        )
        .join(users, users.c.id == tokens.c.user_id)
        .join(user_domain, user_domain.c.id == users.c.domain_id)
        .outerjoin(projects, projects.c.id == tokens.c.project_id)
        .outerjoin(scope_domain, scope_domain.c.id == sa.func.coalesce(tokens.c.domain_id, projects.c.domain_id))
        .outerjoin(application_credentials, application_credentials.c.id == tokens.c.application_credential_id)
    )
    living = (
        tokens.c.hash == token_hash,
        tokens.c.expires_at > now,
        users.c.enabled,
        sa.or_(tokens.c.project_id.is_(None), projects.c.enabled),
    )
    return connection.execute(query.where(*living)).one_or_none()


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
