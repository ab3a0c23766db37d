"""Logins and tokens."""

import hashlib
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

import sqlalchemy as sa

from computeapi import errors
from computeapi.backends.identity.local.application_credentials import ApplicationCredentialManager
from computeapi.backends.identity.local.attempts import Attempts, origin
from computeapi.backends.identity.local.managers import Clock, Manager, Recent
from computeapi.backends.identity.local.roles import SYSTEM, Target
from computeapi.backends.identity.local.trusts import spend
from computeapi.backends.identity.local.users import UserManager
from computeapi.context import Context, Permission
from computeapi.db import identity as queries
from computeapi.db.engine import Store, repeated
from computeapi.db.identity import ApplicationCredential, CredentialRule, Domain, Project, Reference, Token, Trust, User
from computeapi.db.role_assignments import Role, effective_roles

MAX_TOKEN_LENGTH = 255
TRUST = 'OS-TRUST:trust'

Enabled = TypeVar('Enabled', Project, Domain)

# {'project': Reference}, {'domain': Reference}, {'system': {'all': True}}, {TRUST: {'id': ...}} or {'unscoped': {}}.
Scope = Mapping[str, Any]


@dataclass(frozen=True)
class Login:
    """An authenticated user. A login by an application credential is valid for its project only.

    trust: the trust by which the user acts; with impersonation, the user is the trustor.
    """

    user: User
    methods: tuple[str, ...]
    expires_at: datetime = datetime.max
    audit_ids: tuple[str, ...] = ()
    credential: ApplicationCredential | None = None
    trust: Trust | None = None

    def __add__(self, other: 'Login') -> 'Login':
        """Combines two proofs of the same user."""
        if self.user.id != other.user.id:
            raise errors.NotAuthenticated()
        return Login(
            self.user,
            tuple(dict.fromkeys(self.methods + other.methods)),
            min(self.expires_at, other.expires_at),
            self.audit_ids + other.audit_ids,
            self.credential or other.credential,
        )


def named(connection: sa.Connection, reference: Reference) -> tuple[str, ...]:
    """What a reference to a user stands for, whether there is one or not: the same for every way to write it, so that
    nobody gets more attempts by writing it in another way."""
    user = queries.find_referenced(connection, queries.USERS, reference)
    if user is not None:
        return (user.domain_id, user.name)
    if 'id' in reference:
        return ('id', reference['id'])
    domain = queries.find_referenced(connection, queries.DOMAINS, reference['domain'])
    return (domain.id if domain else '', reference['name'])


def named_credential(connection: sa.Connection, reference: Reference) -> tuple[str, ...]:
    """Like `named`, for an application credential."""
    credential = queries.find_credential(connection, reference)
    if credential is not None:
        return ('credential', *named(connection, {'id': credential.user_id}), credential.name)
    if 'id' in reference:
        return ('credential', 'id', reference['id'])
    return ('credential', *named(connection, reference['user']), reference['name'])


class Logins:
    """The authentication methods; errors never say what was wrong."""

    def __init__(
        self,
        store: Store,
        users: UserManager,
        credentials: ApplicationCredentialManager,
        clock: Clock,
        attempts: Attempts,
    ):
        self.store = store
        self.users = users
        self.credentials = credentials
        self.clock = clock
        self.attempts = attempts

    def with_password(self, reference: Reference, password: str, address: str | None = None) -> Login:
        """address: of the client; after several wrong passwords from there TooManyAttempts for a while."""
        with self.counted(reference, address):
            return self._with_password(reference, password)

    def counted(
        self,
        reference: Reference,
        address: str | None,
        stands_for: Callable[[sa.Connection, Reference], tuple[str, ...]] = named,
    ) -> AbstractContextManager[None]:
        """Counts an attempt to log in with the reference, by what it stands for, as `Attempts` does."""
        with self.store.read() as connection:
            caller = stands_for(connection, reference)
        return self.attempts.counted((origin(address), *caller))

    def _with_password(self, reference: Reference, password: str) -> Login:
        with self.store.read() as connection:
            user = queries.find_referenced(connection, queries.USERS, reference)
            welcome = is_welcome(connection, user)
        verified = self.users.verified(user, password)
        if verified is None or not welcome:
            raise errors.NotAuthenticated()
        return Login(verified, ('password',))

    def with_token(self, token: str) -> Login:
        with self.store.read() as connection:
            row = find_token(connection, token, self.clock())
            user = self.users.require(connection, row.user_id)
        if row.application_credential_id is not None:
            raise errors.Forbidden('A token of an application credential cannot be exchanged for another.')
        if row.trust_id is not None:
            raise errors.Forbidden('A token of a trust cannot be exchanged for another.')
        return Login(user, tuple(dict.fromkeys([*row.methods, 'token'])), row.expires_at, (row.audit_ids[-1],))

    def with_credential(self, reference: Reference, secret: str, address: str | None = None) -> Login:
        """Like `with_password`."""
        with self.counted(reference, address, named_credential):
            return self._with_credential(reference, secret)

    def _with_credential(self, reference: Reference, secret: str) -> Login:
        with self.store.read() as connection:
            credential = queries.find_credential(connection, reference)
            user = queries.USERS.find(connection, id=credential.user_id) if credential else None
            welcome = is_welcome(connection, user)
        if not self.credentials.verify(credential, secret) or credential is None or user is None or not welcome:
            raise errors.NotAuthenticated()
        expires_at = credential.expires_at or datetime.max
        return Login(user, ('application_credential',), expires_at, credential=credential)


def is_welcome(connection: sa.Connection, user: User | None) -> bool:
    """Whether the user and its domain are enabled."""
    domain = queries.DOMAINS.find(connection, id=user.domain_id) if user and user.enabled else None
    return domain is not None and domain.enabled


class TokenManager(Manager):
    """Manages opaque tokens with a scope, of which only hashes are stored; their roles are the user's current ones."""

    noun = 'token'

    def __init__(self, store: Store, recent: Recent, hours: float, clock: Clock, most: int):
        """most: how many of them a user can have at a time."""
        super().__init__(store, recent)
        self.most = most
        self.lifetime = timedelta(hours=hours)
        self.clock = clock

    def issue(self, login: Login, scope: Scope | None = None) -> str:
        """Issue a token for this scope; without one, for the default that `scoped` chooses."""
        # Base64 may begin with "-", which commands take for an option.
        token, now = secrets.token_hex(32), self.clock()
        try:
            login = self.store.change(self._insert, token, login, scope, now)
        except sa.exc.IntegrityError:
            # The project or the application credential has just been deleted.
            raise errors.NotAuthenticated() from None
        self.purge(now, login)
        return token

    def _insert(self, connection: sa.Connection, token: str, login: Login, scope: Scope | None, now: datetime) -> Login:
        """Insert the token; returns the login, adapted to its trust if it uses one."""
        _require_unchanged(connection, login.user)
        login = _trusted(connection, login, scope, now)
        target, _ = scoped(connection, login, scope)
        expires_at = min(now + self.lifetime, login.expires_at)
        facts = {'hash': hash_of(token), 'issued_at': now, 'expires_at': expires_at}
        queries.insert_token(connection, **facts, **_kept(login, target))
        return login

    @repeated
    def purge(self, now: datetime, login: Login | None = None) -> None:
        """Delete expired tokens, and the oldest ones of a user, or by a trust, above the limit.

        This is separate from other changes, which would hold their locks while they wait for others."""
        with self.store.write() as connection:
            queries.purge_tokens(connection, now)
            if login is not None:
                queries.purge_tokens_of(connection, login.user.id, login.trust and login.trust.id, self.most)

    def get(self, token: str) -> Token:
        """Everything that a valid token refers to; NotAuthenticated if there is no such token."""
        with self.store.read() as connection:
            return find_token(connection, token, self.clock())

    def revoke(self, token: str) -> None:
        with self.change() as connection:
            queries.delete_tokens(connection, hash=hash_of(token))

    def authenticate(self, token: str) -> Context:
        def look_up() -> tuple[Context, datetime]:
            row = self.get(token)
            return _context(row, token), row.expires_at

        return self.recent.recall(hash_of(token), look_up)


def _kept(login: Login, target: Target | None) -> dict[str, Any]:
    """The columns of a token for a login and its scope."""
    return {
        'user_id': login.user.id,
        'methods': list(login.methods),
        'audit_ids': [secrets.token_urlsafe(16), *login.audit_ids],
        'application_credential_id': login.credential.id if login.credential else None,
        'trust_id': login.trust.id if login.trust else None,
        'system': False,
        **(target.columns() if target else {}),
    }


def hash_of(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def find_token(connection: sa.Connection, token: str, now: datetime) -> Token:
    """A valid token with the current roles of its user; NotAuthenticated, also if no roles are left."""
    row = queries.find_token(connection, hash_of(token), now) if 0 < len(token) <= MAX_TOKEN_LENGTH else None
    if row is None:
        raise errors.NotAuthenticated()
    target = _scope_of(row)
    if target is None:
        return row
    if row.trust_id is None:
        roles = effective_roles(connection, row.user_id, *target, among=row.credential_role_ids)
    else:
        roles = _entrusted(connection, row, row.trust_role_ids or (), target)
    if not roles:
        raise errors.NotAuthenticated()
    rules = None if row.access_rule_ids is None else queries.find_access_rules(connection, row.access_rule_ids)
    return row._replace(roles=roles, access_rules=rules)


def _scope_of(row: Token) -> Target | None:
    if row.project_id:
        return Target('project', row.project_id)
    if row.domain_id:
        return Target('domain', row.domain_id)
    return SYSTEM if row.system else None


def _require_unchanged(connection: sa.Connection, user: User) -> None:
    """The password was checked outside of the transaction, and may have been changed since."""
    now = queries.USERS.find(connection, lock=True, id=user.id)
    if now is None or not now.enabled or now.password_hash != user.password_hash:
        raise errors.NotAuthenticated()


def scoped(connection: sa.Connection, login: Login, scope: Scope | None) -> tuple[Target | None, list[Role]]:
    """The requested scope and the user's roles there; by default the user's default project."""
    if login.credential is not None:
        return _scoped_by_credential(connection, login.user, login.credential, scope)
    if login.trust is not None:
        return _scoped_by_trust(connection, login.trust)
    if scope is None:
        return _default_scope(connection, login.user)
    target = _target(connection, scope)
    roles = effective_roles(connection, login.user.id, *target) if target else []
    if target and not roles:
        raise errors.NotAuthenticated()
    return target, roles


def _trusted(connection: sa.Connection, login: Login, scope: Scope | None, now: datetime) -> Login:
    """The login adapted to the requested trust, if any; with impersonation it becomes the trustor's."""
    if login.credential is not None or not scope or TRUST not in scope:
        return login
    trust = spend(connection, scope[TRUST]['id'], login.user.id, now)
    trustor = queries.USERS.find(connection, id=trust.trustor_user_id)
    user = trustor if trust.impersonation and trustor else login.user
    expires_at = min(login.expires_at, trust.expires_at or datetime.max)
    return replace(login, user=user, expires_at=expires_at, trust=trust)


def _scoped_by_trust(connection: sa.Connection, trust: Trust) -> tuple[Target, list[Role]]:
    target = _project(connection, queries.PROJECTS.find(connection, id=trust.project_id))
    roles = _entrusted(connection, trust, trust.role_ids, target)
    if not roles:
        raise errors.NotAuthenticated()
    return target, roles


def _entrusted(
    connection: sa.Connection, parties: Trust | Token, role_ids: Sequence[str], target: Target
) -> list[Role]:
    """The roles of a trust; none if either user may not log in, or the trustor no longer has all of them."""
    for user_id in (parties.trustor_user_id, parties.trustee_user_id):
        if not is_welcome(connection, queries.USERS.find(connection, id=user_id)):
            return []
    roles = effective_roles(connection, parties.trustor_user_id or '', *target, among=role_ids)
    return roles if {role.id for role in roles}.issuperset(role_ids) else []


def _scoped_by_credential(
    connection: sa.Connection, user: User, credential: ApplicationCredential, scope: Scope | None
) -> tuple[Target, list[Role]]:
    """The roles that the credential was created with and its user still has."""
    if scope is not None:
        raise errors.NotAuthenticated('Application credentials cannot request a scope.')
    target = _project(connection, queries.PROJECTS.find(connection, id=credential.project_id))
    roles = effective_roles(connection, user.id, *target, among=credential.role_ids)
    if not roles:
        raise errors.NotAuthenticated()
    return target, roles


def _default_scope(connection: sa.Connection, user: User) -> tuple[Target | None, list[Role]]:
    project_id = user.default_project_id
    project = queries.PROJECTS.find(connection, id=project_id) if project_id else None
    try:
        target = _project(connection, project)
    except errors.NotAuthenticated:
        return None, []
    roles = effective_roles(connection, user.id, *target)
    return (target, roles) if roles else (None, [])


def _target(connection: sa.Connection, scope: Scope) -> Target | None:
    kind, reference = next(iter(scope.items()))
    if kind == 'unscoped':
        return None
    if kind == 'system':
        return SYSTEM
    if kind == 'project':
        return _project(connection, queries.find_referenced(connection, queries.PROJECTS, reference))
    return Target(kind, _enabled(queries.find_referenced(connection, queries.DOMAINS, reference)).id)


def _project(connection: sa.Connection, project: Project | None) -> Target:
    """A project that is enabled, and in an enabled domain."""
    found = _enabled(project)
    _enabled(queries.DOMAINS.find(connection, id=found.domain_id))
    return Target('project', found.id)


def _enabled(record: Enabled | None) -> Enabled:
    if record is None or not record.enabled:
        raise errors.NotAuthenticated()
    return record


def _context(row: Token, token: str) -> Context:
    roles = frozenset(role.name.lower() for role in row.roles)
    return Context(
        user_id=row.user_id,
        user_name=row.user_name,
        user_domain_id=row.user_domain_id,
        project_id=row.project_id,
        project_name=row.project_name,
        project_domain_id=row.project_domain_id,
        domain_id=row.domain_id,
        system_scope='all' if row.system else None,
        roles=roles,
        is_admin='admin' in roles,
        auth_token=token,
        permissions=None if row.access_rules is None else tuple(map(_permission, row.access_rules)),
    )


def _permission(rule: CredentialRule) -> Permission:
    return Permission(rule.service, rule.method, rule.path)
