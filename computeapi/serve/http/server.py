"""The event loop, which accepts connections, checks deadlines, and stops."""

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
SHUTDOWN_SECONDS = 5.0
"""How long a stop waits for responses in progress, in seconds."""
CONTENDED_UPLOAD_SECONDS = 5
"""The time for 64 KiB of an upload while others wait to send theirs, in seconds, if request_timeout is longer."""
MAX_UNSENT = 256 * 2**20
"""How many bytes of responses may wait in memory for their clients."""
OTHER_FILES = 500
ENDINGS = (signal.SIGTERM, signal.SIGINT)
BACKLOG = 1024


class HTTPServer:
    """Serves a WSGI app at some sockets. options: the group [standalone]."""

    hub: Hub
    stop: asyncio.Event

    def __init__(self, app: WSGIApp, sockets: list[socket.socket], options: cfg.ConfigOpts.GroupAttr, threads: int):
        self.app, self.sockets, self.options, self.threads = app, sockets, options, threads

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT; returns when the requests in progress are answered."""
        self._run(lambda: _on_endings(lambda *_: self.end()))
        _on_endings(signal.SIG_IGN)

    @contextlib.contextmanager
    def in_background(self) -> Iterator[None]:
        """Serve in a thread for the duration of the block, without handling signals. Raises OSError if that fails."""
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
        """Stop the server; from any thread."""
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
        until = loop.time() + SHUTDOWN_SECONDS
        while self.hub.all_connections.members and loop.time() < until:
            await asyncio.sleep(TICK / 50)
        for connection in self.connections():
            connection.leave()
        for threads in (self.hub.threads, self.hub.uploads):
            await loop.run_in_executor(None, threads.stop, max(0.0, until - loop.time()))

    def connections(self) -> list[ClientConnection]:
        return [each for each in self.hub.all_connections.members if isinstance(each, ClientConnection)]

    def is_late(self, connection: ClientConnection, now: float) -> bool:
        """Whether it missed its deadline, which is earlier for an upload while others wait for a thread."""
        arriving = connection.arriving
        if arriving is not None and arriving.body is not None and self.hub.has_waiting_uploads:
            now += max(0, self.options.request_timeout - CONTENDED_UPLOAD_SECONDS)
        return connection.deadline < now

    def sweep(self, now: float) -> None:
        """Close connections that missed their deadline, and those with the most unsent data if that is too much."""
        connections = self.connections()
        for connection in connections:
            if self.is_late(connection, now):
                # The loop logs an error of one of them, and continues with the others.
                self.hub.loop.call_soon(connection.expire)
        sizes = {connection: connection.transport.get_write_buffer_size() for connection in connections}
        unsent = sum(sizes.values())
        for connection in sorted(sizes, key=sizes.__getitem__, reverse=True):
            if unsent <= MAX_UNSENT:
                break
            unsent -= sizes[connection]
            connection.leave()


def _on_endings(act: Any) -> None:
    """Set what SIGTERM and SIGINT do."""
    for number in ENDINGS:
        signal.signal(number, act)


def allow_files(number: int) -> None:
    """Raise the limit of open files of this process, as far as permitted."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = number if hard == resource.RLIM_INFINITY else min(number, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
