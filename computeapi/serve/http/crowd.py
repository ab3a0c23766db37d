"""The connections that are open, and which of them to close if there are too many."""

from __future__ import annotations

from typing import Protocol


class Visitor(Protocol):
    """A connection, as seen by a crowd."""

    def leave(self) -> None: ...


class Crowd:
    """The connections from one address, or from all: at most `most` of them.

    waiting: those that wait for their client (to send, or to receive), the longest wait first.
    """

    def __init__(self, most: int):
        self.most = most
        self.members: set[Visitor] = set()
        self.waiting: dict[Visitor, None] = {}

    def enter(self, visitor: Visitor) -> bool:
        """Add a connection; returns whether there is room. The connection that has waited longest is closed to make
        room.

        A new client is more important than one that leaves its connection waiting, so incomplete requests and unread
        responses keep nobody out, not even others at the same address.
        """
        if len(self.members) >= self.most:
            if not self.waiting:
                return False
            next(iter(self.waiting)).leave()
        self.members.add(visitor)
        return True

    def discard(self, visitor: Visitor) -> None:
        self.members.discard(visitor)
        self.waiting.pop(visitor, None)

    def wait(self, visitor: Visitor) -> None:
        """From now on, it waits for its client."""
        if visitor in self.members:
            self.waiting.pop(visitor, None)
            self.waiting[visitor] = None

    def work(self, visitor: Visitor) -> None:
        """From now on, its client waits for the app."""
        self.waiting.pop(visitor, None)
