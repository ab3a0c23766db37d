"""The history of actions on a server."""

from collections.abc import Sequence
from datetime import datetime

from computeapi.db import actions
from computeapi.db.actions import ServerAction, ServerActionEvent
from computeapi.db.engine import Store
from computeapi.db.listing import Page
from computeapi.db.servers import Server
from computeapi.errors import ServerActionNotFound


class Actions:
    """The changes that were requested for a server, and the steps of each."""

    def __init__(self, store: Store):
        self.store = store

    def list(
        self, server: Server, page: Page, *, since: datetime | None, before: datetime | None
    ) -> list[ServerAction]:
        """The actions that changed in a period, newest first; Invalid for an unknown marker (a request ID)."""
        return self.store.query(actions.page, server.uuid, page, since=since, before=before)

    def get(self, server: Server, request_id: str) -> tuple[ServerAction, Sequence[ServerActionEvent]]:
        """An action with its steps, newest first."""
        with self.store.read() as connection:
            action = actions.by_request(connection, server.uuid, request_id)
            if action is None:
                raise ServerActionNotFound(request_id=request_id)
            return action, actions.events_of(connection, action.id)
