"""A thread that keeps a client's connection between requests, for clients that send one request after the other.

Passing each request from the loop to a thread and each response back costs as much as many a response. While there are
few clients, the thread that has responded waits a moment for the next request of the same client. Anything but one
short, ordinary request is left to the loop.
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

NEXT_REQUEST_SECONDS = 0.5
"""How long a thread waits for the next request, in seconds."""
SHORT = 16 * 1024
"""The longest request that a thread reads, in bytes."""


class Lent(Protocol):
    """The connection that a thread uses; its methods are for the loop. known: the environ that its requests share."""

    hub: Hub
    transport: asyncio.Transport
    known: Environ

    def take_back(self, exchange: Exchange) -> None: ...

    def send(self, exchange: Exchange, data: bytes, last: bool) -> None: ...

    def listen(self, data: bytes | None) -> None: ...


class KeepAliveThread:
    """Begins with a request, and ends when the connection is returned to the loop."""

    def __init__(self, connection: Lent, environ: Environ):
        self.connection, self.hub = connection, connection.hub
        self.exchange: Exchange | None = Exchange(environ, self.deliver, closing=False)
        self.socket = connection.transport.get_extra_info('socket')
        self.poll_milliseconds = 1000 * min(NEXT_REQUEST_SECONDS, self.hub.options.keepalive_timeout)
        self.number: int = self.socket.fileno()
        # Once the loop has closed the socket, its number may belong to another one.
        self.lock, self.is_over = threading.Lock(), False

    # ------------------------------------------------------------------ in the loop

    def stop_reading(self) -> None:
        """Read no further requests."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RD)

    def end(self) -> None:
        """Stop reading and writing, because the socket is about to be closed."""
        with self.lock:
            self.is_over = True

    # ------------------------------------------------------------------ in the thread

    def run(self) -> None:
        while (exchange := self.exchange) is not None:
            try:
                exchange.begin(self.hub.app)
            except Later as later:
                self.hub.call_soon(self.connection.take_back, exchange)
                self.hub.call_soon(self.hub.delay, exchange, later.seconds)
                return

    def deliver(self, exchange: Exchange, data: bytes, last: bool) -> None:
        """Send a response, and continue with the next request; leave anything more complex to the loop."""
        self.exchange = None
        if last and not exchange.closing:
            data = data[self._send(data) :]
            if not data:
                return self._go_on()
        self.hub.call_soon(self.connection.take_back, exchange)
        self.hub.call_soon(self.connection.send, exchange, data, last)

    def _go_on(self) -> None:
        """Continue with the next request, if it arrives soon and is ordinary."""
        data = self._receive() if self.hub.has_spares else None
        environ = whole(data, self.connection.known) if data and len(data) < SHORT else None
        if environ is None:
            self.hub.call_soon(self.connection.listen, data)
        else:
            self.exchange = Exchange(environ, self.deliver, closing=False)

    def _send(self, data: bytes) -> int:
        """Returns how many bytes were sent; if not all, the loop finds out why."""
        with self.lock, contextlib.suppress(OSError):
            return 0 if self.is_over else os.write(self.number, data)
        return 0

    def _receive(self) -> bytes | None:
        """What the client sends next; b'' if it disconnected, None if it sends nothing for now."""
        poll = select.poll()
        poll.register(self.number, select.POLLIN)
        poll.poll(self.poll_milliseconds)
        with self.lock, contextlib.suppress(OSError):
            return None if self.is_over else os.read(self.number, SHORT)
        return None
