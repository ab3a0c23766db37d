"""Roles, which of them imply others, and who holds them where."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import sqlalchemy as sa

from computeapi import errors
from computeapi.backends.identity.local.managers import Manager, RecordManager
from computeapi.db import identity as queries
from computeapi.db.identity import Assignment, Role
from computeapi.db.records import Rows

IMPLIES = {'admin': 'manager', 'manager': 'member', 'member': 'reader'}
BUILT_IN = ('admin', 'manager', 'member', 'reader', 'service')


class Target(NamedTuple):
    """What a role is held on: a project, a domain, or the system as a whole."""

    kind: str
    id: str

    def columns(self) -> dict[str, str | bool]:
        """How a token says that it is scoped to this target."""
        return {'system': True} if self.kind == 'system' else {f'{self.kind}_id': self.id}


SYSTEM = Target('system', 'all')


def implied(name: str) -> list[str]:
    """A role's name and those it implies, nearest first."""
    names = [name]
    while names[-1] in IMPLIES:
        names.append(IMPLIES[names[-1]])
    return names


def with_implied(held: Iterable[Role], roles: Iterable[Role]) -> list[Role]:
    """Of all `roles`, those held and those they imply."""
    names = {name for role in held for name in implied(role.name)}
    return [role for role in roles if role.name in names]


def effective_roles(connection: sa.Connection, user_id: str, target: Target) -> list[Role]:
    """The roles of a user on a target, with those they imply."""
    held = queries.granted_roles(connection, user_id, *target)
    return with_implied(held, queries.ROLES.named(connection)) if held else []


class RoleManager(RecordManager[Role]):
    records = queries.ROLES
    noun = 'role'

    def create(self, name: str, *, description: str = '', immutable: bool = False) -> Role:
        self._refuse_twin(name)
        return self.insert(name=name, description=description, immutable=immutable)

    def update(self, role_id: str, **changes: Any) -> Role:
        if 'name' in changes:
            self._refuse_twin(changes['name'], role_id)
        with self.change() as connection:
            self._require_mutable(connection, role_id, changes.get('immutable'))
            if 'name' in changes:
                self._revoke_holders(connection, role_id)
            self.records.update(connection, changes, id=role_id)
            return self.require(connection, role_id)

    def delete(self, role_id: str) -> None:
        with self.change() as connection:
            self._require_mutable(connection, role_id)
            self._revoke_holders(connection, role_id)
            self.records.delete(connection, id=role_id)

    def _refuse_twin(self, name: str, role_id: str | None = None) -> None:
        # Policy compares role names without case, so 'Admin' must not be had beside 'admin'.
        if any(role.name.casefold() == name.casefold() and role.id != role_id for role in self.list()):
            raise errors.Conflict(f"A role named '{name}' exists already.")

    def _require_mutable(self, connection: sa.Connection, role_id: str, immutable: bool | None = None) -> None:
        """Only an update that lifts the mark itself may touch an immutable role."""
        if self.require(connection, role_id).immutable and immutable is not False:
            raise errors.Forbidden(f'Cannot modify or delete immutable role {role_id}.')

    def _revoke_holders(self, connection: sa.Connection, role_id: str) -> None:
        for user_id in {grant.user_id for grant in queries.assignments(connection, role_id=role_id)}:
            queries.delete_tokens(connection, user_id=user_id)


class GrantManager(Manager):
    noun = 'role assignment'

    def add(self, user_id: str, target: Target, role_id: str) -> None:
        """Give a user a role on a target; to do so again changes nothing."""
        with self.change() as connection:
            self._require_all(connection, user_id, target, role_id)
            if not self._find(connection, user_id, target, role_id):
                values = {'target_kind': target.kind, 'target_id': target.id}
                queries.GRANTS.insert(connection, user_id=user_id, role_id=role_id, **values)

    def check(self, user_id: str, target: Target, role_id: str) -> None:
        """NotFound unless the user was given this very role."""
        with self.store.read() as connection:
            self._require_all(connection, user_id, target, role_id)
            if not self._find(connection, user_id, target, role_id):
                raise self.missing(role_id)

    def roles(self, user_id: str, target: Target) -> list[Role]:
        """What a user was given on a target, without what that implies."""
        with self.store.read() as connection:
            self._require_all(connection, user_id, target)
            return queries.granted_roles(connection, user_id, *target)

    def remove(self, user_id: str, target: Target, role_id: str) -> None:
        """Take a role away, and with it the user's tokens and application credentials for the target."""
        with self.change() as connection:
            queries.USERS.find(connection, lock=True, id=user_id)
            values = {'target_kind': target.kind, 'target_id': target.id}
            if not queries.GRANTS.delete(connection, user_id=user_id, role_id=role_id, **values):
                raise self.missing(role_id)
            queries.delete_tokens(connection, user_id=user_id, **target.columns())
            if target.kind == 'project':
                queries.CREDENTIALS.delete(connection, user_id=user_id, project_id=target.id)

    def assignments(self, *, effective: bool = False, **values: str) -> list[Assignment]:
        """Grants with these columns, or with `effective` the roles that users have by them."""
        role_id = values.pop('role_id', None) if effective else None
        with self.store.read() as connection:
            found = queries.assignments(connection, **values)
            if effective:
                found = _expanded(found, queries.ROLES.named(connection))
        return [assignment for assignment in found if role_id in (None, assignment.role_id)]

    def _find(self, connection: sa.Connection, user_id: str, target: Target, role_id: str) -> bool:
        return any(role.id == role_id for role in queries.granted_roles(connection, user_id, *target))

    def _require_all(self, connection: sa.Connection, user_id: str, target: Target, role_id: str | None = None) -> None:
        wanted: list[tuple[str, Rows[Any], str | None]] = [
            ('user', queries.USERS, user_id),
            ('role', queries.ROLES, role_id),
        ]
        if target != SYSTEM:
            wanted.append((target.kind, queries.PROJECTS if target.kind == 'project' else queries.DOMAINS, target.id))
        for noun, records, record_id in wanted:
            if record_id is not None and records.find(connection, id=record_id) is None:
                raise errors.NotFound(f'Could not find {noun}: {record_id}.')


def _expanded(assignments: Iterable[Assignment], roles: Iterable[Role]) -> list[Assignment]:
    """Each assignment, followed by those it implies."""
    by_name = {role.name: role.id for role in roles}
    return [
        replace(
            assignment,
            role_id=by_name[name],
            role_name=name,
            prior_role_id=None if name == assignment.role_name else assignment.role_id,
        )
        for assignment in assignments
        for name in implied(assignment.role_name)
        if name in by_name
    ]
