"""Converts the headers of a request, as llhttp parses them, to WSGI."""

import functools
import io
from collections import defaultdict
from typing import Any
from urllib.parse import unquote_to_bytes

import httptools

Environ = dict[str, Any]


class WireRequest:
    """Parses one request after the other.

    parser: of llhttp, which calls the methods that begin with `on_`.  ignores_data: all further data is ignored.
    """

    ignores_data = False

    def __init__(self) -> None:
        self.parser = httptools.HttpRequestParser(self)
        self.url = b''
        self.texts: dict[str, list[str]] = {}
        self.headers: dict[str, str] = {}

    def on_message_begin(self) -> None:
        self.url, self.texts = b'', defaultdict(list)

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        # Names with underscores are dropped: in WSGI, they look like those with dashes, which a proxy may have set.
        if key := environ_key(name):
            self.texts[key].append(value.decode('latin-1'))

    def on_headers_complete(self) -> None:
        """Join repeated headers, all at once: there may be tens of thousands of them."""
        self.headers = {key: ','.join(texts) for key, texts in self.texts.items()}

    @property
    def is_ambiguous(self) -> bool:
        """Whether a proxy may have seen another host or another end of the request (RFC 9112, 3.2 and 6.1)."""
        is_old = self.parser.get_http_version() == '1.0'
        return len(self.texts.get('HTTP_HOST', ())) > 1 or (is_old and 'HTTP_TRANSFER_ENCODING' in self.texts)

    def parse(self, data: bytes) -> None:
        """Parse data; HttpParserError if it is not HTTP. A request to upgrade to another protocol is ignored: its
        headers are parsed again without it, because the parser would take what follows for that protocol instead of the
        body."""
        rest = memoryview(data)
        while rest:
            try:
                return self.parser.feed_data(rest)
            except httptools.HttpParserUpgrade as upgrade:
                if self.ignores_data:
                    return
                self.parser.feed_data(self._plain_head())
                rest = rest[upgrade.args[0] :]

    def _plain_head(self) -> bytes:
        lines = [f'{self.parser.get_method().decode()} {self.url.decode()} HTTP/{self.parser.get_http_version()}']
        for key, texts in self.texts.items():
            if key != 'HTTP_UPGRADE':
                lines += [f'{key.removeprefix("HTTP_").replace("_", "-")}: {text}' for text in texts]
        return '\r\n'.join([*lines, '\r\n']).encode('latin-1')

    def environ(self, known: Environ) -> Environ:
        """The environ of the request, when its headers are complete. known: the part of the connection."""
        path, _, query = self.url.partition(b'?')
        if not path.startswith(b'/'):
            path = httptools.parse_url(path).path or b'/' if b'//' in path else path
        return {
            **known,
            **self.headers,
            'REQUEST_METHOD': self.parser.get_method().decode(),
            'SERVER_PROTOCOL': f'HTTP/{self.parser.get_http_version()}',
            'PATH_INFO': (unquote_to_bytes(path) if b'%' in path else path).decode('latin-1'),
            'QUERY_STRING': query.decode('latin-1'),
        }


@functools.lru_cache(maxsize=1024)
def environ_key(name: bytes) -> str:
    """The WSGI name of a header; empty if it would be ambiguous."""
    key = name.decode('latin-1').upper()
    if '_' in key:
        return ''
    key = key.replace('-', '_')
    return key if key in ('CONTENT_TYPE', 'CONTENT_LENGTH') else f'HTTP_{key}'


def add_body(environ: Environ, body: bytes) -> None:
    environ['wsgi.input'] = io.BytesIO(body)
    if body:
        environ['CONTENT_LENGTH'] = str(len(body))


class WholeRequest(WireRequest):
    """A request that arrived in one piece: tells whether it is exactly one ordinary request."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.complete, self.goes_on, self.body = 0, False, False, b''

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.begun += 1

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self.goes_on = self.parser.should_keep_alive()

    def on_body(self, data: bytes) -> None:
        self.body += data

    def on_message_complete(self) -> None:
        self.complete = True

    @property
    def is_plain(self) -> bool:
        unusual = self.is_ambiguous or 'HTTP_EXPECT' in self.headers or 'HTTP_TRANSFER_ENCODING' in self.headers
        return self.complete and self.begun == 1 and self.goes_on and not unusual


def whole(data: bytes, known: Environ) -> Environ | None:
    """The environ, if the data is exactly one ordinary request; None otherwise.

    known: the part of the connection.
    """
    request = WholeRequest()
    try:
        request.parser.feed_data(data)
        environ = request.environ(known) if request.is_plain else None
    except (httptools.HttpParserError, httptools.HttpParserUpgrade):
        return None
    finally:
        # Break the reference cycle, so that no garbage collection is needed.
        del request.parser
    if environ is not None:
        add_body(environ, request.body)
    return environ
