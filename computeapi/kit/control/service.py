"""What the resources of the control API share: its version, its token, and access to the tools."""

import hmac
from collections.abc import Iterable
from typing import Any

import orjson
import webob
import webob.dec

from computeapi.context import Context
from computeapi.errors import NotFound
from computeapi.kit.tools import Tools
from computeapi.kit.variables import TOKEN_HEADER
from computeapi.standalone.access import RoleRules
from computeapi.versions import ABSENT, History
from computeapi.web import faults
from computeapi.web.app import App
from computeapi.web.contract import JSON
from computeapi.web.controller import Controller
from computeapi.web.openapi import Face, describe
from computeapi.web.request import CONTEXT, Request
from computeapi.web.routing import Endpoint

CONTROL = History({'1.0': 'The first version.'})
FACE = Face('Control API', CONTROL, '.', TOKEN_HEADER)
DOCUMENT = '/openapi.json'
MAX_NUMBER_LENGTH = 18
NUMBER = {'type': 'integer', 'minimum': 1}
"""The schema of a numeric ID."""


def number(text: str) -> int:
    """The number in a path; NotFound if it is invalid."""
    if not text.isdecimal() or len(text) > MAX_NUMBER_LENGTH:
        raise NotFound()
    return int(text)


class ControlController(Controller):
    """A resource of the control API."""

    history = CONTROL

    parameters = ABSENT

    def __init__(self, tools: Tools):
        self.tools = tools


class ControlApp(App):
    """The control API. Every request must have its token, except those for its description."""

    project = None

    def __init__(self, kinds: Iterable[type[ControlController]], tools: Tools, token: str):
        self.kinds, self.token = tuple(kinds), token
        # Whoever has the token may do everything, so no operation has a policy rule.
        super().__init__([kind(tools) for kind in self.kinds], RoleRules(), response_validation='warn')

    def missing(self, req: Request) -> webob.Response:
        """Serve the description of the API as well, which is not an operation."""
        if req.environ['PATH_INFO'] == DOCUMENT and req.method == 'GET':
            return webob.Response(body=orjson.dumps(describe(self.kinds, CONTROL.max, FACE)), content_type=JSON)
        return faults.fault(404, 'The resource could not be found.')

    def render(self, req: Request, result: Any) -> webob.Response:
        """As for compute, except that a handler may return a complete response, such as text."""
        return result if isinstance(result, webob.Response) else super().render(req, result)

    def answer(self, req: Request, endpoint: Endpoint, parameters: dict[str, Any]) -> webob.Response:
        given = req.headers.get(TOKEN_HEADER, '')
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            return faults.fault(401, f'{TOKEN_HEADER} must contain the token of this cloud.')
        req.environ[CONTEXT] = Context(is_admin=True)
        return super().answer(req, endpoint, parameters)
