"""The notifications about an action, as a task performs it."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from computeapi.compute.notifications.servers import NotifiedStep, ServerNotifications
from computeapi.compute.notifications.subject import States
from computeapi.context import Context


class ActionNotices:
    """The notifications about one action.

    The end of a step that ends the whole action is notified of in the transaction with the outcome of the action.
    """

    def __init__(
        self, notifications: ServerNotifications, server_id: str, context: Context, arguments: Mapping[str, Any]
    ):
        self.notifications, self.server_id, self.context, self.arguments = notifications, server_id, context, arguments
        # The steps of whose end, or that of the action with them, nobody has been notified.
        self.unfinished: dict[str, NotifiedStep] = {}

    def begun(self, connection: sa.Connection, name: str, host: str | None, *, new: bool) -> None:
        """new: whether the step has not begun in an earlier attempt."""
        step = self.unfinished[name] = NotifiedStep(name, host, self.server_id, self.context, self.arguments)
        if new:
            self.notifications.begun(connection, step)

    def ended(self, connection: sa.Connection, name: str) -> None:
        self.notifications.ended(connection, self.unfinished[name], with_action=False)

    def failed(self, connection: sa.Connection, name: str, error: BaseException) -> None:
        self.notifications.failed(connection, self.unfinished.pop(name), error)

    def all_ended(self, connection: sa.Connection) -> None:
        """The action has ended; called in its last transaction."""
        for step in reversed(self.unfinished.values()):
            self.notifications.ended(connection, step, with_action=True)

    def all_failed(self, connection: sa.Connection, error: BaseException) -> None:
        """The action has failed after these steps."""
        for step in reversed(self.unfinished.values()):
            self.notifications.failed(connection, step, error, with_action=True)

    def moved_on(self, connection: sa.Connection, before: States, after: States) -> None:
        """The server has other states."""
        self.notifications.moved_on(connection, self.context, self.server_id, before, after)
