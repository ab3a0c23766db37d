"""The event loop: it accepts, watches deadlines, and ends."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import resource
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

from oslo_config import cfg

from computeapi.serve.http.connection import ClientConnection
from computeapi.serve.http.hub import Hub
from computeapi.web.filters import WSGIApp

TICK = 1.0
MERCY = 5.0
"""Seconds for which an end waits for what is being answered."""
MOST_UNSENT = 256 * 2**20
"""Bytes of answers that may wait in memory for their clients."""
OTHER_FILES = 500
ENDINGS = (signal.SIGTERM, signal.SIGINT)
BACKLOG = 1024


class HTTPServer:
    """A WSGI app at some sockets. options: the group [standalone]."""

    hub: Hub
    stop: asyncio.Event

    def __init__(self, app: WSGIApp, sockets: list[socket.socket], options: cfg.ConfigOpts.GroupAttr, threads: int):
        self.app, self.sockets, self.options, self.threads = app, sockets, options, threads

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT; returns when what was being answered is answered."""
        self._run(lambda: _on_endings(lambda *_: self.end()))
        _on_endings(signal.SIG_IGN)

    @contextlib.contextmanager
    def in_background(self) -> Iterator[None]:
        """Serve in a thread while the block lasts; signals are left to whose process it is.  OSError when it cannot."""
        begun: Future[None] = Future()
        thread = threading.Thread(target=self._run_or_tell, args=[begun], name='http-server', daemon=True)
        thread.start()
        begun.result()
        try:
            yield
        finally:
            self.end()
            thread.join()

    def end(self) -> None:
        """Let it come to its end; from any thread."""
        self.hub.call_soon(self.stop.set)

    def _run_or_tell(self, begun: Future[None]) -> None:
        try:
            self._run(functools.partial(begun.set_result, None))
        except Exception as error:
            if begun.done():
                raise
            begun.set_exception(error)

    def _run(self, begun: Callable[[], None]) -> None:
        allow_files(self.options.max_connections + OTHER_FILES)
        asyncio.run(self._serve(begun))

    async def _serve(self, begun: Callable[[], None]) -> None:
        loop, self.stop = asyncio.get_running_loop(), asyncio.Event()
        self.hub = Hub(loop, self.app, self.options, self.threads)
        connect = functools.partial(ClientConnection, self.hub)
        accepting = [await loop.create_server(connect, sock=each, backlog=BACKLOG) for each in self.sockets]
        begun()
        while not self.stop.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.stop.wait(), TICK)
            self.sweep(loop.time())
        for each in accepting:
            each.close()
        await self._end(loop)

    async def _end(self, loop: asyncio.AbstractEventLoop) -> None:
        for connection in self.connections():
            connection.finish()
        until = loop.time() + MERCY
        while self.hub.everyone.members and loop.time() < until:
            await asyncio.sleep(TICK / 50)
        for connection in self.connections():
            connection.leave()
        for threads in (self.hub.threads, self.hub.uploads):
            await loop.run_in_executor(None, threads.stop, max(0.0, until - loop.time()))

    def connections(self) -> list[ClientConnection]:
        return [each for each in self.hub.everyone.members if isinstance(each, ClientConnection)]

    def sweep(self, now: float) -> None:
        """Send away who is too slow, and who has most to take when that is too much for the memory."""
        connections = self.connections()
        for connection in connections:
            if connection.deadline < now:
                # What goes wrong with one of them, the loop tells of; the others are served on.
                self.hub.loop.call_soon(connection.expire)
        sizes = {connection: connection.transport.get_write_buffer_size() for connection in connections}
        unsent = sum(sizes.values())
        for connection in sorted(sizes, key=sizes.__getitem__, reverse=True):
            if unsent <= MOST_UNSENT:
                break
            unsent -= sizes[connection]
            connection.leave()


def _on_endings(act: Any) -> None:
    """What SIGTERM and SIGINT do from now on."""
    for number in ENDINGS:
        signal.signal(number, act)


def allow_files(number: int) -> None:
    """Let this process have so many files open, as far as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = number if hard == resource.RLIM_INFINITY else min(number, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
