"""The port at which `serve` answers guests, as the metadata service does."""

import socket
from collections.abc import Callable, Iterable
from typing import Any

from oslo_config import cfg

from computeapi.serve.directory import Directory
from computeapi.web.filters import WSGIApp

SECRET = 'metadata-secret'


class ByPort:
    """Two apps in one server: requests that come in at the socket are the guests'."""

    def __init__(self, app: WSGIApp, guests: WSGIApp, listening: socket.socket):
        self.app, self.guests, self.port = app, guests, str(listening.getsockname()[1])

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        app = self.guests if environ['SERVER_PORT'] == self.port else self.app
        return app(environ, start_response)


def share_secret(conf: cfg.ConfigOpts, directory: Directory) -> None:
    """What a proxy before the guests signs with, unless conf names it, is kept in the directory."""
    conf.set_default('metadata_proxy_shared_secret', directory.secret(SECRET), 'neutron')
