"""The console proxy: authorizes clients, and forwards data between them and consoles."""

import asyncio
import functools
import logging
import socket
import ssl
import time
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, closing
from typing import Any, ParamSpec, TypeVar, cast

from oslo_config import cfg
from websockets.asyncio.server import Server, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from computeapi.backends.hypervisor import HypervisorError
from computeapi.compute.consoles import Consoles
from computeapi.consoles import pages
from computeapi.consoles.client import Client
from computeapi.consoles.listeners import ConsoleListener
from computeapi.consoles.requests import comes_from, path_of, token_of, wants_console
from computeapi.db.consoles import ConsoleToken
from computeapi.errors import ConsoleTokenNotFound, DatabaseError, NotSupported

LOG = logging.getLogger(__name__)
# The library's log lines may contain what clients sent, including tokens.
SILENT = logging.Logger('websockets', logging.CRITICAL + 1)
LOOK_SECONDS = 2
# Threads for database queries.
THREADS = 4
OPEN_SECONDS, CLOSE_SECONDS = 10, 2
# The maximum number of clients not at a console: those that have not sent a request yet, or that read pages.
MAX_WAITING = 100
# The holder of one console's URL cannot use up all connections: this is the limit for the clients of one server.
MAX_PER_SERVER = 20
CHUNK = 64 * 1024
NORMAL, FAILED = 1000, 1011
# The room for a reason in a close frame.
MAX_REASON_LENGTH = 120
BINARY = Subprotocol('binary')

P = ParamSpec('P')
T = TypeVar('T')


class ConsoleProxy:
    """Connects clients to a console by its token, as long as the server is still on that host, and runs.

    conf: its groups [console] and [consoleauth].
    """

    def __init__(self, consoles: Consoles, conf: cfg.ConfigOpts):
        self.consoles, self.options = consoles, conf.console
        self.sessions_end = conf.consoleauth.enforce_session_timeout
        # In order of arrival.
        self.clients = dict[Client, None]()
        self.threads = ThreadPoolExecutor(THREADS, 'console-proxy')
        # One thread per possible console connection, so that hosts that do not answer delay nobody else.
        self.connecting = ThreadPoolExecutor(self.options.max_connections, 'console-connect')

    async def run(
        self, listeners: Iterable[ConsoleListener], tls: ssl.SSLContext | None, stop: Awaitable[object]
    ) -> None:
        """Accept clients at the listeners until *stop*; then all connections are closed."""
        async with AsyncExitStack() as stack:
            stack.callback(self.threads.shutdown)
            stack.callback(self.connecting.shutdown)
            watching = asyncio.create_task(self.watch())
            stack.callback(watching.cancel)
            for listener in listeners:
                await stack.enter_async_context(self.open(listener, tls))
            await stop
            for client in self.clients:
                client.stop()

    def open(self, listener: ConsoleListener, tls: ssl.SSLContext | None) -> Server:
        return serve(
            cast(Any, self.serve_client),
            sock=listener.socket,
            ssl=tls,
            create_connection=cast(Any, functools.partial(Client, self.register, self.unregister)),
            process_request=functools.partial(self.process_request, listener.kind),
            select_subprotocol=_subprotocol,
            max_size=self.options.max_frame_bytes,
            open_timeout=OPEN_SECONDS,
            close_timeout=CLOSE_SECONDS,
            server_header=None,
            logger=SILENT,
        )

    async def in_thread(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function that may block, in a thread."""
        call = functools.partial(function, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self.threads, call)

    async def connect(self, token: ConsoleToken) -> socket.socket:
        return await asyncio.get_running_loop().run_in_executor(self.connecting, self.consoles.connect, token)

    # ------------------------------------------------------------------ before a client is authorized

    def register(self, client: Client) -> None:
        """Register a client. If too many wait, the oldest one is disconnected, so that idle ones keep nobody out."""
        self.clients[client] = None
        waiting = [each for each in self.clients if each.token is None]
        if len(waiting) > MAX_WAITING:
            self.unregister(waiting[0])
            waiting[0].stop()

    def unregister(self, client: Client) -> None:
        self.clients.pop(client, None)

    def sessions(self) -> list[tuple[Client, ConsoleToken]]:
        """The clients at consoles."""
        return [(client, client.token) for client in self.clients if client.token is not None]

    async def process_request(self, kind: str, client: Client, request: Request) -> Response | None:
        """Admit a client and return None, or return the answer to its request."""
        try:
            answer = await self.authorize(kind, client, request)
        except DatabaseError as error:
            LOG.warning('The database is unavailable to check a token: %s', error.reason)
            answer = refusal(503, 'The database is unavailable')
        except Exception:
            LOG.exception('A request for a console failed')
            answer = refusal(500, 'Internal error')
        status = 101 if answer is None else answer.status_code
        # Load balancers also request pages, as health checks.
        level = logging.DEBUG if status == 200 else logging.INFO
        # The request is not logged: clients may put the token into the path by mistake.
        LOG.log(level, '%s requested the %s console, status: %d', client.address, kind, status)
        return answer

    async def authorize(self, kind: str, client: Client, request: Request) -> Response | None:
        allowed = self.options.allowed_origins
        if not wants_console(request):
            return pages.answer(kind, path_of(request), allowed)
        if not comes_from(request, allowed):
            return refusal(403, 'Pages of that origin may not open consoles here')
        try:
            token = await self.in_thread(self.consoles.enter, token_of(request), kind)
        except ConsoleTokenNotFound:
            return refusal(403, f'This is not a token for a console of type {kind}, or it has expired')
        visited = [each.server_id for _, each in self.sessions()]
        if len(visited) >= self.options.max_connections:
            return refusal(503, 'Too many consoles are open')
        if visited.count(token.server_id) >= MAX_PER_SERVER:
            return refusal(503, 'Too many consoles of this server are open')
        client.token = token
        return None

    # ------------------------------------------------------------------ at the console

    async def serve_client(self, client: Client) -> None:
        """Connect the client and the console, until either side closes, or the proxy ends the connection."""
        token, began = client.token, time.monotonic()
        assert token is not None
        LOG.info('%s opened the %s console of server %s', client.address, token.kind, token.server_id)
        try:
            code, why = NORMAL, await self.forward(client, token)
        except (HypervisorError, NotSupported, DatabaseError, OSError) as error:
            LOG.warning('The %s console of server %s cannot be reached: %s', token.kind, token.server_id, error)
            code, why = FAILED, str(error)
        except Exception:
            LOG.exception('The %s console of server %s failed', token.kind, token.server_id)
            code, why = FAILED, 'Internal error; see the log of the console proxy.'
        seconds = time.monotonic() - began
        LOG.info('%s left server %s after %d s: %s', client.address, token.server_id, seconds, why)
        await client.close(code, why.encode()[:MAX_REASON_LENGTH].decode(errors='ignore'))

    async def forward(self, client: Client, token: ConsoleToken) -> str:
        """Forward data, and return why it ended; OSError, HypervisorError, NotSupported if the console is away."""
        with closing(await self.connect(token)) as connection:
            connection.setblocking(False)
            reader, writer = await asyncio.open_connection(sock=connection)
            try:
                return await _first_of(_keys(client, writer), _output(reader, client), client.why)
            finally:
                # Data that the console has not read yet is discarded.
                writer.transport.abort()

    async def watch(self) -> None:
        """Periodically end connections that are no longer allowed."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self.end_forbidden_sessions()
            except DatabaseError as error:
                LOG.warning('The database is unavailable to check where servers are: %s', error.reason)
            except Exception:
                LOG.exception('The check of open consoles failed')

    async def end_forbidden_sessions(self) -> None:
        sessions, last_received = self.sessions(), dict[str, float]()
        for client, token in sessions:
            # A SPICE viewer has several connections, of which only the one for input is active.
            last_received[token.hash] = max(client.last_received, last_received.get(token.hash, client.last_received))
        for client, token in sessions:
            if last_received[token.hash] + self.options.idle_timeout < time.monotonic():
                client.end('The console was idle for too long.')
        if sessions:
            there = await self.in_thread(
                self.consoles.open_places, {(token.server_id, token.host) for _, token in sessions}
            )
            now = await self.in_thread(self.consoles.clock) if self.sessions_end else None
            for client, token in sessions:
                if (token.server_id, token.host) not in there:
                    client.end('The server is no longer running there.')
                if now is not None and token.expires_at <= now:
                    client.end('The token has expired.')


def refusal(status: int, reason: str) -> Response:
    """The answer to a WebSocket client. It has no body, which some clients, such as tempest, would take for frames."""
    return Response(status, reason, Headers({'Content-Length': '0', 'Connection': 'close'}))


def _subprotocol(client: object, offered: Sequence[Subprotocol]) -> Subprotocol | None:
    """Select `binary` if the client offers it, as older versions of noVNC expect."""
    return BINARY if BINARY in offered else None


async def _keys(client: Client, writer: StreamWriter) -> str:
    """Forward data from the client to the console."""
    async for message in client:
        client.last_received = time.monotonic()
        writer.write(message if isinstance(message, bytes) else message.encode())
        await writer.drain()
    return 'The client has disconnected.'


async def _output(reader: StreamReader, client: Client) -> str:
    """Forward data from the console to the client."""
    while data := await reader.read(CHUNK):
        await client.send(data)
    return 'The console has ended.'


async def _first_of(*each: Awaitable[str]) -> str:
    """The result of the first one that is done; the others are cancelled."""
    tasks = [asyncio.ensure_future(one) for one in each]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return done.pop().result()
    except ConnectionClosed:
        return 'The connection to the client was lost.'
    except OSError:
        return 'The connection to the console was lost.'
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
