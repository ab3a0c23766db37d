"""A client that asks again as soon as it has its answer, and the thread that listens to it meanwhile.

To hand each request from the loop to a thread and each answer back costs as much as many an answer. As long as clients
are few, the thread that has answered waits a moment for what the same client says next. What it hears is either one
short request as it is usual, or the loop's business.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import socket
import threading
from typing import Protocol

from computeapi.serve.http.exchange import Exchange, Later
from computeapi.serve.http.hub import Hub
from computeapi.serve.http.request import Environ, whole

PATIENCE = 0.5
"""Seconds for which a thread waits for the next request."""
SHORT = 16 * 1024
"""Bytes of a request that a thread reads."""


class Lent(Protocol):
    """The connection that a thread has; its methods are for the loop. known: what is the same in all its requests."""

    hub: Hub
    transport: asyncio.Transport
    known: Environ

    def take_back(self, exchange: Exchange) -> None: ...

    def send(self, exchange: Exchange, data: bytes, last: bool) -> None: ...

    def listen(self, heard: bytes | None) -> None: ...


class Talk:
    """Begins with a request; ends when the loop has the connection back."""

    def __init__(self, connection: Lent, environ: Environ):
        self.connection, self.hub = connection, connection.hub
        self.exchange: Exchange | None = Exchange(environ, self.deliver, closing=False)
        self.socket = connection.transport.get_extra_info('socket')
        self.patience = 1000 * min(PATIENCE, self.hub.options.keepalive_timeout)
        self.number: int = self.socket.fileno()
        # The number is another one's as soon as the loop has closed the socket.
        self.lock, self.is_over = threading.Lock(), False

    # ------------------------------------------------------------------ in the loop

    def hush(self) -> None:
        """Hear no further request."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RD)

    def end(self) -> None:
        """Neither read nor write any more: the socket is about to be closed."""
        with self.lock:
            self.is_over = True

    # ------------------------------------------------------------------ in the thread

    def run(self) -> None:
        while (exchange := self.exchange) is not None:
            try:
                exchange.begin(self.hub.app)
            except Later as later:
                self.hub.call_soon(self.connection.take_back, exchange)
                self.hub.call_soon(self.hub.loop.call_later, later.seconds, self.hub.begin, exchange)
                return

    def deliver(self, exchange: Exchange, data: bytes, last: bool) -> None:
        """Send the answer, and hear what comes next; what is more than that, the loop does."""
        self.exchange = None
        if last and not exchange.closing:
            data = data[self._send(data) :]
            if not data:
                return self._go_on()
        self.hub.call_soon(self.connection.take_back, exchange)
        self.hub.call_soon(self.connection.send, exchange, data, last)

    def _go_on(self) -> None:
        """With the next request, if it comes soon and is no more than that."""
        heard = self._hear() if self.hub.is_calm else None
        environ = whole(heard, self.connection.known) if heard and len(heard) < SHORT else None
        if environ is None:
            self.hub.call_soon(self.connection.listen, heard)
        else:
            self.exchange = Exchange(environ, self.deliver, closing=False)

    def _send(self, data: bytes) -> int:
        """How many of the bytes are sent; the loop finds out why not all."""
        with self.lock, contextlib.suppress(OSError):
            return 0 if self.is_over else os.write(self.number, data)
        return 0

    def _hear(self) -> bytes | None:
        """What the client says next, b'' at its end; None where it says nothing for now."""
        poll = select.poll()
        poll.register(self.number, select.POLLIN)
        poll.poll(self.patience)
        with self.lock, contextlib.suppress(OSError):
            return None if self.is_over else os.read(self.number, SHORT)
        return None
