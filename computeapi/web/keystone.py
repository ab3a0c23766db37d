"""keystonemiddleware's filter, as this service has it."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import webob.exc
from keystoneauth1.exceptions import EndpointNotFound
from keystonemiddleware.auth_token import AuthProtocol, list_opts
from oslo_config import cfg

from computeapi.errors import NeighbourAway
from computeapi.web import faults

DEFAULTS = {'service_type': 'compute'}
"""What is otherwise than keystonemiddleware's own, unless the configuration says it."""


def options() -> list[tuple[str, list[cfg.Opt]]]:
    """keystonemiddleware's, by group, which it makes known itself, with the defaults of this service."""
    found: list[tuple[str, list[cfg.Opt]]] = list_opts()
    for _, listed in found:
        cfg.set_defaults(listed, **DEFAULTS)
    return found


class KeystoneAuthToken(AuthProtocol):  # type: ignore[misc]
    """Answers with a fault, not a page, while Keystone is away, and knows which access rules are for this service.

    around: what is to stand around each request to Keystone: functions of what the service at a URL is called, and of
    what asks it.  cfg.ConfigFileValueError for a cache whose library is not there.
    """

    def __init__(
        self, app: Any, conf: cfg.ConfigOpts, options: Mapping[str, Any], around: Iterable[Callable[..., Any]] = ()
    ):
        super().__init__(app, {**options, 'oslo_config_config': conf})
        for each in around:
            self._session.request = each(lambda url: 'Keystone', self._session.request)
        for name, value in DEFAULTS.items():
            conf.set_default(name, value, 'keystone_authtoken')
        # Else a cache in the environment of requests takes its place.
        if not self._conf.get('cache'):
            try:
                self._token_cache.initialize({})
            except ImportError as error:
                raise cfg.ConfigFileValueError(
                    f'[keystone_authtoken]memcached_servers: {error}; it comes with the extra `openstack`'
                ) from None

    def fetch_token(self, token: str, **facts: Any) -> Any:
        try:
            return super().fetch_token(token, **facts)
        except (webob.exc.HTTPServiceUnavailable, EndpointNotFound) as error:
            away = faults.of(NeighbourAway(name='Keystone'))
            raise webob.exc.HTTPServiceUnavailable(
                body=away.body, content_type=away.content_type, charset=away.charset
            ) from error
