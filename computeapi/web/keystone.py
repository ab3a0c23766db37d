"""keystonemiddleware's filter, adapted to this service."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import webob.exc
from keystoneauth1.exceptions import EndpointNotFound
from keystonemiddleware.auth_token import AuthProtocol, list_opts
from oslo_config import cfg

from computeapi.clock import parsed, utcnow
from computeapi.context import Context
from computeapi.errors import NeighbourAway
from computeapi.web import auth, faults
from computeapi.web.request import CONTEXT

DEFAULTS = {'service_type': 'compute'}
"""The defaults that differ from keystonemiddleware's; the configuration can override them."""
REMEMBERED_SECONDS = 10
MAX_REMEMBERED = 1000


def options() -> list[tuple[str, list[cfg.Opt]]]:
    """The options of keystonemiddleware, by group, with the defaults of this service; it registers them itself."""
    found: list[tuple[str, list[cfg.Opt]]] = list_opts()
    for _, listed in found:
        cfg.set_defaults(listed, **DEFAULTS)
    return found


class KeystoneAuthToken(AuthProtocol):  # type: ignore[misc]
    """Answers with a fault instead of a page while Keystone is away, and declares which access rules are for this
    service.

    challenge: see Authenticator.  around: wrap each request to Keystone; called with a function that names the service
    at a URL, and with the function that sends requests.  Raises cfg.ConfigFileValueError if the library of the
    configured cache is not installed.
    """

    def __init__(
        self,
        app: Callable[..., Any],
        conf: cfg.ConfigOpts,
        options: Mapping[str, Any],
        challenge: str,
        around: Iterable[Callable[..., Any]] = (),
    ):
        self.app = app
        super().__init__(auth.Authenticator(app, self.identify, challenge), {**options, 'oslo_config_config': conf})
        self.callers = RememberedCallers(min(REMEMBERED_SECONDS, self._conf.get('token_cache_time')))
        for each in around:
            self._session.request = each(lambda url: 'Keystone', self._session.request)
        for name, value in DEFAULTS.items():
            conf.set_default(name, value, 'keystone_authtoken')
        # If `cache` is set, the cache in the WSGI environment is used instead.
        if not self._conf.get('cache'):
            try:
                self._token_cache.initialize({})
            except ImportError as error:
                raise cfg.ConfigFileValueError(
                    f'[keystone_authtoken]memcached_servers: {error}; it comes with the extra `openstack`'
                ) from None

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        caller = self.callers.of(environ)
        if caller is None:
            return super().__call__(environ, start_response)
        environ[CONTEXT] = caller

        def start(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
            return start_response(
                status, headers + self._reject_auth_headers if status[:3] == '401' else headers, *more
            )

        return self.app(environ, start)

    def identify(self, req: webob.Request) -> Context:
        context = auth.by_keystone_headers(req)
        self.callers.remember(req.environ, context)
        return context

    def fetch_token(self, token: str, **kwargs: Any) -> Any:
        try:
            return super().fetch_token(token, **kwargs)
        except (webob.exc.HTTPServiceUnavailable, EndpointNotFound) as error:
            away = faults.of(NeighbourAway(name='Keystone'))
            raise webob.exc.HTTPServiceUnavailable(
                body=away.body, content_type=away.content_type, charset=away.charset
            ) from error


class KnownCaller(NamedTuple):
    caller: Context
    since: datetime
    until: datetime


class RememberedCallers:
    """The callers whose tokens were valid a moment ago. The middleware, whose cache is outside of the process, would
    double the time of a small request.

    A caller is not remembered if the decision of the middleware depends on more than the token: if the token is bound
    or has access rules, or if it comes with a service token, which may have expired.
    """

    def __init__(self, seconds: float):
        self.kept = timedelta(seconds=seconds)
        self.known: dict[str, KnownCaller] = {}

    def of(self, environ: Mapping[str, Any]) -> Context | None:
        found = self.known.get(environ.get(auth.TOKEN_KEY, ''))
        if found is None or auth.SERVICE_TOKEN_KEY in environ or not found.since <= utcnow() < found.until:
            return None
        return found.caller

    def remember(self, environ: Mapping[str, Any], caller: Context) -> None:
        token, written = environ[auth.TOKEN_INFO]['token'], environ.get(auth.TOKEN_KEY)
        if not written or auth.SERVICE_TOKEN_KEY in environ or is_restricted(token):
            return
        now = utcnow()
        if len(self.known) >= MAX_REMEMBERED:
            self.known = {}
        self.known[written] = KnownCaller(caller, now, min(now + self.kept, parsed(token['expires_at'])))


def is_restricted(token: Mapping[str, Any]) -> bool:
    """Whether the token is valid for some requests only."""
    credential = token.get('application_credential') or {}
    return credential.get('access_rules') is not None or 'bind' in token
