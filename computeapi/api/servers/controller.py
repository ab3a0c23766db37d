"""The base class of the controllers of servers: finds the server in the path, and starts its changes."""

import functools

from computeapi.api.controller import ComputeController
from computeapi.compute.tasks.transition import Transition
from computeapi.db import servers
from computeapi.web.controller import action as any_action
from computeapi.web.request import Request

action = functools.partial(any_action, path='/{server_id}/action', takes={})
"""An action on a server: POST /servers/{server_id}/action. Without a schema it accepts anything."""


class ServerController(ComputeController):
    """Operations on one server. `server` is loaded before the policy is checked, and passed to the handler.

    needs: what is loaded with the server in addition to the needs of the view in the response.
    by_cell: whether the server is looked up by its cell, which changes the error for a server that never existed.
    """

    path = '/servers'
    subject = 'server_id'
    needs: tuple[str, ...] = ()
    by_cell = False

    def find(self, req: Request, identifier: str) -> servers.Server:
        shown = {need for view in req.operation.views for need in view.needs(req)}
        unreachable = bool(getattr(req.behaviour, 'unreachable', False))
        return self.cloud.servers.get(
            req.context,
            identifier,
            needs=shown.union(self.needs),
            unreachable=unreachable,
            by_cell=self.by_cell,
        )

    def begin(self, req: Request, server: servers.Server, transition: Transition) -> None:
        """Start *transition* on the server."""
        self.cloud.changes.begin(req.context, server, transition)
