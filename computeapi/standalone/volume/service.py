"""What the resources of the volume service share, and its way to say no."""

import re
from collections.abc import Callable
from typing import Any

import webob

from computeapi import errors
from computeapi.backends.volume.local import LocalVolumes
from computeapi.standalone.access import WRITER, RoleRule
from computeapi.standalone.schema import having
from computeapi.standalone.service import ServiceApp, ServiceController, json_response
from computeapi.standalone.volume.versions import CINDER
from computeapi.web import faults
from computeapi.web.app import LONGEST_SHOWN
from computeapi.web.controller import Function, action
from computeapi.web.request import Request
from computeapi.web.routing import Bound, Endpoint

NAMES = {**faults.NAMES, 406: 'notAcceptable'}

USER = RoleRule('user', roles=frozenset({'service', *(WRITER.roles or ())}))
"""Who may change things: compute does so as a service."""


class CinderController(ServiceController):
    """A resource of the volume service."""

    history = CINDER

    def __init__(self, volumes: LocalVolumes):
        self.volumes = volumes


def argued(
    name: str, properties: dict[str, Any], *required: str, policy: RoleRule = USER, **facts: Any
) -> Callable[[Function], Function]:
    """An action whose argument is an object with these properties, and maybe others."""
    return action(name, policy=policy, body={'properties': {name: having(properties, *required)}}, **facts)


class CinderApp(ServiceApp):
    """Everything is at /v3/... and, as catalogs of old have it, at /v3/{project_id}/... too."""

    project = re.compile('[^/]+')

    def choose(self, req: Request, endpoint: Endpoint, body: Any) -> Bound:
        if endpoint.actions and not (isinstance(body, dict) and len(body) == 1):
            named = body if isinstance(body, dict) else ()
            raise errors.Invalid(f'There is no such action: {", ".join(named)[:LONGEST_SHOWN]}')
        return super().choose(req, endpoint, body)

    def refusal(self, req: Request, status: int, message: str, error: Exception) -> webob.Response:
        return json_response(status, {NAMES.get(status, 'computeFault'): {'code': status, 'message': message}})
