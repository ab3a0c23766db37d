"""Domains, the projects in them, and the users."""

from collections.abc import Sequence
from typing import Any

from computeapi import errors
from computeapi.backends.identity.local.managers import R, Recent, RecordManager
from computeapi.backends.identity.local.passwords import Passwords
from computeapi.db import identity as queries
from computeapi.db.engine import Store
from computeapi.db.identity import Domain, Project, User
from computeapi.db.records import Rows

DEFAULT_DOMAIN = 'default'


class AccountManager(RecordManager[R]):
    """What lives in a domain."""

    def _require_parts(self, *, domain_id: str | None = None, default_project_id: str | None = None) -> None:
        """Invalid if a record would refer to a domain or project that is not there."""
        wanted: list[tuple[str, Rows[Any], str | None]] = [
            ('domain_id', queries.DOMAINS, domain_id),
            ('default_project_id', queries.PROJECTS, default_project_id),
        ]
        with self.store.read() as connection:
            for name, records, record_id in wanted:
                if record_id is not None and records.find(connection, id=record_id) is None:
                    raise errors.Invalid(f'Invalid input for field/attribute {name}. There is no {record_id}.')


class DomainManager(RecordManager[Domain]):
    records = queries.DOMAINS
    noun = 'domain'

    def granted(self, user_id: str) -> list[Domain]:
        """The domains on which a user has a role."""
        with self.store.read() as connection:
            return queries.granted_domains(connection, user_id)


class ProjectManager(AccountManager[Project]):
    records = queries.PROJECTS
    noun = 'project'

    def create(
        self,
        name: str,
        *,
        domain_id: str = DEFAULT_DOMAIN,
        description: str = '',
        enabled: bool = True,
        tags: Sequence[str] = (),
        extra: dict[str, Any] | None = None,
    ) -> Project:
        self._require_parts(domain_id=domain_id)
        values = {'description': description, 'enabled': enabled, 'tags': list(tags), 'extra': _given(extra or {})}
        return self.insert(name=name, domain_id=domain_id, **values)

    def update(self, project_id: str, **changes: Any) -> Project:
        """Change some columns; `extra` adds to what is there, None takes away.

        Disabling a project revokes its tokens.
        """
        with self.change() as connection:
            project = self.require(connection, project_id, lock=True)
            if 'extra' in changes:
                changes['extra'] = _given(project.extra | changes['extra'])
            self.records.update(connection, changes, id=project_id)
            if not changes.get('enabled', True):
                queries.delete_tokens(connection, project_id=project_id)
            return self.require(connection, project_id)

    def delete(self, project_id: str) -> None:
        with self.change() as connection:
            queries.GRANTS.delete(connection, target_kind='project', target_id=project_id)
            if not self.records.delete(connection, id=project_id):
                raise self.missing(project_id)

    def granted(self, user_id: str) -> list[Project]:
        """The projects on which a user has a role."""
        with self.store.read() as connection:
            return queries.granted_projects(connection, user_id)


class UserManager(AccountManager[User]):
    records = queries.USERS
    noun = 'user'

    def __init__(self, store: Store, recent: Recent, passwords: Passwords):
        super().__init__(store, recent)
        self.passwords = passwords

    def create(
        self,
        name: str,
        *,
        password: str | None = None,
        domain_id: str = DEFAULT_DOMAIN,
        description: str = '',
        enabled: bool = True,
        default_project_id: str | None = None,
        options: dict[str, Any] | None = None,
        extra: dict[str, Any] | None = None,
    ) -> User:
        """A user; without a password it cannot log in."""
        self._require_parts(domain_id=domain_id, default_project_id=default_project_id)
        return self.insert(
            name=name,
            password_hash=None if password is None else self.passwords.hash(password),
            domain_id=domain_id,
            description=description,
            enabled=enabled,
            default_project_id=default_project_id,
            options=_given(options or {}),
            extra=_given(extra or {}),
        )

    def update(self, user_id: str, **changes: Any) -> User:
        """Change some columns or the `password`; `options` and `extra` add to what is there, None takes away.

        A disabled user and one with a new password lose their tokens.
        """
        self._require_parts(default_project_id=changes.get('default_project_id'))
        if 'password' in changes:
            password = changes.pop('password')
            changes['password_hash'] = None if password is None else self.passwords.hash(password)
        with self.change() as connection:
            user = self.require(connection, user_id, lock=True)
            for column in {'options', 'extra'} & changes.keys():
                changes[column] = _given(getattr(user, column) | changes[column])
            self.records.update(connection, changes, id=user_id)
            if 'password_hash' in changes or not changes.get('enabled', True):
                queries.delete_tokens(connection, user_id=user_id)
            return self.require(connection, user_id)

    def change_password(self, user_id: str, original: str, password: str) -> None:
        """A user's own change, who proves to know the password so far."""
        with self.store.read() as connection:
            user = self.records.find(connection, id=user_id)
        if not self.verify(user, original) or user is None:
            raise errors.NotAuthenticated()
        if user.options.get('lock_password'):
            raise errors.Forbidden('The password of this user is locked.')
        self.update(user_id, password=password)

    def verify(self, user: User | None, password: str) -> bool:
        """Whether this is an enabled user's password; it takes as long if there is no such user."""
        password_hash = user.password_hash if user else None
        if not self.passwords.matches(password, password_hash) or user is None or not user.enabled:
            return False
        if password_hash and not self.passwords.is_current(password_hash):
            anew = {'password_hash': self.passwords.hash(password)}
            self.store.tell(self.records.update, anew, id=user.id, password_hash=password_hash)
        return True

    def delete(self, user_id: str) -> None:
        with self.change() as connection:
            if not self.records.delete(connection, id=user_id):
                raise self.missing(user_id)


def _given(values: dict[str, Any]) -> dict[str, Any]:
    """Only what has a value: Terraform, for one, takes an option that is there for a boolean."""
    return {name: value for name, value in values.items() if value is not None}
