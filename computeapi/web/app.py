"""The life cycle of a request. The order of its steps decides which error wins."""

import logging
import re
from collections.abc import Callable, Iterable
from typing import Any

import orjson
import webob
import webob.exc

from computeapi.errors import Error, Invalid, NotFound
from computeapi.versions import ABSENT
from computeapi.web import faults
from computeapi.web.contract import JSON, Operation
from computeapi.web.controller import Controller
from computeapi.web.policy import Rules
from computeapi.web.request import OPERATION, VENDOR_JSON, Reply, Request, caller_of, target_of
from computeapi.web.routing import PROJECT, Bound, Endpoint, Match, route_table

LOG = logging.getLogger(__name__)
MAX_SHOWN_LENGTH = 255
MAX_LIST_BYTES = 16 * 2**20
"""The maximum size of a list in bytes, if it is paged and has more than one item."""
SAFE = frozenset({'GET', 'HEAD'})
BODILESS = SAFE | {'DELETE'}


class App:
    """The API as a WSGI app: route, version, media type, operation, validation, policy, handler, answer.

    project: the pattern of a project ID in the URL, before the path; None if there is none.
    """

    project: re.Pattern[str] | None = PROJECT
    longest_list = MAX_LIST_BYTES

    def __init__(
        self,
        controllers: Iterable[Controller],
        policies: Rules,
        link_prefix: str | None = None,
        response_validation: str = 'ignore',
    ):
        """response_validation: how to treat an answer that its operation does not declare: ignore, warn or error."""
        self.controllers = {type(controller): controller for controller in controllers}
        self.routes = route_table(tuple(self.controllers), self.project)
        self.default_version = min(kind.history.default for kind in self.controllers)
        self.policies = policies
        self.link_prefix = (link_prefix or '').rstrip('/')
        self.response_validation = response_validation

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        answered: Iterable[bytes] = self.respond(Request(environ))(environ, start_response)
        return answered

    def respond(self, req: Request) -> webob.Response:
        """The answer to a request, whatever goes wrong."""
        match = self.find(req)
        if match is None:
            return self.missing(req)
        req.policies = self.policies
        req.project_in_url = match.project
        req.configured_link_prefix = self.link_prefix
        try:
            req.version = req.take_version(self.default_version)
            if req.environ['REQUEST_METHOD'] in SAFE:
                return faults.repeated(lambda: self.answer(req, match.endpoint, dict(match.parameters)))
            return self.answer(req, match.endpoint, match.parameters)
        except Exception as error:
            if not faults.is_expected(error):
                path = match.endpoint.path
                LOG.exception('Unexpected error in %s %s', req.method, path, extra=caller_of(req.environ))
            return self.fault(req, error)

    def find(self, req: Request) -> Match | None:
        """The endpoint of the request; None if there is no operation."""
        return self.routes.find(req.environ)

    def missing(self, req: Request) -> webob.Response:
        """The answer if there is no operation."""
        return webob.exc.HTTPNotFound()

    def fault(self, req: Request, error: Exception) -> webob.Response:
        """The answer to an error, including a bug in a handler."""
        return faults.of(error)

    def answer(self, req: Request, endpoint: Endpoint, parameters: dict[str, Any]) -> webob.Response:
        """Run the operation that the request names; raises any Error."""
        req.check_media_type()
        # The body of a GET or DELETE is ignored.
        body = req.document() if endpoint.actions or (req.method not in BODILESS and req.data()) else None
        return self.run(req, self.choose(req, endpoint, body), parameters, body)

    def choose(self, req: Request, endpoint: Endpoint, body: Any) -> Bound:
        """Select the operation of the endpoint: by the action in the body, if there are actions, and by the version."""
        bound: Bound = endpoint.choices[action_of(body, endpoint) if endpoint.actions else None].at(req.version)
        if req.project_in_url and req.project_in_url != req.context.project_id:
            raise Invalid(
                f"Malformed request URL: URL's project_id '{req.project_in_url}' doesn't match "
                f"Context's project_id '{req.context.project_id}'"
            )
        if bound is ABSENT:
            raise NotFound()
        return bound

    def run(self, req: Request, bound: Bound, parameters: dict[str, Any], body: Any) -> webob.Response:
        """Validate, authorize, handle, render: from here on, everything is specific to the operation."""
        operation, controller = bound.operation, self.controllers[bound.kind]
        self.accept(req, operation, parameters, body)
        try:
            self.authorize(req, controller, parameters)
            return self.bounded(req, lambda: operation.handler(controller, req, **parameters))
        except Error as error:
            self.validate(req, faults.status_of(error), None)
            raise

    def accept(self, req: Request, operation: Operation, parameters: dict[str, Any], body: Any) -> None:
        """Bind the request to the operation; Invalid for a body or a query that it does not accept."""
        req.operation = req.environ[OPERATION] = operation
        if operation.takes_body:
            operation.body_validator.check(body, req.version, req.legacy)
            parameters['body'] = body
        if operation.query is not ABSENT:
            req.query = operation.query_validator.check(req.raw_query(), req.version, req.legacy)

    def authorize(self, req: Request, controller: Controller, parameters: dict[str, Any]) -> None:
        """Check the operation's policy, for the subject if the path names one; the subject replaces its ID."""
        operation, subject = req.operation, controller.subject
        if subject not in parameters:
            return req.check(operation.policy, controller.target(req, parameters))
        if not operation.subject_first:
            req.check(operation.policy)
        found = parameters[subject.removesuffix('_id')] = controller.find(req, parameters.pop(subject))
        if operation.subject_first:
            req.check(operation.policy, target_of(found))

    def bounded(self, req: Request, handle: Callable[[], Any]) -> webob.Response:
        """The answer of a handler. If a page is too long, the handler runs again with a smaller limit, so that the size
        is bounded however large the items are; the link of the page leads to the rest."""
        result = handle()
        response = self.render(req, result)
        if (response.content_length or 0) <= self.longest_list or req.method != 'GET' or not req.takes('limit'):
            return response
        items = items_of(result)
        while items > 1 and (response.content_length or 0) > self.longest_list:
            fewer = max(1, items * self.longest_list // (response.content_length or 1))
            req.query = {**req.query, 'limit': [str(min(fewer, items - 1))]}
            result = handle()
            response, before, items = self.render(req, result), items, items_of(result)
            if items >= before:
                break
        return response

    def render(self, req: Request, result: Any) -> webob.Response:
        """The answer of a handler, which returns a body, or a Reply if there is more than a body."""
        reply = result if isinstance(result, Reply) else Reply(result)
        success, media_type = req.operation.answers.at(req.version)
        status = reply.status or success
        body = b'' if reply.body is None else orjson.dumps(reply.body)
        self.validate(req, status, body)
        if media_type == JSON and VENDOR_JSON in req.environ.get('HTTP_ACCEPT', ''):
            media_type = VENDOR_JSON
        headers = [('Content-Type', media_type), *reply.headers.items()]
        if status != 204:
            headers.append(('Content-Length', str(len(body))))
        return webob.Response(app_iter=[body], status=status, headerlist=headers)

    def validate(self, req: Request, status: int, body: bytes | None) -> None:
        """Compare an answer with the declaration of the operation; a difference is a bug in one of them."""
        if self.response_validation == 'ignore':
            return
        try:
            check_promises(req, status, body)
        except ValueError as error:
            if self.response_validation == 'error':
                raise
            LOG.warning('%s at %s: %s', req.operation, req.version, error)


def items_of(result: Any) -> int:
    """The number of items in the result of a handler, if it is a list."""
    body = result.body if isinstance(result, Reply) else result
    lists = (value for value in body.values() if isinstance(value, list)) if isinstance(body, dict) else iter(())
    return len(next(lists, ()))


def check_promises(req: Request, status: int, body: bytes | None) -> None:
    """ValueError for a rule, a status or a body that the operation does not declare; *body* is None for an error."""
    operation = req.operation
    undeclared = ', '.join(str(policy) for policy in req.checked_policies.difference(operation.policies))
    if undeclared:
        raise ValueError(f'It asks {undeclared}.')
    if status not in {operation.answers.at(req.version)[0], *operation.successes, *operation.error_statuses}:
        raise ValueError(f'It answers {status}.')
    if body is not None:
        operation.response_validator.check(orjson.loads(body) if body else ABSENT, req.version)


def action_of(body: Any, endpoint: Endpoint) -> str:
    """The only key of an action body; Invalid if it has another shape or names no action of the endpoint."""
    if isinstance(body, (dict, list, str)) and len(body) != 1:
        raise Invalid('Malformed request body')
    if not isinstance(body, dict):
        raise NotFound()
    name: str = next(iter(body))
    if name not in endpoint.choices:
        raise Invalid(f'There is no such action: {name[:MAX_SHOWN_LENGTH]}')
    return name
