"""The connections that are open, and which of them to close if there are too many."""

from __future__ import annotations

from typing import Protocol


class LimitedConnection(Protocol):
    """A connection, as seen by a limit."""

    def leave(self) -> None: ...


class ConnectionLimit:
    """The connections from one address, or from all: at most `most` of them.

    waiting: those that wait for their client (to send, or to receive), the longest wait first.
    """

    def __init__(self, most: int):
        self.most = most
        self.members: set[LimitedConnection] = set()
        self.waiting: dict[LimitedConnection, None] = {}

    def enter(self, connection: LimitedConnection) -> bool:
        """Add a connection; returns whether there is room. The connection that has waited longest is closed to make
        room.

        A new client is more important than one that leaves its connection waiting, so incomplete requests and unread
        responses keep nobody out, not even others at the same address.
        """
        if len(self.members) >= self.most:
            if not self.waiting:
                return False
            next(iter(self.waiting)).leave()
        self.members.add(connection)
        return True

    def discard(self, connection: LimitedConnection) -> None:
        self.members.discard(connection)
        self.waiting.pop(connection, None)

    def wait(self, connection: LimitedConnection) -> None:
        """From now on, it waits for its client."""
        if connection in self.members:
            self.waiting.pop(connection, None)
            self.waiting[connection] = None

    def work(self, connection: LimitedConnection) -> None:
        """From now on, its client waits for the app."""
        self.waiting.pop(connection, None)
