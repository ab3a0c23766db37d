"""Users and groups."""

from collections.abc import Mapping
from typing import Any

from computeapi import errors
from computeapi.backends.identity.local.managers import PlainManager, Recent, RecordManager
from computeapi.backends.identity.local.passwords import Passwords
from computeapi.backends.identity.local.projects import DEFAULT_DOMAIN
from computeapi.db import identity as queries
from computeapi.db import role_assignments
from computeapi.db.engine import Store, repeated
from computeapi.db.identity import User, UserGroup


class UserManager(RecordManager[User]):
    records = queries.USERS
    noun = 'user'
    parts = {'domain_id': queries.DOMAINS, 'default_project_id': queries.PROJECTS}
    around = 'domain_id'

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
        """Create a user; without a password it cannot log in."""
        password_hash = None if password is None else self.passwords.hash(password)
        with self.change() as connection:
            return self.insert(
                connection,
                name=name,
                password_hash=password_hash,
                domain_id=domain_id,
                description=description,
                enabled=enabled,
                default_project_id=default_project_id,
                options=options or {},
                extra=extra or {},
            )

    def update(self, user_id: str, **changes: Any) -> User:
        """Change some columns or the `password`. Disabling a user or changing its password revokes its tokens,
        including those by its trusts."""
        if 'password' in changes:
            password = changes.pop('password')
            changes['password_hash'] = None if password is None else self.passwords.hash(password)
        return self._update(user_id, changes)

    @repeated
    def _update(self, user_id: str, changes: Mapping[str, Any], proved: str | None = None) -> User:
        """proved: the password hash that the caller has proved to know; NotAuthenticated if it has changed since."""
        with self.change() as connection:
            user = self.require(connection, user_id, lock=True)
            if proved not in (None, user.password_hash):
                raise errors.NotAuthenticated()
            if 'password_hash' in changes or not changes.get('enabled', True):
                queries.delete_tokens_of_user(connection, user_id)
            return self.change_record(connection, user, user_id, changes)

    def change_password(self, user_id: str, original: str, password: str) -> None:
        """Change the password of a user who proves to know the current one."""
        user = self.verified(self._found(user_id), original)
        if user is None:
            raise errors.NotAuthenticated()
        if user.options.get('lock_password'):
            raise errors.Forbidden('The password of this user is locked.')
        self._update(user_id, {'password_hash': self.passwords.hash(password)}, user.password_hash)

    def verified(self, user: User | None, password: str) -> User | None:
        """The user, if it is enabled and this is its password; takes as long if there is no such user."""
        password_hash = user.password_hash if user else None
        if not self.passwords.matches(password, password_hash) or user is None or not user.enabled:
            return None
        if password_hash is None or self.passwords.is_current(password_hash):
            return user
        anew = {'password_hash': self.passwords.hash(password)}
        self.store.change(self.records.update, anew, id=user.id, password_hash=password_hash)
        # Another login may have rehashed the password at the same time, or it may have been changed.
        return self.verified(self._found(user.id), password)

    def _found(self, user_id: str) -> User | None:
        with self.store.read() as connection:
            return self.records.find(connection, id=user_id)

    @repeated
    def delete(self, user_id: str) -> None:
        with self.change() as connection:
            self.require(connection, user_id, lock=True)
            role_assignments.GRANTS.delete(connection, actor_id=user_id)
            self.records.delete(connection, id=user_id)


class GroupManager(PlainManager[UserGroup]):
    records = queries.GROUPS
    noun = 'group'
    parts = {'domain_id': queries.DOMAINS}
    around = 'domain_id'
    defaults = {'domain_id': DEFAULT_DOMAIN, 'description': '', 'extra': {}}

    @repeated
    def delete(self, record_id: str) -> None:
        with self.change() as connection:
            self.require(connection, record_id, lock=True)
            role_assignments.GRANTS.delete(connection, actor_id=record_id)
            self.records.delete(connection, id=record_id)

    def members(self, group_id: str) -> list[User]:
        with self.store.read() as connection:
            self.require(connection, group_id)
            return queries.members(connection, group_id)

    def of_user(self, user_id: str) -> list[UserGroup]:
        with self.store.read() as connection:
            return queries.groups_of(connection, user_id)

    def add_member(self, group_id: str, user_id: str) -> None:
        """Add a user to a group; idempotent."""
        with self.change() as connection:
            self.require(connection, group_id, lock=True)
            if queries.USERS.find(connection, id=user_id) is None:
                raise errors.NotFound(f'Could not find user: {user_id}.')
            if not queries.MEMBERSHIPS.find(connection, group_id=group_id, user_id=user_id):
                queries.MEMBERSHIPS.insert(connection, group_id=group_id, user_id=user_id)

    def check_member(self, group_id: str, user_id: str) -> None:
        """NotFound unless the user is in the group."""
        with self.store.read() as connection:
            if not queries.MEMBERSHIPS.find(connection, group_id=group_id, user_id=user_id):
                raise errors.NotFound(f'Could not find user {user_id} in group {group_id}.')

    def remove_member(self, group_id: str, user_id: str) -> None:
        with self.change() as connection:
            if not queries.MEMBERSHIPS.delete(connection, group_id=group_id, user_id=user_id):
                raise errors.NotFound(f'Could not find user {user_id} in group {group_id}.')
