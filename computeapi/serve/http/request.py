"""The head of a request, as llhttp reads it and WSGI wants it."""

import functools
import io
from collections import defaultdict
from typing import Any
from urllib.parse import unquote_to_bytes

import httptools

Environ = dict[str, Any]


class WireRequest:
    """One request after the other.

    parser: llhttp's, which calls the methods that begin with `on_`.  deaf: what comes is nothing any more.
    """

    deaf = False

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
        # A proxy may set a header with dashes and let through the client's own with underscores: alike in WSGI.
        if key := environ_key(name):
            self.texts[key].append(value.decode('latin-1'))

    def on_headers_complete(self) -> None:
        """Join what came several times, all at once: a head may have tens of thousands of one header."""
        self.headers = {key: ','.join(texts) for key, texts in self.texts.items()}

    @property
    def is_ambiguous(self) -> bool:
        """Whether a proxy may have read another host in it, or another end (RFC 9112, 3.2 and 6.1)."""
        is_old = self.parser.get_http_version() == '1.0'
        return len(self.texts.get('HTTP_HOST', ())) > 1 or (is_old and 'HTTP_TRANSFER_ENCODING' in self.texts)

    def parse(self, data: bytes) -> None:
        """HttpParserError for what is no HTTP. To speak another protocol is an offer; it is not taken, and the head is
        read again without it, for the parser takes what follows for that protocol, and not for a body."""
        rest = memoryview(data)
        while rest:
            try:
                return self.parser.feed_data(rest)
            except httptools.HttpParserUpgrade as upgrade:
                if self.deaf:
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
        """What the app is told of the request, when its head is there. known: of the connection."""
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
    """What WSGI calls a header; nothing for what it cannot tell from another."""
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
    """What arrived in one piece, of which it says whether it is one request that wants an answer and no more."""

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
    """What the app is told of the one request that the data is; None where it is anything else.

    known: of the connection.
    """
    request = WholeRequest()
    try:
        request.parser.feed_data(data)
        environ = request.environ(known) if request.is_plain else None
    except (httptools.HttpParserError, httptools.HttpParserUpgrade):
        return None
    finally:
        # The two know each other: they would wait for the search for garbage.
        del request.parser
    if environ is not None:
        add_body(environ, request.body)
    return environ
