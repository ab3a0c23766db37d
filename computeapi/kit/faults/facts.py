"""What rules need to know about a request, each looked up when it is first needed."""

import functools
import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson

from computeapi.backends.hypervisor.behaviour import ServerCondition
from computeapi.db import servers
from computeapi.errors import Error
from computeapi.kit.operations import Addressed, addressed
from computeapi.main import Service
from computeapi.pipeline import offered
from computeapi.versions import APIVersionRequest
from computeapi.web.filters import SLASHES, Environ, Microversion, WSGIApp

MAX_DOCUMENT_BYTES = 1024 * 1024
"""The longest body that is examined, in bytes."""
ACTIONS = '/action'


class RequestFacts:
    """A request to a cloud. `service` looks up what the request itself does not say."""

    def __init__(self, environ: Environ, service: Callable[[], Service]):
        self.environ, self._service = environ, service
        self.method: str = environ['REQUEST_METHOD']

    @functools.cached_property
    def path(self) -> str:
        return SLASHES.sub('/', self.environ.get('SCRIPT_NAME', '') + self.environ.get('PATH_INFO', ''))

    @functools.cached_property
    def address(self) -> Addressed:
        """Without the action, which is in the body."""
        return addressed(self.method, self.path)

    @property
    def service(self) -> str | None:
        return self.address.service

    @functools.cached_property
    def operation(self) -> str | None:
        """The name of the operation, with the action if it is one."""
        name = self.address.operation
        if name is None or not name.endswith(ACTIONS):
            return name
        return addressed(self.method, self.path, self.document).operation

    @functools.cached_property
    def document(self) -> Any:
        """The parsed JSON of the body, which the app can still read; None if there is none, or it is too long."""
        try:
            return orjson.loads(body_of(self.environ) or b'null')
        except ValueError:
            return None

    def is_between(self, low: APIVersionRequest, high: APIVersionRequest) -> bool:
        """Whether the request is for compute, with a microversion in this range."""
        if self.service != 'compute' or self.address.root != '/v2.1':
            return False
        version = Microversion(nothing, history=offered(self._service().conf)).requested(self.environ)
        return isinstance(version, APIVersionRequest) and version.matches(low, high)

    @functools.cached_property
    def project(self) -> frozenset[str | None]:
        """The ID and the name of the caller's project, if the token is valid."""
        try:
            caller = self._service().authenticate(self.environ.get('HTTP_X_AUTH_TOKEN', ''))
        except Error:
            return frozenset()
        return frozenset({caller.project_id, caller.project_name})

    def is_about(self, condition: ServerCondition) -> bool:
        """Whether the request names or creates such a server, whichever project the server belongs to."""
        if self.service != 'compute':
            return False
        if self.address.operation == 'POST /servers':
            server = self.document.get('server') if isinstance(self.document, dict) else None
            wanted = server if isinstance(server, dict) else {}
            name, metadata = wanted.get('name'), wanted.get('metadata') or {}
            if condition.host or not isinstance(name, str) or not isinstance(metadata, dict):
                return False
            return condition.fits(name, metadata)
        found = self._service().store.query(servers.get, self.server_id) if self.server_id else None
        return found is not None and replace(condition, project=None).holds(found)

    @property
    def server_id(self) -> str | None:
        """The server ID in the path, if there is one."""
        _, first, second, *_ = [*self.address.path.split('/'), '', '']
        return second if first == 'servers' and self.service == 'compute' else None


def body_of(environ: Environ) -> bytes:
    """The body of a request, which the app can still read; empty if it is too long."""
    stream, length = environ.get('wsgi.input'), environ.get('CONTENT_LENGTH') or '0'
    if isinstance(stream, io.BytesIO):
        return stream.getvalue()
    if stream is None or not length.isdecimal() or not 0 < int(length) <= MAX_DOCUMENT_BYTES:
        return b''
    body: bytes = stream.read(int(length))
    environ['wsgi.input'] = io.BytesIO(body)
    return body


nothing: WSGIApp = lambda environ, start_response: ()  # noqa: E731
