"""Roles, their implications, and role assignments."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import sqlalchemy as sa

from computeapi import errors
from computeapi.backends.identity.local.managers import Manager, RecordManager
from computeapi.db import identity as queries
from computeapi.db.engine import repeated
from computeapi.db.identity import DOMAINS
from computeapi.db.records import Rows
from computeapi.db.role_assignments import (
    GRANTS,
    IMPLICATIONS,
    NO_DOMAIN,
    ROLES,
    Assignment,
    Role,
    assignments,
    effective_assignments,
    given_roles,
)

IMPLIES = {'admin': 'manager', 'manager': 'member', 'member': 'reader'}
ACTORS: Mapping[str, Rows[Any]] = {'user': queries.USERS, 'group': queries.GROUPS}
TARGETS: Mapping[str, Rows[Any]] = {'project': queries.PROJECTS, 'domain': queries.DOMAINS}
BUILT_IN = ('admin', 'manager', 'member', 'reader', 'service')


class Target(NamedTuple):
    """The target of a role: a project, a domain, or the system as a whole."""

    kind: str
    id: str

    def columns(self) -> dict[str, str | bool]:
        """The columns of a token with this scope."""
        return {'system': True} if self.kind == 'system' else {f'{self.kind}_id': self.id}


SYSTEM = Target('system', 'all')


class RoleManager(RecordManager[Role]):
    records = ROLES
    noun = 'role'
    parts = {'domain_id': DOMAINS}

    def create(
        self,
        name: str,
        *,
        description: str = '',
        domain_id: str = NO_DOMAIN,
        immutable: bool = False,
        extra: dict[str, Any] | None = None,
    ) -> Role:
        with self.change() as connection:
            self._refuse_twin(connection, name, domain_id)
            facts = {'description': description, 'domain_id': domain_id, 'immutable': immutable}
            return self.insert(connection, name=name, extra=extra or {}, **facts)

    @repeated
    def update(self, role_id: str, **changes: Any) -> Role:
        with self.change() as connection:
            role = self.require(connection, role_id, lock=True)
            if role.immutable and changes.get('immutable') is not False:
                raise self._immutable(role_id)
            if 'name' in changes:
                self._refuse_twin(connection, changes['name'], role.domain_id, role_id)
            return self.change_record(connection, role, role_id, changes)

    @repeated
    def delete(self, role_id: str) -> None:
        with self.change() as connection:
            if self.require(connection, role_id, lock=True).immutable:
                raise self._immutable(role_id)
            self.records.delete(connection, id=role_id)

    def implications(self) -> dict[str, list[str]]:
        """The roles that each role implies directly, by ID."""
        with self.store.read() as connection:
            found = IMPLICATIONS.all(connection, IMPLICATIONS.select)
        return _grouped(found)

    @repeated
    def imply(self, prior_role_id: str, implied_role_id: str) -> None:
        """Make one role imply another; idempotent."""
        with self.change() as connection:
            prior = self.require(connection, prior_role_id, lock=True)
            implied = self.require(connection, implied_role_id)
            if implied.name == 'admin':
                raise errors.Forbidden('No role may imply the role admin.')
            if prior.domain_id == NO_DOMAIN != implied.domain_id:
                raise errors.Forbidden('Only a domain-specific role may imply a domain-specific role.')
            values: dict[str, Any] = {'prior_role_id': prior_role_id, 'implied_role_id': implied_role_id}
            if not IMPLICATIONS.find(connection, **values):
                IMPLICATIONS.insert(connection, **values)

    def check_implied(self, prior_role_id: str, implied_role_id: str) -> None:
        with self.store.read() as connection:
            if not IMPLICATIONS.find(connection, prior_role_id=prior_role_id, implied_role_id=implied_role_id):
                raise errors.NotFound(f'{prior_role_id} does not imply {implied_role_id}.')

    def no_longer_imply(self, prior_role_id: str, implied_role_id: str) -> None:
        with self.change() as connection:
            if not IMPLICATIONS.delete(connection, prior_role_id=prior_role_id, implied_role_id=implied_role_id):
                raise errors.NotFound(f'{prior_role_id} does not imply {implied_role_id}.')

    def _immutable(self, role_id: str) -> errors.Forbidden:
        return errors.Forbidden(f'Cannot modify or delete immutable role {role_id}.')

    def _refuse_twin(self, connection: sa.Connection, name: str, domain_id: str, role_id: str | None = None) -> None:
        # Policies compare role names case-insensitively, so 'Admin' must not exist in addition to 'admin'.
        others = self.records.named(connection, domain_id=domain_id)
        if any(role.name.casefold() == name.casefold() and role.id != role_id for role in others):
            raise errors.Conflict(f"A role named '{name}' already exists.")


class GrantManager(Manager):
    """Roles of users and groups; `kind` says which of these an actor is."""

    noun = 'role assignment'

    @repeated
    def add(self, actor_id: str, target: Target, role_id: str, *, kind: str = 'user', inherited: bool = False) -> None:
        """Give a user or group a role on a target; idempotent."""
        with self.change() as connection:
            self._require_all(connection, kind, actor_id, target, role_id, lock=True)
            self._require_own_role(connection, target, role_id)
            values = _grant(actor_id, target, role_id, inherited)
            if not GRANTS.find(connection, **values):
                GRANTS.insert(connection, **values)

    def check(
        self, actor_id: str, target: Target, role_id: str, *, kind: str = 'user', inherited: bool = False
    ) -> None:
        """NotFound unless exactly this role was granted."""
        with self.store.read() as connection:
            self._require_all(connection, kind, actor_id, target, role_id)
            if not GRANTS.find(connection, **_grant(actor_id, target, role_id, inherited)):
                raise self.missing(role_id)

    def roles(self, actor_id: str, target: Target, *, kind: str = 'user', inherited: bool = False) -> list[Role]:
        """The roles granted on a target, without implied ones."""
        with self.store.read() as connection:
            self._require_all(connection, kind, actor_id, target)
            values = {'target_kind': target.kind, 'target_id': target.id}
            return given_roles(connection, actor_id=actor_id, inherited=inherited, **values)

    @repeated
    def remove(
        self, actor_id: str, target: Target, role_id: str, *, kind: str = 'user', inherited: bool = False
    ) -> None:
        """Revoke a role, and with it a user's tokens and application credentials for the target."""
        with self.change() as connection:
            ACTORS[kind].find(connection, lock=True, id=actor_id)
            if not GRANTS.delete(connection, **_grant(actor_id, target, role_id, inherited)):
                raise self.missing(role_id)
            queries.delete_tokens(connection, user_id=actor_id, **target.columns())
            if target.kind == 'project' and not inherited:
                queries.CREDENTIALS.delete(connection, user_id=actor_id, project_id=target.id)

    def assignments(self, *, effective: bool = False, below: str | None = None, **values: Any) -> list[Assignment]:
        """The grants with these columns, or with `effective` the roles that users have by them."""
        with self.store.read() as connection:
            if not effective:
                return assignments(connection, below=below, **values)
            # Implied roles are not in the table, so they are filtered at the end.
            role_id = values.pop('role_id', None)
            found = effective_assignments(connection, below=below, **values)
            roles = {role.id: role for role in ROLES.named(connection)}
            implied = _grouped(IMPLICATIONS.all(connection, IMPLICATIONS.select))
        return [each for each in _expanded(found, roles, implied) if role_id in (None, each.role_id)]

    def _require_all(
        self,
        connection: sa.Connection,
        kind: str,
        actor_id: str,
        target: Target,
        role_id: str | None = None,
        *,
        lock: bool = False,
    ) -> None:
        """NotFound if one of these does not exist; lock: keep them until the transaction ends."""
        wanted: list[tuple[str, Rows[Any], str | None]] = [(kind, ACTORS[kind], actor_id), ('role', ROLES, role_id)]
        if target != SYSTEM:
            wanted.append((target.kind, TARGETS[target.kind], target.id))
        for noun, records, record_id in wanted:
            if record_id is not None and records.find(connection, lock=lock, id=record_id) is None:
                raise errors.NotFound(f'Could not find {noun}: {record_id}.')

    def _require_own_role(self, connection: sa.Connection, target: Target, role_id: str) -> None:
        """A domain-specific role is for the domain's projects, not for the system; Keystone accepts it on any
        domain."""
        role = ROLES.find(connection, id=role_id)
        if role is None or role.domain_id == NO_DOMAIN or target.kind == 'domain':
            return
        if target == SYSTEM:
            raise errors.Invalid(f'Role {role_id} is a domain-specific role, which cannot be assigned on the system.')
        project = queries.PROJECTS.find(connection, id=target.id)
        if project is not None and role.domain_id != project.domain_id:
            raise errors.Forbidden(f'Role {role_id} belongs to a different domain than the target.')


def _grant(actor_id: str, target: Target, role_id: str, inherited: bool) -> dict[str, Any]:
    target_columns = {'target_kind': target.kind, 'target_id': target.id}
    return {'actor_id': actor_id, 'role_id': role_id, 'inherited': inherited, **target_columns}


def _grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    grouped: dict[str, list[str]] = {}
    for prior, implied in pairs:
        grouped.setdefault(prior, []).append(implied)
    return grouped


def _expanded(
    found: Iterable[Assignment], roles: Mapping[str, Role], implied: Mapping[str, Sequence[str]]
) -> Iterator[Assignment]:
    """Each assignment, followed by those that it implies; domain-specific roles count only through those."""
    for assignment in found:
        ways = {assignment.role_id: None} | _ways(assignment.role_id, implied)
        for role_id, prior_role_id in ways.items():
            role = roles.get(role_id)
            if role and role.domain_id == NO_DOMAIN:
                yield replace(assignment, role_id=role_id, role_name=role.name, prior_role_id=prior_role_id)


def _ways(role_id: str, implied: Mapping[str, Sequence[str]]) -> dict[str, str | None]:
    """Every role that a role implies, nearest first, with the role that implies it directly."""
    ways: dict[str, str | None] = {}
    left = [role_id]
    for prior in left:
        for each in implied.get(prior, ()):
            if each not in ways and each != role_id:
                ways[each] = prior
                left.append(each)
    return ways
