"""A client at a door, and at a console when it has been let in."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from websockets.asyncio.server import ServerConnection

from computeapi.db.consoles import ConsoleToken


class Client(ServerConnection):
    """A connection that those who let in know of as long as it is there.

    token: where it has been let in.  heard: when it said something last, by the monotonic clock.
    why: set when the visit is over for a reason of ours.
    """

    def __init__(
        self, came: Callable[['Client'], None], left: Callable[['Client'], None], *arguments: Any, **facts: Any
    ):
        super().__init__(*arguments, **facts)
        self.came, self.left = came, left
        self.token: ConsoleToken | None = None
        self.heard = time.monotonic()
        self.why: asyncio.Future[str] = self.loop.create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.came(self)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.left(self)

    @property
    def address(self) -> str:
        """Where it is, for the log."""
        peer = self.transport.get_extra_info('peername')
        return str(peer[0]) if peer else '-'

    def end(self, why: str) -> None:
        if not self.why.done():
            self.why.set_result(why)

    def stop(self) -> None:
        """The proxy ends: who has not been let in yet will not be."""
        if self.token is None:
            self.transport.abort()
        else:
            self.end('The proxy is shutting down.')
