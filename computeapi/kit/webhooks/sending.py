"""One delivery of a webhook: signed as the Standard Webhooks specification has it, and bounded in every way."""

import base64
import binascii
import hashlib
import hmac
import io
import secrets
import socket
import ssl
import time
from contextlib import suppress
from http.client import HTTPException, HTTPResponse
from typing import Any

from computeapi.errors import Invalid
from computeapi.kit.webhooks.destinations import HookDestinations, HookTarget

SECRET = 'whsec_'
SHORTEST_KEY, LONGEST_KEY = 24, 64
"""Bytes of a key, as the specification has them."""
ATTEMPT_SECONDS = 10.0
"""For how long an attempt may last, from the connection to the end of the headers of the answer."""
NO_ANSWER = (OSError, HTTPException)
"""What an attempt ends with that came to no answer."""


def new_secret() -> str:
    return SECRET + base64.b64encode(secrets.token_bytes(32)).decode()


def key_of(secret: str) -> bytes:
    """The key that a secret stands for: whsec_ and base64 of 24 to 64 bytes. Invalid, without telling the secret."""
    try:
        key = base64.b64decode(secret.removeprefix(SECRET), validate=True)
    except (binascii.Error, ValueError):
        key = b''
    if not secret.startswith(SECRET) or not SHORTEST_KEY <= len(key) <= LONGEST_KEY:
        raise Invalid(
            f'The secret of a webhook is {SECRET} followed by {SHORTEST_KEY} to {LONGEST_KEY} bytes in base64.'
        )
    return key


def signed(key: bytes, message_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The headers by which the receiver knows whose message it is, and that it is new."""
    digest = hmac.digest(key, f'{message_id}.{timestamp}.'.encode() + body, hashlib.sha256)
    return {
        'webhook-id': message_id,
        'webhook-timestamp': str(timestamp),
        'webhook-signature': f'v1,{base64.b64encode(digest).decode()}',
    }


class Post:
    """One POST of JSON on a connection of its own. `cut` ends it from any thread."""

    def __init__(self, target: HookTarget):
        self.target = target
        self._connection: socket.socket | None = None
        self._is_cut = False

    def send(self, headers: dict[str, str], body: bytes, destinations: HookDestinations) -> int:
        """The status of the answer, of which nothing else is read: no redirect is followed. NO_ANSWER."""
        until = time.monotonic() + ATTEMPT_SECONDS
        with self._prepared(destinations.connect(self.target, until)) as connection:
            self._connection = connection
            if self._is_cut:
                raise ConnectionAbortedError('The webhook was removed.')
            timed = TimedSocket(connection, until)
            timed.greet()
            timed.sendall(_head(self.target, headers, body) + body)
            with HTTPResponse(timed, method='POST') as answer:  # type: ignore[arg-type]
                answer.begin()
                return answer.status

    def _prepared(self, connection: socket.socket) -> socket.socket:
        """Ready to be encrypted, if it is to be, by `greet`."""
        if self.target.scheme != 'https':
            return connection
        context = ssl.create_default_context()
        return context.wrap_socket(connection, server_hostname=self.target.host, do_handshake_on_connect=False)

    def cut(self) -> None:
        """Let it fail, wherever it is."""
        self._is_cut = True
        if self._connection is not None:
            with suppress(OSError):
                self._connection.shutdown(socket.SHUT_RDWR)


class TimedSocket(io.RawIOBase):
    """A connection on which all that is sent and read must be over at some time: each wait is as long as is left."""

    def __init__(self, connection: socket.socket, until: float):
        self.connection, self.until = connection, until

    def _hurry(self) -> None:
        left = self.until - time.monotonic()
        if left <= 0:
            raise TimeoutError(f'No response within {ATTEMPT_SECONDS:g} s.')
        self.connection.settimeout(left)

    def greet(self) -> None:
        """Agree on keys, where it is encrypted."""
        if isinstance(self.connection, ssl.SSLSocket):
            self._hurry()
            self.connection.do_handshake()

    def sendall(self, data: bytes) -> None:
        self._hurry()
        self.connection.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._hurry()
        return self.connection.recv_into(buffer)


def _head(target: HookTarget, headers: dict[str, str], body: bytes) -> bytes:
    fixed = {
        'Host': target.authority,
        'User-Agent': 'computeapi',
        'Content-Type': 'application/json',
        'Content-Length': str(len(body)),
        'Connection': 'close',
    }
    lines = [f'POST {target.path} HTTP/1.1', *(f'{name}: {value}' for name, value in (fixed | headers).items())]
    return '\r\n'.join([*lines, '', '']).encode('ascii')
