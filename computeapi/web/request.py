"""One request to the API, as controllers see it."""

import functools
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple
from urllib.parse import quote

import orjson
from webob.exc import HTTPRequestEntityTooLarge
from webob.request import BaseRequest

from computeapi.context import Context
from computeapi.errors import Error, Invalid, TooLarge
from computeapi.versions import DEFAULT_API_VERSION, LEGACY, APIVersionRequest
from computeapi.web.contract import JSON, Operation, Policy
from computeapi.web.faults import UnsupportedMediaType
from computeapi.web.policy import Rules

VENDOR_JSON = 'application/vnd.openstack.compute+json'
MEDIA_TYPES = frozenset({'', JSON, VENDOR_JSON, 'text/plain'})
DEEPEST = 50
"""The maximum nesting depth of objects and lists in a body."""
PIECE = 16 * 1024
"""The number of bytes read at a time from a body of unknown length."""
SAFE = "/~!$&'()*+,;=:@"
"""The characters that are not escaped in paths of URLs."""

# Keys of the WSGI environment that filters set for the app; the last one: the request came through a proxy.
CONTEXT = 'computeapi.context'
LEGACY_V2 = 'computeapi.legacy_v2'
VERSION = 'computeapi.version'
REQUEST_ID = 'openstack.request_id'
GLOBAL_REQUEST_ID = 'openstack.global_request_id'
PASSED_ON = 'computeapi.passed_on'

# Keys that the app sets for filters: whether it has taken the version, and the operation.
VERSION_TAKEN = 'computeapi.version_taken'
OPERATION = 'computeapi.operation'


NOBODY = Context()


def caller_of(environ: Mapping[str, Any]) -> dict[str, Any]:
    """The caller, as far as it is known yet, for the log."""
    context = environ.get(CONTEXT, NOBODY)
    ids = {'request_id': environ.get(REQUEST_ID), 'global_request_id': environ.get(GLOBAL_REQUEST_ID)}
    return ids | {'user_id': context.user_id, 'project_id': context.project_id}


class Reply(NamedTuple):
    """The result of a handler that returns more than a body."""

    body: Any = None
    headers: Mapping[str, str] = MappingProxyType({})
    status: int | None = None


class Request(BaseRequest):
    """A request with its caller, version and operation; the app fills them in, in that order."""

    version: APIVersionRequest
    operation: Operation
    policies: Rules
    query: Mapping[str, Sequence[str]] = MappingProxyType({})
    project_in_url: str | None = None
    configured_link_prefix: str = ''

    @property
    def context(self) -> Context:
        """The caller, as the filters identified it."""
        found: Context = self.environ[CONTEXT]
        return found

    @property
    def legacy(self) -> bool:
        """Whether the request came in on /v2: older rules, no versions."""
        return bool(self.environ.get(LEGACY_V2, False))

    def take_version(self, default: APIVersionRequest = DEFAULT_API_VERSION) -> APIVersionRequest:
        """Return the version that the filter `microversion` read, or raise its error; from now on the answer has
        version headers. Without that filter, the version is *default*."""
        self.environ[VERSION_TAKEN] = True
        found: APIVersionRequest | Error = self.environ.get(VERSION, default)
        if isinstance(found, Error):
            raise found
        return found

    @property
    def behaviour(self) -> SimpleNamespace:
        """The declared behaviour of the operation at the version of the request, by name."""
        found: SimpleNamespace = self.operation.behaviours.at(LEGACY if self.legacy else self.version)
        return found

    def check_media_type(self) -> None:
        """UnsupportedMediaType for a body whose Content-Type is not JSON."""
        if self.environ.get('CONTENT_TYPE') and self.content_type.lower() not in MEDIA_TYPES:
            raise UnsupportedMediaType()

    def data(self, max_bytes: float = math.inf) -> bytes:
        """The body; Invalid if the client disconnected before its end, TooLarge if it is longer than *max_bytes*."""
        try:
            if self.content_length is None and self.is_body_readable:
                self.body = b''.join(self._pieces(max_bytes))
            if (self.content_length or 0) > max_bytes:
                raise TooLarge(f'The request body must not be longer than {max_bytes} bytes.')
            body: bytes = self.body
        except HTTPRequestEntityTooLarge as error:
            raise TooLarge(error.explanation) from None
        except OSError:
            raise Invalid('The request body is shorter than announced.') from None
        return body

    def _pieces(self, max_bytes: float) -> Iterator[bytes]:
        """A body of unknown length, to the first piece beyond *max_bytes*; the filter `sizelimit` stops it before."""
        read = 0
        while read <= max_bytes and (piece := self.body_file.read(PIECE)):
            read += len(piece)
            yield piece

    def document(self) -> Any:
        """The JSON value in the body; Invalid if there is none or it cannot be read."""
        try:
            document = orjson.loads(self.data())
        except ValueError:
            raise Invalid('Malformed request body') from None
        _check_document(document)
        return document

    def raw_query(self) -> dict[str, list[str]]:
        """The query string as {name: values}; Invalid when it is not UTF-8."""
        query: dict[str, list[str]] = {}
        if not self.query_string:
            return query
        try:
            pairs = list(self.GET.items())
        except UnicodeDecodeError:
            raise Invalid('Query string is not UTF-8 encoded') from None
        for name, value in pairs:
            if '\0' in name or '\0' in value:
                raise Invalid(f'The query parameter {name!r} must not contain NUL characters.')
            query.setdefault(name, []).append(value)
        return query

    def takes(self, name: str) -> bool:
        """Whether the operation has a query parameter of that name, at the version of the request."""
        return self.operation.query_validator.knows(name, self.version, self.legacy)

    def parameter(self, name: str, default: Any = None) -> Any:
        """The last value of a query parameter."""
        values = self.query.get(name)
        return values[-1] if values else default

    def first_parameter(self, name: str) -> str | None:
        """The first value that is not empty, which counts where a few resources ignore a repetition."""
        return next(filter(None, self.query.get(name, ())), None)

    def allows(self, policy: Policy, target: Any = None) -> bool:
        """Whether the caller passes *policy*; evaluated once per request for the caller's own project."""
        self.checked_policies.add(policy)
        if target is not None:
            return self.policies.allows(self.context, policy, target)
        if policy not in self._allowed:
            self._allowed[policy] = self.policies.allows(self.context, policy)
        return self._allowed[policy]

    @functools.cached_property
    def checked_policies(self) -> set[Policy]:
        """The rules that were checked so far."""
        return set()

    @functools.cached_property
    def _allowed(self) -> dict[Policy, bool]:
        return {}

    def check(self, policy: Policy | None, target: Any = None) -> None:
        """Forbidden unless the caller passes *policy*; None allows everybody."""
        if policy is not None:
            self.checked_policies.add(policy)
            self.policies.check(self.context, policy, target)

    # ------------------------------------------------------------------ links

    @functools.cached_property
    def endpoint(self) -> str:
        """The base URL of the API's paths, with the project if the request's URL has it."""
        return self.link_prefix + self.script_name + self._project

    @functools.cached_property
    def bookmark(self) -> str:
        """The same without a version: what `rel: bookmark` links start with."""
        return self.link_prefix + self.script_name.rpartition('/')[0] + self._project

    @functools.cached_property
    def link_prefix(self) -> str:
        """Scheme and host of links: the configured ones, or those that the client used."""
        return self.configured_link_prefix or self.host_url

    @property
    def path_url(self) -> str:
        """The requested URL without its query, even if the bytes of the path are not valid text."""
        path = self.environ['SCRIPT_NAME'] + self.environ['PATH_INFO']
        return self.host_url + quote(path, safe=SAFE, encoding='latin-1')

    @property
    def _project(self) -> str:
        return f'/{self.project_in_url}' if self.project_in_url else ''

    def links(self, collection: str, identifier: str) -> list[dict[str, str]]:
        """The self and bookmark links of one resource."""
        path = f'/{collection}/{quote(identifier)}'
        return [
            {'rel': 'self', 'href': self.endpoint + path},
            {'rel': 'bookmark', 'href': self.bookmark + path},
        ]


def target_of(subject: Any) -> dict[str, Any]:
    """The facts that a rule can compare with: the owner of the resource."""
    return {'project_id': subject.project_id, 'user_id': subject.user_id}


def _check_document(document: Any) -> None:
    """Invalid for NUL characters, which PostgreSQL cannot store in text, and for too deep nesting."""
    level = [document]
    for _ in range(DEEPEST):
        if not level:
            return
        if any(isinstance(value, str) and '\0' in value for value in level):
            raise Invalid('The request body must not contain NUL characters.')
        level = [part for value in level for part in _parts(value)]
    raise Invalid(f'The request body must not be nested deeper than {DEEPEST} levels.')


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return itertools.chain(value, value.values())
    return value if isinstance(value, list) else ()
