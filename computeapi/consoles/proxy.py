"""Who may pass to a console, and passing on what it and the client say."""

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
from computeapi.consoles.asked import comes_from, path_of, token_of, wants_console
from computeapi.consoles.client import Client
from computeapi.consoles.doors import OpenDoor
from computeapi.db.consoles import ConsoleToken
from computeapi.errors import ConsoleTokenNotFound, DatabaseTrouble, NotSupported

LOG = logging.getLogger(__name__)
# The library's lines may hold what clients sent, tokens included.
SILENT = logging.Logger('websockets', logging.CRITICAL + 1)
LOOK_SECONDS = 2
# Looking things up is done in threads.
THREADS = 4
OPEN_SECONDS, CLOSE_SECONDS = 10, 2
# How many may be connected besides those who are at consoles: who has not said yet what it wants, or reads pages.
MOST_AT_DOORS = 100
# Who has the address of one console cannot take all places: so many of those who look at a server share it.
MOST_AT_ONE_SERVER = 20
CHUNK = 64 * 1024
NORMAL, FAILED = 1000, 1011
# So much room a frame has that closes a connection.
LONGEST_REASON = 120
BINARY = Subprotocol('binary')

P = ParamSpec('P')
T = TypeVar('T')


class ConsoleProxy:
    """Lets those to a console who bring its token, as long as the server is where it was, and runs.

    conf: its groups [console] and [consoleauth].
    """

    def __init__(self, consoles: Consoles, conf: cfg.ConfigOpts):
        self.consoles, self.options = consoles, conf.console
        self.sessions_end = conf.consoleauth.enforce_session_timeout
        # Those who came first, first.
        self.clients = dict[Client, None]()
        self.threads = ThreadPoolExecutor(THREADS, 'console-proxy')
        # One for each that can be at a console: who waits for a host that does not answer keeps nobody waiting.
        self.connecting = ThreadPoolExecutor(self.options.max_connections, 'console-connect')

    async def run(self, doors: Iterable[OpenDoor], tls: ssl.SSLContext | None, stop: Awaitable[object]) -> None:
        """Let in at the doors until *stop*; then all connections are closed."""
        async with AsyncExitStack() as stack:
            stack.callback(self.threads.shutdown)
            stack.callback(self.connecting.shutdown)
            watching = asyncio.create_task(self.watch())
            stack.callback(watching.cancel)
            for door in doors:
                await stack.enter_async_context(self.open(door, tls))
            await stop
            for client in self.clients:
                client.stop()

    def open(self, door: OpenDoor, tls: ssl.SSLContext | None) -> Server:
        return serve(
            cast(Any, self.pass_on),
            sock=door.socket,
            ssl=tls,
            create_connection=cast(Any, functools.partial(Client, self.came, self.left)),
            process_request=functools.partial(self.let_in, door.kind),
            select_subprotocol=_subprotocol,
            max_size=self.options.max_frame_bytes,
            open_timeout=OPEN_SECONDS,
            close_timeout=CLOSE_SECONDS,
            server_header=None,
            logger=SILENT,
        )

    async def asked(self, function: Callable[P, T], *arguments: P.args, **facts: P.kwargs) -> T:
        """What the function returns, which may take a while."""
        call = functools.partial(function, *arguments, **facts)
        return await asyncio.get_running_loop().run_in_executor(self.threads, call)

    async def connected(self, token: ConsoleToken) -> socket.socket:
        return await asyncio.get_running_loop().run_in_executor(self.connecting, self.consoles.connect, token)

    # ------------------------------------------------------------------ at the door

    def came(self, client: Client) -> None:
        """One too many takes the place of the one that waits longest: who says nothing keeps nobody out."""
        self.clients[client] = None
        waiting = [each for each in self.clients if each.token is None]
        if len(waiting) > MOST_AT_DOORS:
            self.left(waiting[0])
            waiting[0].stop()

    def left(self, client: Client) -> None:
        self.clients.pop(client, None)

    def visitors(self) -> list[tuple[Client, ConsoleToken]]:
        """Who is at consoles."""
        return [(client, client.token) for client in self.clients if client.token is not None]

    async def let_in(self, kind: str, client: Client, request: Request) -> Response | None:
        """None for who is let in; else what it is answered."""
        try:
            answer = await self.answer(kind, client, request)
        except DatabaseTrouble as error:
            LOG.warning('The database is unavailable to check a token: %s', error.reason)
            answer = refusal(503, 'The database is unavailable')
        except Exception:
            LOG.exception('A request for a console failed')
            answer = refusal(500, 'Something went wrong')
        status = 101 if answer is None else answer.status_code
        # Pages are also what load balancers ask for, every second.
        level = logging.DEBUG if status == 200 else logging.INFO
        # Of the request nothing is said: who mistakes where a token goes has it in the path.
        LOG.log(level, '%s requested the %s console, status: %d', client.address, kind, status)
        return answer

    async def answer(self, kind: str, client: Client, request: Request) -> Response | None:
        allowed = self.options.allowed_origins
        if not wants_console(request):
            return pages.answer(kind, path_of(request), allowed)
        if not comes_from(request, allowed):
            return refusal(403, 'Pages of that origin may not open consoles here')
        try:
            token = await self.asked(self.consoles.enter, token_of(request), kind)
        except ConsoleTokenNotFound:
            return refusal(403, f'This is not a token for a console of type {kind}, or it has expired')
        visited = [each.server_id for _, each in self.visitors()]
        if len(visited) >= self.options.max_connections:
            return refusal(503, 'Too many consoles are open')
        if visited.count(token.server_id) >= MOST_AT_ONE_SERVER:
            return refusal(503, 'Too many consoles of this server are open')
        client.token = token
        return None

    # ------------------------------------------------------------------ at the console

    async def pass_on(self, client: Client) -> None:
        """Until either side has had enough, or the visit is to end."""
        token, began = client.token, time.monotonic()
        assert token is not None
        LOG.info('%s opened the %s console of server %s', client.address, token.kind, token.server_id)
        try:
            code, why = NORMAL, await self.converse(client, token)
        except (HypervisorError, NotSupported, DatabaseTrouble, OSError) as error:
            LOG.warning('The %s console of server %s cannot be reached: %s', token.kind, token.server_id, error)
            code, why = FAILED, str(error)
        except Exception:
            LOG.exception('The %s console of server %s failed', token.kind, token.server_id)
            code, why = FAILED, 'Something went wrong; see the log.'
        seconds = time.monotonic() - began
        LOG.info('%s left server %s after %d s: %s', client.address, token.server_id, seconds, why)
        await client.close(code, why.encode()[:LONGEST_REASON].decode(errors='ignore'))

    async def converse(self, client: Client, token: ConsoleToken) -> str:
        """Why it is over; OSError, HypervisorError, NotSupported when the console cannot be reached."""
        with closing(await self.connected(token)) as connection:
            connection.setblocking(False)
            reader, writer = await asyncio.open_connection(sock=connection)
            try:
                return await _first_of(_keys(client, writer), _output(reader, client), client.why)
            finally:
                # What the console has not read yet it will not be told.
                writer.transport.abort()

    async def watch(self) -> None:
        """End visits whose time is over."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self.look()
            except DatabaseTrouble as error:
                LOG.warning('The database is unavailable to check where servers are: %s', error.reason)
            except Exception:
                LOG.exception('The check of open consoles failed')

    async def look(self) -> None:
        visitors, heard = self.visitors(), dict[str, float]()
        for client, token in visitors:
            # A viewer of SPICE has several connections, of which only the one for its keys says much.
            heard[token.hash] = max(client.heard, heard.get(token.hash, client.heard))
        for client, token in visitors:
            if heard[token.hash] + self.options.idle_timeout < time.monotonic():
                client.end('The console was idle for too long.')
        if visitors:
            there = await self.asked(
                self.consoles.open_places, {(token.server_id, token.host) for _, token in visitors}
            )
            now = await self.asked(self.consoles.clock) if self.sessions_end else None
            for client, token in visitors:
                if (token.server_id, token.host) not in there:
                    client.end('The server is no longer running there.')
                if now is not None and token.expires_at <= now:
                    client.end('The token has expired.')


def refusal(status: int, reason: str) -> Response:
    """What a client of WebSockets is answered. Nothing follows, for some, such as tempest, would take it for frames."""
    return Response(status, reason, Headers({'Content-Length': '0', 'Connection': 'close'}))


def _subprotocol(client: object, offered: Sequence[Subprotocol]) -> Subprotocol | None:
    """Clients that ask for one get `binary`, as older ones of noVNC expect."""
    return BINARY if BINARY in offered else None


async def _keys(client: Client, writer: StreamWriter) -> str:
    """Let the console have what the client says."""
    async for message in client:
        client.heard = time.monotonic()
        writer.write(message if isinstance(message, bytes) else message.encode())
        await writer.drain()
    return 'The client has disconnected.'


async def _output(reader: StreamReader, client: Client) -> str:
    """Let the client have what the console says."""
    while data := await reader.read(CHUNK):
        await client.send(data)
    return 'The console has ended.'


async def _first_of(*each: Awaitable[str]) -> str:
    """What the first of them says that is done; the others are not done any more."""
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
