"""Common parts of the built-in services: the app that authenticates callers, version pages and mounting."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson
import webob
import webob.dec

from computeapi import errors
from computeapi.context import Context
from computeapi.standalone.access import ANYBODY, RoleRules, require
from computeapi.standalone.schema import refuse
from computeapi.versions import ABSENT, History
from computeapi.web import faults
from computeapi.web.app import SAFE, App
from computeapi.web.auth import raw_path
from computeapi.web.controller import Controller
from computeapi.web.filters import Environ, RequestId, URLMap, WSGIApp
from computeapi.web.idempotency import ClaimedKeys, Idempotency
from computeapi.web.request import CONTEXT, REQUEST_ID, Request
from computeapi.web.routing import Bound, Endpoint

MAX_DOCUMENT = 1024 * 1024
"""The longest JSON body, in bytes, that is read into memory."""

Authenticate = Callable[[str], Context]
"""Returns the caller for a token; raises NotAuthenticated."""
Claims = ClaimedKeys[Any] | None
"""The store of Idempotency-Keys; None: the header is ignored."""


class ServiceController(Controller):
    """A resource of a built-in service; its handlers parse query parameters themselves."""

    parameters = ABSENT


class ServiceApp(App):
    """The API of a built-in service, which authenticates callers by their tokens.

    Authentication and authorization come before validation. If the operation takes a body, it is read whatever its
    media type.  statuses: overrides of the statuses of compute's errors.  names: names of errors, by status.
    service_types: the service types that clients know.  on_system: whether tokens for the system are accepted.
    """

    service_types: tuple[str, ...] = ()
    on_system = True
    project: re.Pattern[str] | None = None
    statuses: faults.Statuses = ((errors.OverQuota, 413),)
    names: Mapping[int, str] = faults.FAULT_NAMES

    def __init__(self, controllers: Iterable[Controller], authenticate: Authenticate):
        super().__init__(controllers, RoleRules(self.on_system))
        self.authenticate = authenticate

    def answer(self, req: Request, endpoint: Endpoint, parameters: dict[str, Any]) -> webob.Response:
        """Find the caller, then run the operation; may raise any Error."""
        # Anonymous operations ignore the token: a client may send an expired one while it requests the next.
        anonymous = all(each.policy is ANYBODY for each in endpoint.operations)
        caller = Context() if anonymous else faults.repeated(lambda: self.caller(req))
        req.environ[CONTEXT] = replace(caller, request_id=req.environ.get(REQUEST_ID))
        require(any(req.allows(each.policy) for each in endpoint.operations if each.policy))
        req.query = req.raw_query()
        body = self.document(req) if endpoint.actions else None
        return self.run(req, self.choose(req, endpoint, body), parameters, body)

    def caller(self, req: Request) -> Context:
        """The owner of the token. Raises NotAuthenticated, also if an application credential does not cover the
        request."""
        context = self.authenticate(req.headers.get('X-Auth-Token', ''))
        if not context.may_send(self.service_types, req.method, raw_path(req.environ)):
            raise errors.NotAuthenticated()
        return context

    def minding(self, claims: Claims, app: WSGIApp | None = None) -> WSGIApp:
        """Wraps the service, or the app around it, so that a request with an Idempotency-Key is carried out once."""
        return app or self if claims is None else Idempotency(app or self, claims, self.known_caller, self.fault)

    def known_caller(self, environ: Environ) -> Context | None:
        """The caller; None if the request has no valid token, in which case its Idempotency-Key is ignored."""
        try:
            return faults.repeated(lambda: self.caller(Request(environ)))
        except errors.NotAuthenticated:
            return None

    def run(self, req: Request, bound: Bound, parameters: dict[str, Any], body: Any) -> webob.Response:
        """Authorize, validate, handle and render. The handler of an action gets the action's argument as the body."""
        operation = req.operation = bound.operation
        req.check(operation.policy)
        if operation.takes_body:
            body = body or self.document(req)
            refuse(operation.body_validator.errors(body, req.version))
            parameters['body'] = body[operation.action] if operation.action else body
        return self.bounded(req, lambda: operation.handler(self.controllers[bound.kind], req, **parameters))

    def document(self, req: Request) -> Any:
        """The JSON value in the body, limited to MAX_DOCUMENT because the pipeline may have no limit."""
        req.data(MAX_DOCUMENT)
        return req.document()

    def render(self, req: Request, result: Any) -> webob.Response:
        """Like compute, except that handlers may return complete responses and that 204 has no content type."""
        if isinstance(result, webob.Response):
            return result
        response = super().render(req, result)
        if response.status_code == 204:
            del response.content_type
        return response

    def missing(self, req: Request) -> webob.Response:
        return self.fault(req, errors.NotFound())

    def fault(self, req: Request, error: Exception) -> webob.Response:
        message = str(error) if faults.is_expected(error) else errors.Error.text
        return faults.timed(self.refusal(req, faults.status_of(error, self.statuses), message, error), error)

    @classmethod
    def refusal(cls, req: Request, status: int, message: str, error: Exception) -> webob.Response:
        """An error in the service's own format; by default that of compute."""
        return json_response(status, faults.document(status, message, cls.names))


class VersionPage:
    """A page about the versions of a service, open to anybody and to any version: GET and HEAD of one path.

    document: builds the document from the base URL of the service.
    """

    def __init__(self, service: ServiceApp, document: Callable[[str], Any], path: str = '', status: int = 200):
        self.service, self.document, self.path, self.status = service, document, path, status

    @webob.dec.wsgify(RequestClass=Request)
    def __call__(self, req: Request) -> webob.Response:
        if req.method not in SAFE or req.environ['PATH_INFO'].strip('/'):
            return self.service.missing(req)
        return json_response(self.status, self.document(req.application_url.removesuffix(self.path)))


def microversions(history: History, url: str, updated: str, media_type: str) -> dict[str, Any]:
    """The version document of a service that has microversions."""
    version = {
        'id': f'v{history.min}',
        'status': 'CURRENT',
        'version': str(history.max),
        'min_version': str(history.min),
        'updated': updated,
        'links': [{'rel': 'self', 'href': f'{url}/v{history.min.major}/'}],
        'media-types': [{'base': 'application/json', 'type': media_type}],
    }
    return {'versions': [version]}


def json_response(status: int, document: Any) -> webob.Response:
    return webob.Response(body=orjson.dumps(document), status=status, content_type='application/json')


def mounted(
    app: WSGIApp, path: str, *pages: VersionPage, request_ids: Sequence[str] = ('x-openstack-request-id',)
) -> WSGIApp:
    """The service at its paths: the API below the path of its version, and the version pages next to it.

    request_ids: the headers in which answers have the ID of the request.
    """
    apps: dict[str, WSGIApp] = {page.path or '/': page for page in pages}
    return RequestId(URLMap({**apps, f'{path}/+': app}), request_ids)
