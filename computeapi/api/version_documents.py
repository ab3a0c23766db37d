"""The version documents: at /, /v2 and /v2.1, and the choices at other paths.

They need no token and no database. `Versions` shows them again, to callers with a token (and a project in the URL).
"""

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote
from wsgiref.types import StartResponse, WSGIEnvironment

import orjson
import webob
from webob.request import BaseRequest

from computeapi.api.controller import ComputeController
from computeapi.api.types import OBJECT
from computeapi.errors import Error, NotFound
from computeapi.versions import MAX, MIN
from computeapi.web import faults
from computeapi.web.controller import operation
from computeapi.web.request import VENDOR_JSON, Request
from computeapi.web.schemas import lone, query

API_REFERENCE = 'http://docs.openstack.org/'
V20: dict[str, Any] = {
    'id': 'v2.0',
    'status': 'DEPRECATED',
    'version': '',
    'min_version': '',
    'updated': '2025-07-04T12:00:00Z',
}
PATHS = {'v2.0': 'v2', 'v2.1': 'v2.1'}


def v21(newest: str) -> dict[str, Any]:
    """v2.1 with this newest microversion."""
    return {
        'id': 'v2.1',
        'status': 'CURRENT',
        'version': newest,
        'min_version': str(MIN),
        'updated': '2013-07-23T11:33:21Z',
    }


def media_types(version: dict[str, Any]) -> list[dict[str, str]]:
    return [{'base': 'application/json', 'type': f'{VENDOR_JSON};version={PATHS[version["id"]][1:]}'}]


def self_link(version: dict[str, Any], base: str, rest: str = '/') -> dict[str, str]:
    return {'rel': 'self', 'href': f'{base}/{PATHS[version["id"]]}{rest}'}


def document(version: dict[str, Any], url: str) -> dict[str, Any]:
    """The long form of a version whose document is at *url*."""
    links = [
        {'rel': 'self', 'href': f'{url}/'},
        {'rel': 'describedby', 'type': 'text/html', 'href': API_REFERENCE},
    ]
    return {'version': version | {'links': links, 'media-types': media_types(version)}}


def listing(base: str, newest: str) -> dict[str, Any]:
    """The document at /."""
    return {'versions': [version | {'links': [self_link(version, base)]} for version in (V20, v21(newest))]}


def choices(base: str, path: str, newest: str) -> dict[str, Any]:
    """The versions of the API that a path without a version may be meant for."""
    return {
        'choices': [
            {
                'id': version['id'],
                'status': version['status'],
                'links': [self_link(version, base, path)],
                'media-types': media_types(version),
            }
            for version in (V20, v21(newest))
        ]
    }


def answer(body: dict[str, Any], status: int = 200) -> webob.Response:
    return webob.Response(body=orjson.dumps(body), status=status, content_type='application/json')


class VersionApp:
    """A WSGI app that answers requests of a class; it does less work per request than webob's wsgify."""

    request_class: type[BaseRequest] = webob.Request

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        return self.respond(self.request_class(environ))(environ, start_response)

    def respond(self, req: Any) -> webob.Response:
        raise NotImplementedError


class VersionChoices(VersionApp):
    """/: the versions; 300 with the choices for any other path, whatever the method."""

    def __init__(self, link_prefix: str | None, newest: str):
        self.link_prefix, self.newest = (link_prefix or '').rstrip('/'), newest

    def respond(self, req: webob.Request) -> webob.Response:
        base = (self.link_prefix or req.host_url) + req.script_name
        # In the original encoding, because it need not be valid text.
        path = quote(req.environ['PATH_INFO'], encoding='latin-1')
        if path in ('', '/'):
            return answer(listing(base, self.newest))
        return answer(choices(base, path.rstrip('/'), self.newest), 300)


class VersionDocument(VersionApp):
    """/v2 and /v2.1: the document of that version, with or without a trailing slash, whatever the method."""

    request_class = Request

    def __init__(self, version: dict[str, Any], link_prefix: str | None):
        self.version, self.link_prefix = version, (link_prefix or '').rstrip('/')

    def respond(self, req: Request) -> webob.Response:
        try:
            req.take_version()
        except Error as error:
            return faults.of(error)
        response = answer(document(self.version, (self.link_prefix or req.host_url) + req.script_name))
        if VENDOR_JSON in req.headers.get('Accept', ''):
            response.content_type = VENDOR_JSON
        return response


ANYTHING = query({}, strict=None)
DOCUMENT = lone('version', OBJECT)


class Versions(ComputeController):
    """The versions of the API."""

    @operation('GET', '/', policy=None, query=ANYTHING, response=DOCUMENT, errors=(404,))
    def index(self, req: Request) -> dict[str, Any]:
        """Show the version of this endpoint."""
        return self.describe(req, V20 if req.legacy else self.newest)

    @operation('GET', '/versions/{id}', policy=None, query=ANYTHING, response=DOCUMENT)
    def show(self, req: Request, id: str) -> dict[str, Any]:
        """Show one version; below /v2, only itself."""
        if req.legacy:
            return self.describe(req, V20)
        found = {version['id']: version for version in (V20, self.newest)}.get(id)
        if found is None:
            raise NotFound()
        return self.describe(req, found)

    @property
    def newest(self) -> dict[str, Any]:
        """v2.1 as it is offered to clients."""
        return v21(self.cloud.conf.api.max_microversion or str(MAX))

    def describe(self, req: Request, version: dict[str, Any]) -> dict[str, Any]:
        return document(version, req.link_prefix + req.script_name)
