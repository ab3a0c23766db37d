"""The building blocks of the pipeline in api-paste.ini that belong to this service: its filters, and the URL map.

The other filters are oslo.middleware's and keystonemiddleware's.
"""

import functools
import logging
import re
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from urllib.parse import quote, urlsplit

import microversion_parse

from computeapi import randomness
from computeapi.errors import DatabaseError, Error, Invalid, Unavailable
from computeapi.versions import COMPUTE, APIVersionRequest, History
from computeapi.web import faults
from computeapi.web.request import (
    GLOBAL_REQUEST_ID,
    LEGACY_V2,
    PASSED_ON,
    REQUEST_ID,
    VERSION,
    VERSION_TAKEN,
    caller_of,
)

LOG = logging.getLogger('computeapi.request')

WSGIApp = Callable[..., Iterable[bytes]]
Environ = dict[str, Any]
Headers = list[tuple[str, str]]

SERVICE = 'compute'
LEGACY_HEADER = 'X-OpenStack-Nova-API-Version'
STANDARD_HEADER = 'OpenStack-API-Version'
VERSION_HEADERS = (STANDARD_HEADER, LEGACY_HEADER)
MAX_SHOWN_LENGTH = 100
MEDIA_TYPE_VERSION = re.compile(r';\s*version=(2(?:\.\d+)?)\b')
SLASHES = re.compile('//+')
AFTER_TOKENS = re.compile(r'(?<=tokens/)[^/]+', re.IGNORECASE)
"""Matches a token in a path."""
REQUEST_ID_HEADERS = ('x-openstack-request-id', 'x-compute-request-id')


def environ_key(header: str) -> str:
    """The WSGI name of a header."""
    return 'HTTP_' + header.upper().replace('-', '_')


def close(answer: object) -> None:
    """Tell an app that no more of its answer is needed, as WSGI requires at the end."""
    if hasattr(answer, 'close'):
        answer.close()


class PasteFilter:
    """A filter in front of an app in the pipeline."""

    def __init__(self, app: WSGIApp):
        self.app = app


class PublicURL(PasteFilter):
    """Rewrites each request to the public URL of the service, whatever its headers say.

    url: a scheme, a host and optionally a port; Invalid for anything else.
    """

    REFUSED = ('HTTP_FORWARDED', *(f'HTTP_X_FORWARDED_{name}' for name in ('HOST', 'PORT', 'PREFIX', 'PROTO')))

    def __init__(self, app: WSGIApp, url: str):
        super().__init__(app)
        self.scheme, self.host, *more = urlsplit(url.rstrip('/'))
        if self.scheme not in ('http', 'https') or not self.host or any(more):
            raise Invalid(f'[api]public_url: {url} must be http or https, a host and maybe a port')

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        for name in self.REFUSED:
            if environ.pop(name, None) is not None:
                environ[PASSED_ON] = True
        environ.update({'wsgi.url_scheme': self.scheme, 'HTTP_HOST': self.host})
        return self.app(environ, start_response)


def at_public_url(app: WSGIApp, url: str | None) -> WSGIApp:
    """The app for clients that reach it at this URL; unchanged if there is none."""
    return PublicURL(app, url) if url else app


class RequestId:
    """compute_req_id: gives each request an ID, returned under both names that clients look for.

    If the client sends X-OpenStack-Request-ID, the ID of its operation as a whole, that one is kept, too: it goes to
    the log and to the services that this one calls.

    names: the headers in which the ID is returned.
    """

    FORM = re.compile('req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}', re.ASCII)

    def __init__(self, app: WSGIApp, names: Sequence[str] = REQUEST_ID_HEADERS):
        self.app, self.names = app, names

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        request_id = environ[REQUEST_ID] = f'req-{randomness.new_id()}'
        inbound = environ.get('HTTP_X_OPENSTACK_REQUEST_ID', '')
        environ[GLOBAL_REQUEST_ID] = inbound if self.FORM.fullmatch(inbound) else None

        def start(status: str, headers: Headers, exc_info: Any = None) -> Any:
            headers = headers + [(name, request_id) for name in self.names]
            return start_response(status, headers, exc_info)

        return self.app(environ, start)


class FaultWrap(PasteFilter):
    """faultwrap: the last resort for errors outside a handler, e.g. during authentication."""

    MESSAGE = 'The server has either erred or is incapable of performing the requested operation.'

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        try:
            return self.app(environ, start_response)
        except (DatabaseError, Unavailable) as error:
            return faults.of(error)(environ, start_response)
        except Exception:
            method = environ['REQUEST_METHOD']
            LOG.exception('Unexpected error outside a handler: %s', method, extra=caller_of(environ))
            return faults.fault(500, self.MESSAGE)(environ, start_response)


FOR = re.compile(r'(?:^|;)\s*for="?(\[[^]]*]|[^;":]*)', re.IGNORECASE)
"""The address in an element of the header Forwarded, without the port."""


def seen_by_proxy(app: WSGIApp) -> WSGIApp:
    """Sets REMOTE_ADDR to the client's address as the nearest proxy saw it, which is the last one in its header: the
    client itself may have sent those before it."""

    def respond(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        *_, last = environ.get('HTTP_X_FORWARDED_FOR', '').split(',')
        if not last and (found := FOR.search(environ.get('HTTP_FORWARDED', '').rpartition(',')[2])):
            last = found[1]
        if last.strip():
            environ['REMOTE_ADDR'] = last.strip()
        answered: Iterable[bytes] = app(environ, start_response)
        return answered

    return respond


class RequestLog(PasteFilter):
    """request_log: one line per request, without query values or headers, which may hold secrets."""

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        if not LOG.isEnabledFor(logging.INFO):
            return self.app(environ, start_response)
        started = time.monotonic()

        def start(status: str, headers: Headers, exc_info: Any = None) -> Any:
            values = dict(headers)
            LOG.info(
                '%s "%s %s" status: %s len: %s microversion: %s time: %.6f',
                environ.get('REMOTE_ADDR', '-'),
                environ['REQUEST_METHOD'],
                _path(environ),
                status.partition(' ')[0],
                values.get('Content-Length', '-'),
                values.get(LEGACY_HEADER, '-'),
                time.monotonic() - started,
                extra=caller_of(environ),
            )
            return start_response(status, headers, exc_info)

        return self.app(environ, start)


def _path(environ: Environ) -> str:
    """The path in its encoded form, so that it cannot forge a line of the log, and without tokens."""
    path = AFTER_TOKENS.sub('{id}', environ.get('SCRIPT_NAME', '') + environ.get('PATH_INFO', ''))
    return quote(path, safe='/{}', encoding='latin-1', errors='replace')


class LegacyV2Compatible(PasteFilter):
    """legacy_v2_compatible: marks the requests that come in on /v2 and /v1.1.

    Their version headers are dropped unread, and their answers carry none.
    """

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        for name in VERSION_HEADERS:
            environ.pop(environ_key(name), None)
        environ[LEGACY_V2] = True
        return self.app(environ, start_response)


# ------------------------------------------------------------------ versions


class Microversion:
    """microversion: reads the version headers into an APIVersionRequest, and adds the version to the answer.

    An error is stored in place of the version, because errors in the path take precedence: the app takes either when it
    is due, and its answers before that have no version headers.

    legacy_header: the name of the version header before the common one was introduced, if the service had one.
    """

    def __init__(
        self,
        app: WSGIApp,
        service: str = SERVICE,
        history: History = COMPUTE,
        legacy_header: str | None = LEGACY_HEADER,
    ):
        self.app, self.service, self.history = app, service, history
        self.legacy_headers = (legacy_header,) if legacy_header else ()
        self.names = (STANDARD_HEADER, *self.legacy_headers)
        self.keys = [environ_key(name) for name in self.names]
        # Clients send the same few headers again and again.
        self._read = functools.lru_cache(maxsize=1024)(self.read)

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        found = environ[VERSION] = self.requested(environ)
        version = getattr(found, 'version', None) if isinstance(found, Error) else found

        def start(status: str, headers: Headers, exc_info: Any = None) -> Any:
            if version is not None and VERSION_TAKEN in environ:
                headers = [*headers, *_stamp(version, self.service, self.legacy_headers)]
            return start_response(status, headers, exc_info)

        return self.app(environ, start)

    def requested(self, environ: Environ) -> APIVersionRequest | Error:
        """The version that the headers request, or the default; Invalid and NotAcceptable are returned, not raised."""
        sent = tuple(environ.get(key) for key in self.keys)
        if sent.count(None) == len(sent):
            return self.history.default
        short = sum(len(value) for value in sent if value) <= MAX_SHOWN_LENGTH
        try:
            return (self._read if short else self.read)(sent)
        except Error as error:
            return error

    def read(self, sent: tuple[str | None, ...]) -> APIVersionRequest:
        """Parse the values of the headers, in the order of their names; None for one that was not sent."""
        headers = {name: value for name, value in zip(self.names, sent, strict=True) if value is not None}
        text = microversion_parse.get_version(headers, service_type=self.service, legacy_headers=self.legacy_headers)
        return self.history.default if text is None else _read(text, self.history)


@functools.lru_cache(maxsize=1024)
def _stamp(version: APIVersionRequest, service: str, legacy_headers: tuple[str, ...]) -> Headers:
    """The headers of an answer of that version."""
    legacy = [(name, str(version)) for name in legacy_headers]
    vary = [('Vary', name) for name in (STANDARD_HEADER, *legacy_headers)]
    return [(STANDARD_HEADER, f'{service} {version}'), *legacy, *vary]


def _read(text: str, history: History) -> APIVersionRequest:
    if text == 'latest':
        return history.max
    try:
        version = APIVersionRequest.parse(text)
    except ValueError:
        raise Invalid(
            f'API Version String {text[:MAX_SHOWN_LENGTH]} is of invalid format. Must be of format MajorNum.MinorNum.'
        ) from None
    if not version.matches(history.min, history.max):
        raise faults.NotAcceptable(version, history.min, history.max)
    return version


# ------------------------------------------------------------------ URLs


class URLMap:
    """Selects the app by path; repeated slashes are collapsed.

    Keys are prefixes; `/v2.1/+` is the app for paths below /v2.1, as opposed to /v2.1 itself. If the path has no
    version, a version in Accept or Content-Type (;version=2.1) selects the version document.
    """

    def __init__(self, apps: dict[str, WSGIApp]):
        self.default = apps.pop('/')
        self.below = {path[:-2]: app for path, app in apps.items() if path.endswith('/+')}
        self.exact = {path: app for path, app in apps.items() if not path.endswith('/+')}
        # By the first segment of a path, the longest prefix first.
        self.prefixes: dict[str, list[str]] = {}
        for prefix in sorted(self.exact | self.below, key=len, reverse=True):
            self.prefixes.setdefault(_first_segment(prefix), []).append(prefix)

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = environ['PATH_INFO'] = SLASHES.sub('/', environ.get('PATH_INFO', ''))
        for prefix in self.prefixes.get(_first_segment(path), ()):
            if path == prefix or path.startswith(prefix + '/'):
                rest = path[len(prefix) :]
                app = self.below.get(prefix) if len(rest) > 1 else None
                app = app or self.exact.get(prefix) or self.below[prefix]
                environ['SCRIPT_NAME'] = environ.get('SCRIPT_NAME', '') + prefix
                environ['PATH_INFO'] = rest
                return app(environ, start_response)
        app = self.by_media_type(environ) or self.default
        return app(environ, start_response)

    def by_media_type(self, environ: Environ) -> WSGIApp | None:
        for name in ('HTTP_ACCEPT', 'CONTENT_TYPE'):
            match = MEDIA_TYPE_VERSION.search(environ.get(name) or '')
            prefix = match and f'/v{match[1]}'
            if prefix in self.exact and prefix in self.below:
                environ['SCRIPT_NAME'] = environ.get('SCRIPT_NAME', '') + prefix
                environ['PATH_INFO'] = ''
                return self.exact[prefix]
        return None


def _first_segment(path: str) -> str:
    return path.split('/', 2)[1] if path.startswith('/') else ''
