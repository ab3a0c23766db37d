"""The Paste filters of the pipeline that are this service's own; the others are oslo.middleware's."""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from urllib.parse import quote

from computeapi.web import faults
from computeapi.web.negotiation import ENVIRON_KEYS, LEGACY_HEADER
from computeapi.web.request import GLOBAL_REQUEST_ID, LEGACY_V2, LOGGED_PATH, REQUEST_ID

LOG = logging.getLogger('computeapi.request')

WSGIApp = Callable[..., Iterable[bytes]]
Environ = dict[str, Any]
Headers = list[tuple[str, str]]

REQUEST_ID_HEADERS = ('x-openstack-request-id', 'x-compute-request-id')


class RequestId:
    """compute_req_id: gives each request an id, sent back under both names that clients look for.

    An id that the client sends in X-OpenStack-Request-ID, that of what it does as a whole, is kept beside
    it: it goes to the log and to the services that this one calls.

    names: of the headers that the id is sent back in.
    """

    FORM = re.compile('req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}', re.ASCII)

    def __init__(self, app: WSGIApp, names: Sequence[str] = REQUEST_ID_HEADERS):
        self.app, self.names = app, names

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        request_id = environ[REQUEST_ID] = f'req-{uuid.uuid4()}'
        inbound = environ.get('HTTP_X_OPENSTACK_REQUEST_ID', '')
        environ[GLOBAL_REQUEST_ID] = inbound if self.FORM.fullmatch(inbound) else None

        def start(status: str, headers: Headers, exc_info: Any = None) -> Any:
            headers = headers + [(name, request_id) for name in self.names]
            return start_response(status, headers, exc_info)

        return self.app(environ, start)


class FaultWrap:
    """faultwrap: the last resort, for what goes wrong outside a handler."""

    MESSAGE = 'The server has either erred or is incapable of performing the requested operation.'

    def __init__(self, app: WSGIApp):
        self.app = app

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        try:
            return self.app(environ, start_response)
        except Exception:
            LOG.exception('Unexpected error outside a handler: %s', environ['REQUEST_METHOD'])
            return faults.fault(500, self.MESSAGE)(environ, start_response)


class RequestLog:
    """request_log: one line per request, without query values or headers, which may hold secrets."""

    def __init__(self, app: WSGIApp):
        self.app = app

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        if not LOG.isEnabledFor(logging.INFO):
            return self.app(environ, start_response)
        started = time.monotonic()

        def start(status: str, headers: Headers, exc_info: Any = None) -> Any:
            values = {name.lower(): value for name, value in headers}
            LOG.info(
                '%s "%s %s" status: %s len: %s microversion: %s time: %.6f',
                environ.get('REMOTE_ADDR', '-'),
                environ['REQUEST_METHOD'],
                _path(environ),
                status.partition(' ')[0],
                values.get('content-length', '-'),
                values.get(LEGACY_HEADER.lower(), '-'),
                time.monotonic() - started,
                extra={
                    'request_id': environ.get(REQUEST_ID, '-'),
                    'global_request_id': environ.get(GLOBAL_REQUEST_ID),
                },
            )
            return start_response(status, headers, exc_info)

        return self.app(environ, start)


def _path(environ: Environ) -> str:
    """The path as it came over the wire, so that none can forge a line of the log."""
    path = environ.get('SCRIPT_NAME', '') + environ.get(LOGGED_PATH, environ.get('PATH_INFO', ''))
    return quote(path, safe='/{}', encoding='latin-1', errors='replace')


class LegacyV2Compatible:
    """legacy_v2_compatible: marks the requests that come in on /v2 and /v1.1.

    Their version headers are dropped unread, and their answers carry none.
    """

    def __init__(self, app: WSGIApp):
        self.app = app

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        for key in ENVIRON_KEYS.values():
            environ.pop(key, None)
        environ[LEGACY_V2] = True
        return self.app(environ, start_response)
