"""Identity by a Keystone."""

from typing import Any
from urllib.parse import quote

from keystoneauth1.access import create
from keystoneauth1.identity.v3 import Password
from oslo_config import cfg

from computeapi.backends.neighbour import NeighbourService, Refusals
from computeapi.context import Context, Permission
from computeapi.errors import Forbidden, NotAuthenticated, NotFound

ITSELF = Context().elevated()
"""A context to act as this service itself."""
DEFAULT_DOMAIN = 'default'
MAX_TOKEN_LENGTH = 8192
"""The longest token that fits into a header."""


class KeystoneIdentity:
    """See `computeapi.backends.identity.Identity`. Keystone itself limits login attempts."""

    def __init__(self, conf: cfg.ConfigOpts):
        self.service = NeighbourService(conf, 'Keystone', 'keystone', 'identity', 3)

    def authenticate(self, token: str) -> Context:
        if not 0 < len(token) <= MAX_TOKEN_LENGTH or not token.isascii() or not token.isprintable():
            raise NotAuthenticated()
        refusals = dict.fromkeys((400, 404), lambda words: NotAuthenticated())
        with self.service.translating_errors(ITSELF, refusals):
            found = self.service.adapter(ITSELF).get('/auth/tokens', headers={'X-Subject-Token': token})
        return context_of(create(resp=found, auth_token=token))

    def authenticate_password(self, user_name: str, password: str, address: str | None = None) -> Context:
        refusals = dict.fromkeys((400, 401, 403), lambda words: NotAuthenticated())
        with self.service.translating_errors(ITSELF, refusals):
            url = self.service.adapter(ITSELF).get_endpoint() or ''
            # Without a scope, the token is for the user's default project, if it has one.
            login = Password(url, username=user_name, password=password, user_domain_id=DEFAULT_DOMAIN)
            return context_of(login.get_access(self.service.session))

    def project_exists(self, context: Context, project_id: str) -> bool:
        if project_id in ('', '.', '..'):
            return False
        refusals: Refusals = {401: lambda words: NotAuthenticated(), 403: Forbidden, 404: NotFound}
        try:
            with self.service.translating_errors(context, refusals):
                self.service.adapter(context).get(f'/projects/{quote(project_id, safe="")}')
        except NotFound:
            return False
        except (NotAuthenticated, Forbidden):
            return True
        return True


def context_of(access: Any) -> Context:
    """The caller that a token was issued to. is_admin is only a default: policies decide who is an administrator."""
    roles = frozenset(role.lower() for role in access.role_names)
    return Context(
        user_id=access.user_id,
        user_name=access.username,
        user_domain_id=access.user_domain_id,
        project_id=access.project_id,
        project_name=access.project_name,
        project_domain_id=access.project_domain_id,
        system_scope='all' if access.system_scoped else None,
        domain_id=access.domain_id,
        roles=roles,
        is_admin='admin' in roles,
        is_admin_project=access.is_admin_project,
        auth_token=access.auth_token,
        permissions=_permissions(access),
    )


def _permissions(access: Any) -> tuple[Permission, ...] | None:
    """The access rules of the application credential that the token was issued for, if it has any."""
    rules = access.application_credential_access_rules
    return None if rules is None else tuple(Permission(each['service'], each['method'], each['path']) for each in rules)
