"""/metrics, for authorized clients."""

import hmac
from collections.abc import Callable, Iterable
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any

from oslo_config import cfg
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

from computeapi.observers.database_metrics import DatabaseMetrics
from computeapi.observers.metrics import Metrics
from computeapi.web.filters import Environ
from computeapi.web.request import PASSED_ON

OF_PROXIES = (
    PASSED_ON,
    'HTTP_FORWARDED',
    'HTTP_VIA',
    'HTTP_X_FORWARDED_FOR',
    'HTTP_X_FORWARDED_HOST',
    'HTTP_X_REAL_IP',
)
"""Headers that proxies add: the address of the request is then the proxy's."""


def metrics_app(metrics: Metrics, conf: cfg.ConfigOpts) -> 'MetricsApp':
    """The metrics of this process and of its database."""
    database_metrics = DatabaseMetrics(conf, metrics.store)
    return MetricsApp(
        lambda: metrics.exposition() + database_metrics.exposition(), conf.metrics, alone=metrics.slot is None
    )


class MetricsApp:
    """Answers 200 with the result of *exposition*, 401 or 403, or 503 if that covered only one of several processes.

    alone: whether *exposition* only covers this process. Raises cfg.ConfigFileValueError for an invalid network.
    """

    def __init__(self, exposition: Callable[[], bytes], options: cfg.ConfigOpts.GroupAttr, *, alone: bool):
        self.exposition, self.alone = exposition, alone
        self.token = f'Bearer {options.token}'.encode() if options.token else None
        self.networks = networks(options.allowed_addresses)

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        status, body = self.answer(environ)
        headers = [('Content-Type', CONTENT_TYPE_PLAIN_0_0_4), ('Content-Length', str(len(body)))]
        headers.append(('Cache-Control', 'no-store'))
        if status.startswith('401'):
            headers.append(('WWW-Authenticate', 'Bearer'))
        start_response(status, headers)
        return [] if environ['REQUEST_METHOD'] == 'HEAD' else [body]

    def answer(self, environ: Environ) -> tuple[str, bytes]:
        if self.token is not None and not hmac.compare_digest(given_by(environ), self.token):
            return '401 Unauthorized', b'The [metrics]token is required as a bearer token.\n'
        if self.token is None and not self.is_near(environ):
            return '403 Forbidden', b'Only [metrics]allowed_addresses can read it, without a proxy.\n'
        if environ.get('PATH_INFO', '') not in ('', '/', '/metrics'):
            return '404 Not Found', b'Only /metrics exists.\n'
        if environ['REQUEST_METHOD'] not in ('GET', 'HEAD'):
            return '405 Method Not Allowed', b'Only GET and HEAD are supported.\n'
        if self.alone and environ.get('wsgi.multiprocess'):
            return '503 Service Unavailable', b'There are several processes; set [metrics]directory to combine them.\n'
        return '200 OK', self.exposition()

    def is_near(self, environ: Environ) -> bool:
        """Whether the client has an allowed address."""
        if any(name in environ for name in OF_PROXIES):
            return False
        try:
            address = ip_address(environ.get('REMOTE_ADDR', ''))
        except ValueError:
            return False
        # A dual-stack socket reports 127.0.0.1 as ::ffff:127.0.0.1.
        address = getattr(address, 'ipv4_mapped', None) or address
        return any(address in network for network in self.networks)


def given_by(environ: Environ) -> bytes:
    """The Authorization header, as bytes."""
    found: str = environ.get('HTTP_AUTHORIZATION', '')
    return found.encode('latin-1', 'replace')


def networks(texts: Iterable[str]) -> list[IPv4Network | IPv6Network]:
    try:
        return [ip_network(text, strict=False) for text in texts]
    except ValueError as error:
        raise cfg.ConfigFileValueError(f'[metrics]allowed_addresses: {error}') from None
