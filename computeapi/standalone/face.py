"""What the four faces share: routes noted by a decorator, JSON in and out, the caller's token.

A face is a subclass of `Face` with methods under `@route`. A method takes the request and the
parts of its path, and returns a dict (200), a `(status, dict or None)` pair, or a `webob.Response`.
"""

import uuid
from collections.abc import Callable
from typing import Any

import orjson
import routes
import webob
import webob.dec

from computeapi import errors
from computeapi.context import Context

MAX_DOCUMENT = 1024 * 1024
"""The longest JSON body, in bytes, that a face reads into memory."""

MAX_DEPTH = 50
"""How deep the objects and lists of a JSON body may be nested."""

SAFE_METHODS = ('GET', 'HEAD')

STATUSES = (
    (errors.NotFound, 404),
    (errors.Conflict, 409),
    (errors.OverQuota, 413),
    (errors.Forbidden, 403),
    (errors.NotAuthenticated, 401),
    (errors.TooLarge, 413),
    (errors.NotSupported, 501),
    (errors.Invalid, 400),
)


def status_of(error: errors.Error) -> int:
    """The HTTP status of a domain error, 500 for one without a place in the table."""
    return next((status for kind, status in STATUSES if isinstance(error, kind)), 500)


def route(method: str, path: str, *, anonymous: bool = False, admin: bool = False) -> Callable:
    """Serve `method path` with this function; braces name the parts of the path.

    Several routes may stand on one function. `anonymous` needs no token; `admin` needs the admin role.
    """

    def note(function):
        function.__dict__.setdefault('routes', []).append((method, path, anonymous, admin))
        return function

    return note


def noted(kind: type) -> list[tuple[Callable, str, str, bool, bool]]:
    """What `route` noted on a class, in an order in which `/things/detail` is not taken for `/things/{id}`."""
    functions = [getattr(kind, name) for name in dir(kind)]
    notes = [(function, *note) for function in functions for note in getattr(function, 'routes', ())]
    return sorted(notes, key=lambda note: note[2].replace('{', '~'))


def check_json(document: Any) -> None:
    """Invalid for JSON with NUL characters (PostgreSQL keeps none in text) or nested too deeply to walk."""
    pending = [(document, 0)]
    while pending:
        value, depth = pending.pop()
        if depth > MAX_DEPTH:
            raise errors.Invalid(f'The request body must not be nested deeper than {MAX_DEPTH} levels.')
        if isinstance(value, str) and '\0' in value:
            raise errors.Invalid('The request body must not contain NUL characters.')
        if isinstance(value, dict):
            pending.extend((part, depth + 1) for pair in value.items() for part in pair)
        elif isinstance(value, list):
            pending.extend((part, depth + 1) for part in value)


class FaceRequest(webob.Request):
    """A request to a face; `context` is nobody until the token is accepted."""

    context: Context = Context()

    @property
    def document(self) -> dict[str, Any]:
        """The JSON object in the body; Invalid if it is anything else."""
        document = self.json_value
        if not isinstance(document, dict):
            raise errors.Invalid('The request body must be a JSON object.')
        return document

    @property
    def json_value(self) -> Any:
        """The JSON value in the body."""
        if (self.content_length or 0) > MAX_DOCUMENT:
            raise errors.TooLarge(f'The request body must not be longer than {MAX_DOCUMENT} bytes.')
        try:
            document = orjson.loads(self.body)
        except ValueError:
            raise errors.Invalid('The request body is not valid JSON.') from None
        check_json(document)
        return document

    def member(self, name: str) -> dict[str, Any]:
        """The object under `name` in the body: {"network": {...}}."""
        value = self.document.get(name)
        if not isinstance(value, dict):
            raise errors.Invalid(f"The request body must have an object '{name}'.")
        return value


class Face:
    """One service's REST face as a WSGI app.

    `authenticate` turns a token into a Context or raises NotAuthenticated.
    """

    name = 'face'

    writers: frozenset[str] = frozenset()
    """The roles that may change things; empty where every caller may."""

    def __init__(self, authenticate: Callable[[str], Context]):
        self.authenticate = authenticate
        self.mapper = routes.Mapper()
        self.routes: list[tuple[Callable, bool, bool]] = []
        for function, method, path, anonymous, admin in noted(type(self)):
            # Routes keeps only text beside a path, so it is given a position in the table.
            self.mapper.connect(path, at=str(len(self.routes)), conditions={'method': [method]})
            self.routes.append((function, anonymous, admin))
        self.mapper.create_regs()

    @webob.dec.wsgify(RequestClass=FaceRequest)
    def __call__(self, req: FaceRequest) -> webob.Response:
        try:
            response = self.answer(req)
        except errors.Error as error:
            response = self.fault(status_of(error), str(error))
        except UnicodeDecodeError:
            response = self.fault(400, 'The URL is not valid UTF-8.')
        response.headers.setdefault('x-openstack-request-id', f'req-{uuid.uuid4()}')
        return response

    def answer(self, req: FaceRequest) -> webob.Response:
        handler, parts, anonymous, admin = self.find(req)
        self.admit(req, anonymous, admin)
        return self.render(handler(self, req, **parts))

    def find(self, req: FaceRequest) -> tuple[Callable, dict[str, str], bool, bool]:
        """The handler for this request, the parts of the path, and whom it is for."""
        if '\0' in req.path_info or any('\0' in part for pair in req.GET.items() for part in pair):
            raise errors.Invalid('The URL must not contain NUL characters.')
        match = self.mapper.match(req.path_info or '/', req.environ)
        if not match:
            raise errors.NotFound()
        handler, anonymous, admin = self.routes[int(match.pop('at'))]
        return handler, match, anonymous, admin

    def admit(self, req: FaceRequest, anonymous: bool, admin: bool) -> None:
        """Set the caller; NotAuthenticated without a valid token, Forbidden without the role it takes."""
        if anonymous:
            # A client may send the token that has just expired while it asks for the next.
            return
        req.context = self.authenticate(req.headers.get('X-Auth-Token', ''))
        if not self.may(req, admin):
            raise errors.Forbidden('You are not authorized to perform the requested action.')

    def may(self, req: FaceRequest, admin: bool) -> bool:
        """Whether the caller has the role that the request takes."""
        if admin or req.context.is_admin:
            return req.context.is_admin
        return not self.writers or req.method in SAFE_METHODS or bool(self.writers & req.context.roles)

    def render(self, result: Any) -> webob.Response:
        if isinstance(result, webob.Response):
            return result
        status, document = result if isinstance(result, tuple) else (200, result)
        if document is None:
            return webob.Response(status=status, content_type='application/json', charset=None)
        return webob.Response(body=orjson.dumps(document), status=status, content_type='application/json')

    def fault(self, status: int, message: str) -> webob.Response:
        """An error in the service's own words; faces whose service differs override this."""
        return self.render((status, {'error': {'code': status, 'message': message}}))
