"""The ports at which `serve` answers guests, as a metadata service."""

import hashlib
import hmac
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from oslo_config import cfg

from computeapi.api.metadata_service import ID, PROJECT, SIGNATURE
from computeapi.db import servers
from computeapi.main import Service
from computeapi.pipeline import load
from computeapi.serve.directory import Directory
from computeapi.web.filters import WSGIApp

SECRET = 'metadata-secret'
IDENTITY_HEADERS = tuple(f'HTTP_{name.upper().replace("-", "_")}' for name in (ID, PROJECT, SIGNATURE))
"""The headers that identify the server that makes a request."""


class ByPort:
    """Several apps in one server. others: by port, as text."""

    def __init__(self, app: WSGIApp, others: Mapping[str, WSGIApp]):
        self.app, self.others = app, others

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        return self.others.get(environ['SERVER_PORT'], self.app)(environ, start_response)


class GuestSockets(NamedTuple):
    """The sockets for guests: through a proxy, which signs requests, or directly from guests on this machine."""

    by_proxy: socket.socket | None = None
    directly: socket.socket | None = None

    @property
    def sockets(self) -> list[socket.socket]:
        return [each for each in self if each is not None]

    def apps(self, service: Service) -> dict[str, WSGIApp]:
        """The metadata service, by port."""
        if not self.sockets:
            return {}
        app = load(service, 'metadata')
        ways = ((self.by_proxy, app), (self.directly, GuestProxy(app, service)))
        return {str(listening.getsockname()[1]): way for listening, way in ways if listening is not None}


NOWHERE = GuestSockets()


class GuestProxy:
    """Identifies the server of requests from guests on this machine, and signs them; identity headers of the guest
    itself are dropped.

    app: the metadata service.
    """

    def __init__(self, app: WSGIApp, service: Service):
        self.app, self.service = app, service
        self.secret = service.conf.neutron.metadata_proxy_shared_secret.encode()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        headers = {name: value for name, value in environ.items() if name not in IDENTITY_HEADERS}
        return self.app(headers | self.identity_of(environ['REMOTE_ADDR']), start_response)

    def identity_of(self, address: str) -> dict[str, str]:
        server_id = self.service.hypervisor.guest_at(address)
        server = None if server_id is None else self.service.store.query(servers.get, server_id)
        if server is None:
            return {}
        signature = hmac.new(self.secret, server.uuid.encode(), hashlib.sha256).hexdigest()
        return dict(zip(IDENTITY_HEADERS, (server.uuid, server.project_id, signature), strict=True))


@contextmanager
def direct(conf: cfg.ConfigOpts) -> Iterator[socket.socket | None]:
    """The socket for guests on bridges of this machine; None if there are no bridges."""
    if conf.hypervisor.backend != 'qemu' or conf.qemu.network != 'bridge':
        yield None
        return
    with socket.create_server(('127.0.0.1', conf.qemu.metadata_port or 0), backlog=1024) as listening:
        conf.set_override('metadata_port', listening.getsockname()[1], 'qemu')
        yield listening


def share_secret(conf: cfg.ConfigOpts, directory: Directory) -> None:
    """Keep the secret with which a metadata proxy signs in the directory, unless conf has one."""
    conf.set_default('metadata_proxy_shared_secret', directory.secret(SECRET), 'neutron')
