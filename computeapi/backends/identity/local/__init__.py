"""Identity kept in the service's own store: accounts, roles and tokens with the semantics of Keystone v3."""

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

from computeapi.backends.identity.local.application_credentials import (
    AccessRuleManager,
    ApplicationCredentialManager,
)
from computeapi.backends.identity.local.attempts import Attempts
from computeapi.backends.identity.local.catalog import (
    CatalogManager,
    CatalogServiceManager,
    EndpointGroupManager,
    EndpointManager,
    RegionManager,
)
from computeapi.backends.identity.local.limits import LimitManager, RegisteredLimitManager
from computeapi.backends.identity.local.managers import Clock, Recent
from computeapi.backends.identity.local.passwords import Passwords
from computeapi.backends.identity.local.policies import PolicyManager
from computeapi.backends.identity.local.projects import DEFAULT_DOMAIN, DomainManager, ProjectManager
from computeapi.backends.identity.local.roles import BUILT_IN, IMPLIES, SYSTEM, GrantManager, RoleManager, Target
from computeapi.backends.identity.local.stored_credentials import CredentialManager
from computeapi.backends.identity.local.tokens import Login, Logins, Scope, TokenManager, is_welcome, scoped
from computeapi.backends.identity.local.trusts import TrustManager
from computeapi.backends.identity.local.users import GroupManager, UserManager
from computeapi.clock import utcnow
from computeapi.context import Context
from computeapi.db import identity as queries
from computeapi.db.engine import Store
from computeapi.errors import NotAuthenticated, NotFound


class LocalIdentity:
    """The Identity backend; its attributes manage the resources.

    Callers are cached for `cache_seconds`. Changes in this process take effect at once, those of other processes after
    that time.
    """

    def __init__(
        self,
        store: Store,
        *,
        bcrypt_cost: int,
        token_hours: float = 24,
        cache_seconds: float = 5,
        credential_key: str | None = None,
        most_tokens: int = 5000,
        most_credentials: int = 100,
        clock: Clock = utcnow,
        monotonic: Callable[[], float] = time.monotonic,
    ):
        self.store = store
        self.recent = Recent(cache_seconds, clock)
        passwords = Passwords(bcrypt_cost)
        self.domains = DomainManager(store, self.recent)
        self.projects = ProjectManager(store, self.recent)
        self.users = UserManager(store, self.recent, passwords)
        self.groups = GroupManager(store, self.recent)
        self.roles = RoleManager(store, self.recent)
        self.grants = GrantManager(store, self.recent)
        self.application_credentials = ApplicationCredentialManager(
            store, self.recent, passwords, clock, most_credentials
        )
        self.access_rules = AccessRuleManager(store, self.recent)
        self.trusts = TrustManager(store, self.recent, clock)
        self.credentials = CredentialManager(store, self.recent, credential_key)
        self.tokens = TokenManager(store, self.recent, token_hours, clock, most_tokens)
        self.logins = Logins(store, self.users, self.application_credentials, clock, Attempts(monotonic))
        self.catalog = CatalogManager(store, self.recent)
        self.regions = RegionManager(store, self.recent)
        self.services = CatalogServiceManager(store, self.recent)
        self.endpoints = EndpointManager(store, self.recent)
        self.endpoint_groups = EndpointGroupManager(store, self.recent)
        self.registered_limits = RegisteredLimitManager(store, self.recent)
        self.limits = LimitManager(store, self.recent)
        self.policies = PolicyManager(store, self.recent)
        self._memory_key = secrets.token_bytes(32)

    def authenticate(self, token: str) -> Context:
        return self.tokens.authenticate(token)

    def authenticate_password(self, user_name: str, password: str, address: str | None = None) -> Context:
        # Such clients send the password with every request, and checking it is slow on purpose.
        login = f'{len(user_name)}:{user_name}{password}'.encode()
        key = hmac.digest(self._memory_key, login, hashlib.sha256).hex()
        return self.recent.recall(key, lambda: (self._log_in(user_name, password, address), datetime.max))

    def project_exists(self, context: Context, project_id: str) -> bool:
        with self.store.read() as connection:
            return queries.PROJECTS.find(connection, id=project_id) is not None

    def place(self, project_id: str) -> DomainManager | ProjectManager:
        """The manager of a project ID, which may be a domain's: each domain also acts as a project."""
        return self.domains if self.domains.list(id=project_id) else self.projects

    def forget(self) -> None:
        """Clear the cache of callers, and forget failed logins."""
        self.recent.forget()
        self.logins.attempts.forget()

    def populate(self, admin_password: str, demo_password: str | None = None) -> None:
        """Create what every cloud starts with; anything that exists, including passwords, is kept."""
        if not any(domain.id == DEFAULT_DOMAIN for domain in self.domains.list()):
            self.domains.create(id=DEFAULT_DOMAIN, name='Default', description='The default domain')
        held = {role.name: role for role in self.roles.list(domain_id='')}
        for name in reversed(BUILT_IN):
            if name not in held:
                held[name] = self.roles.create(name, immutable=True)
                if name in IMPLIES:
                    self.roles.imply(held[name].id, held[IMPLIES[name]].id)
        for name in ('admin', 'service', 'demo'):
            if not self.projects.list(name=name, domain_id=DEFAULT_DOMAIN):
                self.projects.create(name)
        self._add_user('admin', admin_password, 'admin', 'admin', SYSTEM, Target('domain', DEFAULT_DOMAIN))
        self._add_user('demo', demo_password, 'demo', 'member')

    def _add_user(self, name: str, password: str | None, project_name: str, role_name: str, *more: Target) -> None:
        """Create a user with one role on its default project and on `more`, unless the name exists."""
        if self.users.list(name=name, domain_id=DEFAULT_DOMAIN):
            return
        [project] = self.projects.list(name=project_name, domain_id=DEFAULT_DOMAIN)
        [role] = self.roles.list(name=role_name, domain_id='')
        user = self.users.create(name, password=password, default_project_id=project.id)
        for target in (Target('project', project.id), *more):
            self.grants.add(user.id, target, role.id)

    def _log_in(self, user_name: str, password: str, address: str | None) -> Context:
        return self._context(self.logins.with_password(_in_default_domain(user_name), password, address))

    def acting_as(self, user_name: str, project_name: str | None = None) -> Context:
        """The context of a user of the default domain in a project, or in its default one, for privileged callers that
        may act as anybody; NotFound, or NotAuthenticated if the user is disabled or has no role there."""
        with self.store.read() as connection:
            user = queries.find_referenced(connection, queries.USERS, _in_default_domain(user_name))
            welcome = is_welcome(connection, user)
        if user is None:
            raise NotFound(f'There is no user {user_name}.')
        if not welcome:
            raise NotAuthenticated()
        scope = project_name and {'project': _in_default_domain(project_name)}
        return self._context(Login(user, ()), scope or None)

    def _context(self, login: Login, scope: Scope | None = None) -> Context:
        with self.store.read() as connection:
            target, held = scoped(connection, login, scope)
            project = queries.PROJECTS.find(connection, id=target.id) if target else None
        roles = frozenset(role.name.lower() for role in held)
        return Context(
            user_id=login.user.id,
            user_name=login.user.name,
            user_domain_id=login.user.domain_id,
            project_id=project.id if project else None,
            project_name=project.name if project else None,
            project_domain_id=project.domain_id if project else None,
            roles=roles,
            is_admin='admin' in roles,
        )


def _in_default_domain(name: str) -> dict[str, Any]:
    return {'name': name, 'domain': {'id': DEFAULT_DOMAIN}}
