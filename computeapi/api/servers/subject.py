"""What the controllers of servers share: the server that the path names, and how its changes begin."""

import functools

from computeapi.api.controller import ComputeController
from computeapi.compute.tasks.transition import Transition
from computeapi.db import servers as rows
from computeapi.web.controller import action as any_action
from computeapi.web.request import Request

action = functools.partial(any_action, path='/{server_id}/action', takes={})
"""An action on a server: POST /servers/{server_id}/action. It takes anything where it does not say what."""


class ServerController(ComputeController):
    """Operations on one server. `server` is found before the policy is asked, and handed to the handler.

    needs: what is loaded beside the row, besides what the view needs that the operation answers with.
    by_cell: whether the server is found by its cell, so that one that there never was is refused in other words.
    """

    path = '/servers'
    subject = 'server_id'
    needs: tuple[str, ...] = ()
    by_cell = False

    def find(self, req: Request, identifier: str) -> rows.Server:
        shown = {need for view in req.operation.views for need in view.needs(req)}
        unreachable = bool(getattr(req.behaviour, 'unreachable', False))
        return self.cloud.servers.get(
            req.context,
            identifier,
            needs=shown.union(self.needs),
            unreachable=unreachable,
            by_cell=self.by_cell,
        )

    def begin(self, req: Request, server: rows.Server, transition: Transition) -> None:
        """Let the server go through *transition*."""
        self.cloud.changes.begin(req.context, server, transition)
