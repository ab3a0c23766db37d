"""A client of the console proxy, before and after it is connected to a console."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from websockets.asyncio.server import ServerConnection

from computeapi.db.consoles import ConsoleToken


class Client(ServerConnection):
    """A connection that the proxy knows for as long as it exists.

    token: the console it was admitted to.  last_received: when it last sent something, by the monotonic clock.
    why: set if the proxy ends the connection, with its reason.
    """

    def __init__(
        self,
        register: Callable[['Client'], None],
        unregister: Callable[['Client'], None],
        *args: Any,
        **kwargs: Any,
    ):
        super().__init__(*args, **kwargs)
        self.register, self.unregister = register, unregister
        self.token: ConsoleToken | None = None
        self.last_received = time.monotonic()
        self.why: asyncio.Future[str] = self.loop.create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.register(self)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.unregister(self)

    @property
    def address(self) -> str:
        """The address of the client, for the log."""
        peer = self.transport.get_extra_info('peername')
        return str(peer[0]) if peer else '-'

    def end(self, why: str) -> None:
        if not self.why.done():
            self.why.set_result(why)

    def stop(self) -> None:
        """The proxy stops: clients that are not admitted yet are disconnected."""
        if self.token is None:
            self.transport.abort()
        else:
            self.end('The proxy is shutting down.')
