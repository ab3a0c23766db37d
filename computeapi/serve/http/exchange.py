"""A request and its response, between the event loop and the thread in which the app runs."""

from __future__ import annotations

import functools
import logging
import re
import socket
import struct
import time
from asyncio import TimerHandle, Transport
from collections.abc import Callable, Iterable, Iterator
from email.utils import formatdate
from http import HTTPStatus
from typing import Any

from computeapi.serve.http.body import StreamedBody
from computeapi.serve.http.feed import Feed
from computeapi.web.filters import WSGIApp, close

LOG = logging.getLogger(__name__)

PIECE = 256 * 1024
"""How many bytes of a long response are created at a time."""
ABRUPT = 'computeapi.abrupt'
"""In the environ if the connection, where it ends with the response, is reset instead of closed."""
FORBIDDEN = re.compile('[\r\n\0]')

Headers = list[tuple[str, str]]


class NoAnswer(BaseException):
    """Raised by an app instead of a response: the connection is closed without one."""


class Later(BaseException):
    """Raised by an app to be called again after a number of seconds, in which no thread is occupied."""

    def __init__(self, seconds: float):
        super().__init__(f'in {seconds:g} s')
        self.seconds = seconds


class Exchange:
    """A request and the response of the app, in pieces as they are sent.

    body: of the request, if the app reads it while it arrives.  send: called with (self, data, last) in the working
    thread.
    closing: whether the connection ends with this response.
    """

    def __init__(self, environ: dict[str, Any], send: Callable[[Exchange, bytes, bool], None], *, closing: bool):
        self.environ, self.send, self.closing = environ, send, closing
        self.body: StreamedBody | None = None
        self.status = ''
        self.headers: Headers = []
        self.answer: Iterable[bytes] | None = None
        self.pieces: Iterator[bytes] = iter(())
        # A response without end, and the timer that requests its next piece while there is none.
        self.feed: Feed | None = None
        self.resting = False
        self.timer: TimerHandle | None = None
        # The app asked to be called again later.
        self.delayed = False
        self.begun = False
        self.bodiless = self.chunked = False
        self.owed: int | None = None

    def begin(self, app: WSGIApp) -> None:
        """Let the app answer, up to the first piece; in a thread. Raises Later."""
        self._pass_on(lambda: self._begin(app))

    def proceed(self) -> None:
        """Create the next piece; in a thread."""
        self._pass_on(self._piece)

    def close(self) -> None:
        """Tell the app that the rest is not needed; in a thread."""
        answer, self.answer, self.pieces = self.answer, None, iter(())
        try:
            close(answer)
        except Exception:
            LOG.exception('Unexpected error while a response was discarded')

    def _pass_on(self, make: Callable[[], tuple[bytes, bool]]) -> None:
        try:
            data, last = make()
        except NoAnswer:
            self.closing, data, last = True, b'', True
        except Exception:
            LOG.exception('Unexpected error outside the app')
            data, last = self._failed(), True
        if last:
            self.close()
        self.send(self, data, last)

    def _failed(self) -> bytes:
        self.closing = True
        if self.begun:
            return b''
        self.status, self.headers = '500 Internal Server Error', []
        return self._framed(b'', last=True)

    def _begin(self, app: WSGIApp) -> tuple[bytes, bool]:
        self.answer = app(self.environ, self._start_response)
        if isinstance(self.answer, (list, tuple)):
            return self._framed(b''.join(self.answer), last=True), True
        self.feed = self.answer if isinstance(self.answer, Feed) else None
        self.pieces = iter(self.answer)
        return self._piece()

    def _piece(self) -> tuple[bytes, bool]:
        parts, size, last = [], 0, True
        self.resting = False
        for part in self.pieces:
            if not part and self.feed is not None:
                self.resting, last = True, False
                break
            parts.append(part)
            size += len(part)
            if size >= PIECE:
                last = False
                break
        return self._framed(b''.join(parts), last=last), last

    def _start_response(self, status: str, headers: Headers, exc_info: Any = None) -> Callable[[bytes], None]:
        if exc_info and self.begun:
            raise exc_info[1].with_traceback(exc_info[2])
        self.status, self.headers = status, headers
        return self._write

    def _write(self, data: bytes) -> None:
        raise NotImplementedError('The app must return its response instead of writing it.')

    # ------------------------------------------------------------------ framing

    def _framed(self, data: bytes, *, last: bool) -> bytes:
        """The data as it is sent, with the headers before the first piece."""
        head = b'' if self.begun else self._head(len(data) if last else None)
        self.begun = True
        if self.bodiless:
            return head
        if self.chunked:
            data = b'%x\r\n%b\r\n' % (len(data), data) if data else b''
            return b''.join([head, data, b'0\r\n\r\n' if last else b''])
        if self.owed is not None:
            data = data[: self.owed]
            self.owed -= len(data)
            # If a body is shorter than its Content-Length, closing the connection is the only sign of it.
            self.closing = self.closing or (last and self.owed > 0)
        return head + data

    def _head(self, length: int | None) -> bytes:
        """The status line and the headers. length: of the complete body, if it is known."""
        names = {name.lower(): value for name, value in self.headers}
        own = [] if 'date' in names else [('Date', date(int(time.time())))]
        code = self.status[:3]
        no_content = code in ('204', '304') or code[:1] == '1'
        self.bodiless = no_content or self.environ['REQUEST_METHOD'] == 'HEAD'
        if 'content-length' in names:
            self.owed = int(names['content-length'])
        elif not self.bodiless and length is not None:
            own.append(('Content-Length', str(length)))
        elif not self.bodiless and self.environ['SERVER_PROTOCOL'] == 'HTTP/1.1':
            self.chunked = True
            own.append(('Transfer-Encoding', 'chunked'))
        elif not self.bodiless:
            self.closing = True
        # The rest of a body that the app did not read would be taken for the next request.
        self.closing = self.closing or (self.body is not None and not self.body.complete)
        if self.closing:
            own.append(('Connection', 'close'))
        elif self.environ['SERVER_PROTOCOL'] != 'HTTP/1.1':
            own.append(('Connection', 'keep-alive'))
        return head(self.status, [*self.headers, *own])


def head(status: str, headers: Headers) -> bytes:
    """The status line and headers as bytes; ValueError if one of them contains a line break or NUL."""
    lines = [f'HTTP/1.1 {status}', *[f'{name}: {value}' for name, value in headers]]
    if any(map(FORBIDDEN.search, lines)):
        raise ValueError('There is a line break in a header.')
    return '\r\n'.join([*lines, '\r\n']).encode('latin-1')


def refusal(status: HTTPStatus) -> bytes:
    """The complete response to a request that does not reach the app."""
    text = status.phrase.encode()
    headers = [
        ('Content-Type', 'text/plain'),
        ('Content-Length', str(len(text))),
        ('Date', date(int(time.time()))),
        ('Connection', 'close'),
    ]
    return head(f'{status} {status.phrase}', headers) + text


@functools.lru_cache(maxsize=1)
def date(second: int) -> str:
    return formatdate(second, usegmt=True)


def part(transport: Transport, *, abruptly: bool) -> None:
    """Close a connection; abruptly: with a RST, as a machine does that has lost it."""
    if abruptly:
        transport.get_extra_info('socket').setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        transport.abort()
    else:
        transport.close()
