"""Counts how often clients read servers, for plans that depend on it: a filter around the app."""

from collections.abc import Callable, Iterable
from typing import Any

import orjson

from computeapi.kit.operations import addressed
from computeapi.kit.plans import Plans
from computeapi.web.filters import Environ, Headers, WSGIApp

LISTS = ('GET /servers', 'GET /servers/detail')
SHOW, DELETE = 'GET /servers/{server_id}', 'DELETE /servers/{server_id}'


class ReadServers:
    """Counts reads while there are plans."""

    def __init__(self, app: WSGIApp, plans: Plans):
        self.app, self.plans = app, plans

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        if not self.plans.all:
            return self.app(environ, start_response)
        address = addressed(environ['REQUEST_METHOD'], environ['PATH_INFO'])
        if address.service != 'compute' or address.operation is None:
            return self.app(environ, start_response)
        operation = address.operation
        if operation in LISTS:
            return self._read(environ, start_response, None)
        _, first, server_id, *_ = [*address.path.split('/'), '', '']
        if operation == SHOW:
            return self._read(environ, start_response, server_id)
        if first == 'servers' and server_id and environ['REQUEST_METHOD'] != 'GET':
            self.plans.requested(server_id, going=operation == DELETE)
        return self.app(environ, start_response)

    def _read(self, environ: Environ, start_response: Callable[..., Any], server_id: str | None) -> Iterable[bytes]:
        self.plans.wait_for_leaving(server_id)
        statuses: list[str] = []

        def start(status: str, headers: Headers, exc_info: Any = None) -> Any:
            statuses.append(status)
            return start_response(status, headers, exc_info)

        body = b''.join(self.app(environ, start))
        if statuses[-1].startswith('200'):
            self.plans.read(_ids(orjson.loads(body)))
        return [body]


def _ids(document: Any) -> list[str]:
    """The IDs of the servers in a response."""
    return [server['id'] for server in document.get('servers', [document.get('server')])]
