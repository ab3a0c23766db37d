"""What the built-in services have in common: an app that finds its caller, and where it stands."""

import re
from collections.abc import Callable, Iterable, Mapping
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
"""From a token to the caller; NotAuthenticated."""
Claims = ClaimedKeys[Any] | None
"""Where Idempotency-Keys are known, if they are looked at."""


class ServiceController(Controller):
    """A resource of a built-in service: it reads the parameters of its queries by itself."""

    parameters = ABSENT


class ServiceApp(App):
    """The API of a built-in service, which finds its callers by their tokens.

    Who asks, and whether it may, counts before what it says. A body is read when the operation takes one, whatever
    media type it is said to be.  statuses: what differs from the statuses of compute's errors.  names: what errors are
    called, by status.  service_types: what clients call the service.
    """

    service_types: tuple[str, ...] = ()
    project: re.Pattern[str] | None = None
    statuses: faults.Statuses = ((errors.OverQuota, 413),)
    names: Mapping[int, str] = faults.NAMES

    def __init__(self, controllers: Iterable[Controller], authenticate: Authenticate):
        super().__init__(controllers, RoleRules())
        self.authenticate = authenticate

    def answer(self, req: Request, endpoint: Endpoint, parameters: dict[str, Any]) -> webob.Response:
        """Find the caller, then run the operation; any Error may come out of it."""
        # A client may send the token that has just expired while it asks for the next.
        anonymous = all(each.policy is ANYBODY for each in endpoint.operations)
        caller = Context() if anonymous else faults.repeated(lambda: self.caller(req))
        req.environ[CONTEXT] = replace(caller, request_id=req.environ.get(REQUEST_ID))
        require(any(req.allows(each.policy) for each in endpoint.operations if each.policy))
        req.query = req.raw_query()
        body = self.document(req) if endpoint.actions else None
        return self.run(req, self.choose(req, endpoint, body), parameters, body)

    def caller(self, req: Request) -> Context:
        """Who has the token; NotAuthenticated also for an application credential that is not for this."""
        context = self.authenticate(req.headers.get('X-Auth-Token', ''))
        if not context.may_send(self.service_types, req.method, raw_path(req.environ)):
            raise errors.NotAuthenticated()
        return context

    def minding(self, claims: Claims, app: WSGIApp | None = None) -> WSGIApp:
        """This service, or the app around it, that does once what comes with an Idempotency-Key."""
        return app or self if claims is None else Idempotency(app or self, claims, self.known_caller, self.fault)

    def known_caller(self, environ: Environ) -> Context | None:
        """Who asks; None who is nobody, or need not say so, and is told as without a key."""
        try:
            return faults.repeated(lambda: self.caller(Request(environ)))
        except errors.NotAuthenticated:
            return None

    def run(self, req: Request, bound: Bound, parameters: dict[str, Any], body: Any) -> webob.Response:
        """Authorize, validate, handle, render; the handler of an action has its argument as the body."""
        operation = req.operation = bound.operation
        req.check(operation.policy)
        if operation.takes_body:
            body = body or self.document(req)
            refuse(operation.body_validator.errors(body, req.version))
            parameters['body'] = body[operation.action] if operation.action else body
        return self.bounded(req, lambda: operation.handler(self.controllers[bound.kind], req, **parameters))

    def document(self, req: Request) -> Any:
        """The JSON value in the body, which has a limit of its own where the pipeline has none."""
        req.data(MAX_DOCUMENT)
        return req.document()

    def render(self, req: Request, result: Any) -> webob.Response:
        """As for compute, but for what a handler answers in its own way; nothing is of no type."""
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
        """An error in the service's own words; unless it has others, in those of compute."""
        return json_response(status, faults.document(status, message, cls.names))


class VersionPage:
    """What a service tells anybody, whatever version they speak, about its versions: GET and HEAD of one path.

    document: made from the URL that the service stands at.
    """

    def __init__(self, service: ServiceApp, document: Callable[[str], Any], path: str = '', status: int = 200):
        self.service, self.document, self.path, self.status = service, document, path, status

    @webob.dec.wsgify(RequestClass=Request)
    def __call__(self, req: Request) -> webob.Response:
        if req.method not in SAFE or req.environ['PATH_INFO'].strip('/'):
            return self.service.missing(req)
        return json_response(self.status, self.document(req.application_url.removesuffix(self.path)))


def microversions(history: History, url: str, updated: str, media_type: str) -> dict[str, Any]:
    """What such a page tells about a service that has microversions."""
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


def mounted(app: WSGIApp, path: str, *pages: VersionPage) -> WSGIApp:
    """A service at its paths: the API below that of its version, and the pages about versions beside it."""
    apps: dict[str, WSGIApp] = {page.path or '/': page for page in pages}
    return RequestId(URLMap({**apps, f'{path}/+': app}), ['x-openstack-request-id'])
