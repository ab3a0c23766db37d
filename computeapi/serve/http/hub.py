"""What all connections share: the loop, the app with its threads, and the limits."""

import asyncio
import contextlib
import functools
import sys
from typing import Any

from oslo_config import cfg

from computeapi.serve.http.connection_limits import ConnectionLimit, LimitedConnection
from computeapi.serve.http.exchange import Exchange, Later
from computeapi.serve.http.feed import TAKEN, Feed
from computeapi.serve.http.threads import Threads
from computeapi.web.filters import WSGIApp

UPLOADS = 32
"""Threads for requests whose body the app reads while it arrives, so that slow uploads only block each other."""
ENVIRON = {
    'SCRIPT_NAME': '',
    'wsgi.version': (1, 0),
    'wsgi.url_scheme': 'http',
    'wsgi.errors': sys.stderr,
    'wsgi.multithread': True,
    'wsgi.multiprocess': False,
    'wsgi.run_once': False,
    'wsgi.input_terminated': True,
    TAKEN: True,
}
"""The part of the environ that is the same for all requests."""


class Hub:
    """options: the group [standalone]; threads: the number of threads of the app, besides those for uploads."""

    def __init__(self, loop: asyncio.AbstractEventLoop, app: WSGIApp, options: cfg.ConfigOpts.GroupAttr, threads: int):
        self.loop, self.app, self.options = loop, app, options
        self.threads, self.uploads = Threads('request', threads), Threads('upload', UPLOADS)
        self.few = threads // 2
        self.all_connections = ConnectionLimit(options.max_connections)
        self.by_address: dict[str, ConnectionLimit] = {}

    def enter(self, connection: LimitedConnection, address: str) -> bool:
        """Add a connection; returns whether there is room for it, from its address and in total."""
        limit = self.by_address.get(address) or ConnectionLimit(self.options.max_connections_per_address)
        entered = limit.enter(connection) and self.all_connections.enter(connection)
        self.by_address[address] = limit
        return entered

    def discard(self, connection: LimitedConnection, address: str) -> None:
        """Remove a connection."""
        for limit in self._limits(address):
            limit.discard(connection)
        if address in self.by_address and not self.by_address[address].members:
            del self.by_address[address]

    def wait(self, connection: LimitedConnection, address: str) -> None:
        """From now on, it waits for its client."""
        for limit in self._limits(address):
            limit.wait(connection)

    def work(self, connection: LimitedConnection, address: str) -> None:
        """From now on, its client waits for the app."""
        for limit in self._limits(address):
            limit.work(connection)

    def _limits(self, address: str) -> list[ConnectionLimit]:
        limit = self.by_address.get(address)
        return [self.all_connections] if limit is None else [self.all_connections, limit]

    @property
    def has_waiting_uploads(self) -> bool:
        """Whether an upload waits for others, because none of their threads is idle."""
        return bool(self.uploads.waiting)

    @property
    def has_spares(self) -> bool:
        """Whether each connection can have its own thread, with as many left."""
        return len(self.all_connections.members) <= self.few and not self.threads.waiting

    def begin(self, exchange: Exchange) -> None:
        """Have the app answer the request."""
        exchange.delayed = False
        threads = self.threads if exchange.body is None else self.uploads
        threads.run(functools.partial(self._begin_exchange, exchange))

    def _begin_exchange(self, exchange: Exchange) -> None:
        try:
            exchange.begin(self.app)
        except Later as later:
            self.call_soon(self.delay, exchange, later.seconds)

    def delay(self, exchange: Exchange, seconds: float) -> None:
        """Have the app answer the request after this time."""
        exchange.delayed = True
        self.loop.call_later(seconds, self.begin, exchange)

    def rest(self, exchange: Exchange, feed: Feed) -> None:
        """Continue a feed when there is a next piece; no thread waits for it."""
        exchange.timer = self.loop.call_later(feed.seconds, self.proceed, exchange)
        feed.wait(functools.partial(self.call_soon, self.proceed, exchange))

    def proceed(self, exchange: Exchange) -> None:
        """Continue a response that rests."""
        if wake(exchange):
            self.threads.run(exchange.proceed)

    def close(self, exchange: Exchange) -> None:
        """Close a response that rests."""
        wake(exchange)
        self.threads.run(exchange.close)

    def call_soon(self, *call: Any) -> None:
        """Schedule a call in the loop, from any thread, even after the loop has ended."""
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(*call)


def wake(exchange: Exchange) -> bool:
    """End the rest of a response; returns whether it was resting."""
    timer, exchange.timer = exchange.timer, None
    if timer is not None:
        timer.cancel()
    return timer is not None
