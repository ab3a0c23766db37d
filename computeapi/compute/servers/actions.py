"""What was done to a server, for those who ask."""

from collections.abc import Sequence
from datetime import datetime

from computeapi.db import actions as rows
from computeapi.db.actions import ServerAction, ServerActionEvent
from computeapi.db.engine import Store
from computeapi.db.listing import Page
from computeapi.db.servers import Server
from computeapi.errors import ServerActionNotFound


class Actions:
    """The changes that a server was asked for, and the steps of each."""

    def __init__(self, store: Store):
        self.store = store

    def list(
        self,
        server: Server,
        limit: int | None = None,
        marker: str | None = None,
        *,
        since: datetime | None = None,
        before: datetime | None = None,
    ) -> list[ServerAction]:
        """The newest first, of those that changed in a period; Invalid for an unknown marker (a request's id)."""
        return self.store.ask(rows.page, server.uuid, Page(limit, marker), since=since, before=before)

    def get(self, server: Server, request_id: str) -> tuple[ServerAction, Sequence[ServerActionEvent]]:
        """An action with its steps, the newest first."""
        with self.store.read() as connection:
            action = rows.by_request(connection, server.uuid, request_id)
            if action is None:
                raise ServerActionNotFound(request_id=request_id)
            return action, rows.events_of(connection, action.id)
