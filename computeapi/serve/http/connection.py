"""The connection of a client: its requests, and their order."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import io
import math
import socket
from collections import deque
from http import HTTPStatus

import httptools

from computeapi.serve.http.body import StreamedBody
from computeapi.serve.http.exchange import ABRUPT, Exchange, part, refusal
from computeapi.serve.http.hub import ENVIRON, Hub
from computeapi.serve.http.keep_alive import SHORT, KeepAliveThread
from computeapi.serve.http.request import Environ, WireRequest, add_body, whole

MAX_HEAD_BYTES = 64 * 1024
"""The longest request line with headers that is buffered, in bytes: tokens and names of projects can make it long. Also
the limit for bytes between the pieces of a body, or after it, that are not part of it."""
BUFFERED = 128 * 1024
"""The longest body that is buffered before the app is called, in bytes; the JSON of a request is shorter."""
PACE = 64 * 1024
"""The bytes of a longer transfer that must pass within each timeout."""
PIPELINED = 100
"""How many requests may wait for the response to the one before."""
CONTINUE = b'HTTP/1.1 100 Continue\r\n\r\n'


class ClientConnection(WireRequest, asyncio.Protocol):
    """The connection of a client, which answers requests in the order in which they arrive.

    keep_alive: the thread that uses the connection exclusively, if one does.  is_owed_word: the client waits for 100
    Continue.
    """

    transport: asyncio.Transport

    def __init__(self, hub: Hub):
        super().__init__()
        self.hub = hub
        self.keep_alive: KeepAliveThread | None = None
        self.current: Exchange | None = None
        self.queue: deque[Exchange] = deque()
        self.deadline = math.inf
        # The next request, as far as it has arrived: first its headers, then the exchange and pieces of its body.
        self.in_head, self.size, self.beside = False, 0, 0
        self.arriving: Exchange | None = None
        self.pieces: list[bytes] = []
        self.paused = self.ignores_data = self.clogged = self.finished = self.is_owed_word = False
        self.refused: HTTPStatus | None = None
        self.unsent = 0

    # ------------------------------------------------------------------ the connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport
        # Otherwise, a short last piece of a response would wait until the client has acknowledged the rest.
        transport.get_extra_info('socket').setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # With this, pause_writing and resume_writing tell whether the client has received all of a response.
        transport.set_write_buffer_limits(high=0)
        local, peer = transport.get_extra_info('sockname'), transport.get_extra_info('peername')
        self.address = peer[0] if peer else ''
        self.known = {
            **ENVIRON,
            'SERVER_NAME': local[0],
            'SERVER_PORT': str(local[1]),
            'REMOTE_ADDR': self.address,
            'REMOTE_PORT': str(peer[1]) if peer else '',
        }
        if self.hub.enter(self, self.address):
            self.await_client(self.hub.options.keepalive_timeout)
        else:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.keep_alive is not None:
            self.keep_alive.end()
        self.hub.discard(self, self.address)
        for exchange in (self.current, self.arriving, *self.queue):
            if exchange is not None and exchange.body is not None:
                exchange.body.end(broken=True)
        self.queue.clear()
        if self.current is not None and (self.clogged or self.current.timer is not None):
            self.hub.close(self.current)

    def leave(self) -> None:
        """Close at once, to make room for others."""
        self.hub.discard(self, self.address)
        self.transport.abort()

    def finish(self) -> None:
        """Answer the requests so far, and no more; none that is delayed."""
        if self.current is not None and self.current.delayed:
            return self.leave()
        self.finished = True
        self.end_feed()
        if self.keep_alive is not None:
            self.keep_alive.stop_reading()
        if self.current is None and not self.clogged:
            self.transport.close()

    def end_feed(self) -> None:
        """End a response that would continue forever."""
        if self.current is not None and self.current.feed is not None:
            self.current.feed.end()

    def await_client(self, seconds: float) -> None:
        self.deadline = self.hub.loop.time() + seconds
        self.hub.wait(self, self.address)

    def await_app(self) -> None:
        self.deadline = math.inf
        self.hub.work(self, self.address)

    def expire(self) -> None:
        """React to a missed deadline."""
        if self.clogged:
            unsent = self.transport.get_write_buffer_size()
            if self.unsent - unsent < PACE:
                return self.leave()
            self.unsent = unsent
            return self.await_client(self.hub.options.response_timeout)
        if self.in_head or (self.arriving is not None and self.arriving.body is None):
            return self.refuse(HTTPStatus.REQUEST_TIMEOUT)
        self.leave()

    # ------------------------------------------------------------------ what the client sends

    def data_received(self, data: bytes) -> None:
        if self.ignores_data:
            return
        if self.is_at_rest and self.hub.has_spares and len(data) < SHORT and (environ := whole(data, self.known)):
            return self.begin_keep_alive(environ)
        self.beside += len(data)
        try:
            self.parse(data)
        except httptools.HttpParserError:
            if not self.ignores_data:
                self.refuse(HTTPStatus.BAD_REQUEST)
        if self.beside > MAX_HEAD_BYTES and not self.ignores_data:
            self.refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)

    def eof_received(self) -> bool:
        """Whether the connection stays open: a client that sends nothing more may still wait for responses."""
        self.ignores_data = self.finished = True
        if self.arriving is not None and self.arriving.body is not None:
            self.arriving.body.end(broken=True)
        self.end_feed()
        return self.current is not None or self.clogged

    def on_message_begin(self) -> None:
        if self.ignores_data:
            # It arrived together with a request that was refused.
            return
        super().on_message_begin()
        self.in_head, self.beside, self.is_owed_word = True, 0, False
        self.pieces = []
        if self.current is None:
            self.await_client(self.hub.options.request_timeout)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Ignore headers after a body: the app has already been called."""
        if self.in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self.in_head, self.size, self.beside = False, 0, 0
        is_connect = self.parser.get_method() == b'CONNECT'
        if self.ignores_data or (self.parser.should_upgrade() and not is_connect):
            return
        if self.is_ambiguous:
            return self.refuse(HTTPStatus.BAD_REQUEST)
        if is_connect or self.headers.pop('HTTP_TRANSFER_ENCODING', 'chunked').lower() != 'chunked':
            return self.refuse(HTTPStatus.NOT_IMPLEMENTED)
        environ = self.environ(self.known)
        closing = not self.parser.should_keep_alive()
        self.arriving = Exchange(environ, self.deliver, closing=closing)
        expects = self.headers.get('HTTP_EXPECT', '').lower() == '100-continue'
        long = int(self.headers.get('CONTENT_LENGTH') or 0) > BUFFERED
        if long:
            self.stream(expects)
        elif expects and self.current is None:
            self.transport.write(CONTINUE)
        else:
            self.is_owed_word = expects

    def on_body(self, data: bytes) -> None:
        exchange = self.arriving
        if exchange is None or self.ignores_data:
            return
        self.size += len(data)
        self.beside = 0
        if exchange.body is not None:
            exchange.body.feed(data)
            self.pause_or_resume()
            if self.size >= PACE and exchange is self.current and self.deadline < math.inf:
                self.size = 0
                self.await_client(self.hub.options.request_timeout)
            return
        self.pieces.append(data)
        if self.size > BUFFERED:
            self.stream(expects=False)

    def on_message_complete(self) -> None:
        exchange, self.arriving = self.arriving, None
        self.beside = 0
        if exchange is None or self.ignores_data:
            return
        if exchange.body is not None:
            exchange.body.end()
            if exchange is self.current:
                self.await_app()
        else:
            add_body(exchange.environ, b''.join(self.pieces))
            self.enqueue(exchange)
        if exchange.closing:
            self.ignores_data = True

    def stream(self, expects: bool) -> None:
        """Let the app read the body of the request while it arrives."""
        assert self.arriving is not None
        exchange, self.size = self.arriving, 0
        wanted = functools.partial(self.hub.call_soon, self.body_wanted, exchange, [expects])
        exchange.body = StreamedBody(wanted)
        for piece in self.pieces:
            exchange.body.feed(piece)
        exchange.environ['wsgi.input'] = io.BufferedReader(exchange.body, PACE)
        self.enqueue(exchange)

    def body_wanted(self, exchange: Exchange, expects: list[bool]) -> None:
        """The app waits for more of the body. Send 100 Continue, if the client waits for it."""
        if exchange is not self.arriving or self.transport.is_closing():
            return
        if expects[0]:
            expects[0] = False
            self.transport.write(CONTINUE)
        self.pause_or_resume()
        if self.deadline == math.inf:
            self.await_client(self.hub.options.request_timeout)

    def pause_or_resume(self) -> None:
        """Stop reading while there is more than can be processed."""
        body = self.arriving.body if self.arriving is not None else None
        busy = bool(self.queue) or (body is not None and body.full)
        if busy and not self.paused:
            self.transport.pause_reading()
            if body is not None and self.current is self.arriving:
                self.await_app()
        elif self.paused and not busy:
            self.transport.resume_reading()
        self.paused = busy

    # ------------------------------------------------------------------ keep-alive

    @property
    def is_at_rest(self) -> bool:
        """Whether all requests are answered, and nothing of the next one has arrived."""
        busy = self.current is not None or self.in_head or self.arriving is not None
        return not (busy or self.paused or self.clogged or self.finished)

    def begin_keep_alive(self, environ: Environ) -> None:
        self.keep_alive = KeepAliveThread(self, environ)
        self.current = self.keep_alive.exchange
        self.transport.pause_reading()
        self.await_app()
        self.hub.threads.run(self.keep_alive.run)

    def take_back(self, exchange: Exchange) -> None:
        """Return the connection to the loop, which sends the response."""
        self.keep_alive, self.current = None, exchange
        exchange.send = self.deliver
        self.transport.resume_reading()

    def listen(self, data: bytes | None) -> None:
        """Return the connection to the loop, after all responses. data: what the client has sent since; b'' for its
        end."""
        self.keep_alive = None
        self.transport.resume_reading()
        self.next()
        if self.transport.is_closing() or data is None:
            return
        if data:
            self.data_received(data)
        elif not self.eof_received():
            self.transport.close()

    # ------------------------------------------------------------------ what the app answers

    def enqueue(self, exchange: Exchange) -> None:
        """Have the request answered when it is its turn."""
        self.queue.append(exchange)
        if self.current is None:
            self.next()
        elif len(self.queue) > PIPELINED:
            self.ignores_data, exchange.closing = True, True
        else:
            self.pause_or_resume()

    def next(self) -> None:
        """Begin with the next request, if there is one."""
        if not self.queue:
            self.current = None
            if self.refused is not None:
                return self.hang_up(self.refused)
            if self.finished or self.ignores_data:
                return self.transport.close()
            if self.is_owed_word and self.arriving is not None:
                self.transport.write(CONTINUE)
            self.pause_or_resume()
            return self.await_client(
                self.hub.options.request_timeout
                if self.in_head or self.arriving
                else self.hub.options.keepalive_timeout
            )
        self.current = self.queue.popleft()
        self.pause_or_resume()
        self.await_app()
        self.hub.begin(self.current)

    def deliver(self, exchange: Exchange, data: bytes, last: bool) -> None:
        """Send a piece of the response, from the thread that created it."""
        self.hub.call_soon(self.send, exchange, data, last)

    def send(self, exchange: Exchange, data: bytes, last: bool) -> None:
        """Send a piece of the response; the next one waits until the client has received it."""
        if self.transport.is_closing():
            if not last:
                self.hub.threads.run(exchange.close)
            return
        self.last = last
        self.transport.write(data)
        if not self.clogged:
            return self.sent()
        self.unsent = self.transport.get_write_buffer_size()
        self.await_client(self.hub.options.response_timeout)

    def pause_writing(self) -> None:
        self.clogged = True

    def resume_writing(self) -> None:
        self.clogged = False
        if self.current is not None and self.unsent:
            self.unsent = 0
            self.sent()

    def sent(self) -> None:
        """The client has received everything so far."""
        assert self.current is not None
        if not self.last:
            self.await_app()
            return self.go_on(self.current)
        if not self.current.closing:
            return self.next()
        exchange, self.current, self.finished = self.current, None, True
        self.queue.clear()
        if self.arriving is exchange:
            self.linger()
        else:
            part(self.transport, abruptly=ABRUPT in exchange.environ)

    def go_on(self, exchange: Exchange) -> None:
        """Request the next piece of a response."""
        if not exchange.resting or exchange.feed is None:
            return self.hub.threads.run(exchange.proceed)
        if self.finished:
            exchange.feed.end()
        self.hub.rest(exchange, exchange.feed)

    def refuse(self, status: HTTPStatus) -> None:
        """Stop reading, and send this status after the outstanding responses."""
        self.ignores_data, self.in_head = True, False
        if self.arriving is not None and self.arriving.body is not None:
            self.arriving.body.end(broken=True)
        self.arriving = None
        self.refused = status
        if self.current is None:
            self.hang_up(status)

    def hang_up(self, status: HTTPStatus) -> None:
        self.transport.write(refusal(status))
        self.linger()

    def linger(self) -> None:
        """Wait until the client has noticed: closing while it still sends would discard the response."""
        self.ignores_data = True
        if self.transport.is_closing():
            return
        with contextlib.suppress(OSError):  # It may be closed already.
            self.transport.write_eof()
        if self.paused:
            self.paused = False
            self.transport.resume_reading()
        self.await_client(self.hub.options.response_timeout)
