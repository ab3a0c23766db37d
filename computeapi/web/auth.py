"""Authentication: the filters `authtoken` (whom the token belongs to) and `keystonecontext` (what the caller may do).

All four strategies have the same result: a `Context` in the WSGI environment.
"""

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import orjson
import webob

from computeapi import errors
from computeapi.context import Context, acting_for
from computeapi.web import faults
from computeapi.web.policy import Policies
from computeapi.web.request import CONTEXT, GLOBAL_REQUEST_ID, REQUEST_ID

UNAUTHORIZED = orjson.dumps(
    {
        'error': {
            'code': 401,
            'title': 'Unauthorized',
            'message': 'The request you have made requires authentication.',
        }
    }
)
TOKEN_KEY = 'HTTP_X_AUTH_TOKEN'
"""The WSGI name of the header X-Auth-Token."""
SERVICE_TOKEN_KEY = 'HTTP_X_SERVICE_TOKEN'
"""The WSGI name of the header X-Service-Token."""
SERVICE_TYPES = ('compute', 'computev21')
TOKEN_INFO = 'keystone.token_info'
"""The key under which keystonemiddleware leaves Keystone's answer. For a request with a service token, the header about
the system scope is that of the service."""
MEMBER_ROLES = frozenset({'member', 'reader'})
ADMIN_ROLES = frozenset({'admin', 'manager', 'member', 'reader'})


def unauthorized(challenge: str) -> webob.Response:
    """401 as keystonemiddleware sends it, before routing and the version are checked."""
    response = webob.Response(body=UNAUTHORIZED, status=401, content_type='application/json')
    response.headers['WWW-Authenticate'] = challenge
    return response


class Authenticator:
    """A filter that identifies the caller, or answers 401.

    identify: turns a request into a Context; NotAuthenticated.  challenge: the WWW-Authenticate header,
    with {host} for the URL that the client used.
    """

    def __init__(self, app: Callable[..., Any], identify: Callable[[webob.Request], Context], challenge: str):
        self.app, self.identify, self.challenge = app, identify, challenge

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        req = webob.Request(environ)
        try:
            environ[CONTEXT] = faults.repeated(lambda: self.identify(req))
        except errors.NotAuthenticated as error:
            refusal = faults.timed(unauthorized(self.challenge.format(host=req.host_url)), error)
            return refusal(environ, start_response)
        return self.app(environ, start_response)


def by_noauth(req: webob.Request) -> Context:
    """auth_strategy none: the caller that the token names; admin:admin without one."""
    return noauth_context(req.environ.get(TOKEN_KEY) or 'admin:admin')


def noauth_context(token: str) -> Context:
    """The caller that `user:project:role,role` names; project and roles are optional.

    The project defaults to the name of the user. By default, the user `admin` has the roles of an administrator, any
    other those of a member.
    """
    user, _, rest = token.partition(':')
    project, _, listed = rest.partition(':')
    roles = frozenset(listed.split(',')) if listed else ADMIN_ROLES if user == 'admin' else MEMBER_ROLES
    return Context(user_id=user, project_id=project or user, roles=roles, user_name=user, auth_token=token)


def by_password(authenticate: Callable[[str, str, str | None], Context]) -> Callable[[webob.Request], Context]:
    """auth_strategy http_basic: a user of the built-in identity service, in its default project."""

    def identify(req: webob.Request) -> Context:
        scheme, _, encoded = req.headers.get('Authorization', '').partition(' ')
        if scheme.lower() != 'basic':
            raise errors.NotAuthenticated()
        try:
            user, _, password = base64.b64decode(encoded, validate=True).decode().partition(':')
        except (binascii.Error, UnicodeDecodeError):
            raise errors.NotAuthenticated() from None
        return authenticate(user, password, req.remote_addr)

    return identify


def by_token(authenticate: Callable[[str], Context]) -> Callable[[webob.Request], Context]:
    """auth_strategy local: a token of the built-in identity service, and that of the service that sends it, if any."""

    def identify(req: webob.Request) -> Context:
        token = req.environ.get(TOKEN_KEY)
        if not token:
            raise errors.NotAuthenticated()
        context = authenticate(token)
        if not context.may_send(SERVICE_TYPES, req.method, raw_path(req.environ)):
            raise errors.NotAuthenticated()
        service_token = req.environ.get(SERVICE_TOKEN_KEY)
        return replace(context, service_roles=authenticate(service_token).roles) if service_token else context

    return identify


def raw_path(environ: Mapping[str, Any]) -> str:
    """The path that the client requested, even if its bytes are not valid text."""
    return str(environ['SCRIPT_NAME'] + environ['PATH_INFO'])


def by_keystone_headers(req: webob.Request) -> Context:
    """auth_strategy keystone: the headers set by keystonemiddleware, the filter before this one.

    The middleware removes these headers from the client's request and sets its own.
    """
    get = req.headers.get
    if 'Invalid' in (get('X-Identity-Status'), get('X-Service-Identity-Status')) or not get('X-User-Id'):
        raise errors.NotAuthenticated()
    return Context(
        user_id=get('X-User-Id'),
        project_id=get('X-Project-Id'),
        roles=_listed(get('X-Roles')),
        user_name=get('X-User-Name'),
        project_name=get('X-Project-Name'),
        user_domain_id=get('X-User-Domain-Id'),
        project_domain_id=get('X-Project-Domain-Id'),
        system_scope='all' if 'system' in req.environ[TOKEN_INFO]['token'] else None,
        domain_id=get('X-Domain-Id'),
        is_admin_project=get('X-Is-Admin-Project') != 'False',
        service_roles=_listed(get('X-Service-Roles')),
        # The middleware accepts the token under another name, too; without a token, requests to other services would be
        # sent as this service.
        auth_token=(get('X-Auth-Token') or get('X-Storage-Token') or '').strip(),
    )


def _listed(roles: str | None) -> frozenset[str]:
    return frozenset(role.strip().lower() for role in (roles or '').split(',') if role.strip())


class KeystoneContext:
    """keystonecontext: adds to the Context whether the caller is an administrator, by policy, and the request IDs."""

    def __init__(self, app: Callable[..., Any], policies: Policies):
        self.app, self.policies = app, policies

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        context = environ[CONTEXT]
        context = environ[CONTEXT] = context.of_request(
            self.policies.is_admin(context), environ.get(REQUEST_ID), environ.get(GLOBAL_REQUEST_ID)
        )
        with acting_for(context):
            return self.app(environ, start_response)
