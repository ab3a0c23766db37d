"""A single delivery of a webhook, signed as in the Standard Webhooks specification, and limited in every respect."""

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
MIN_KEY_LENGTH, MAX_KEY_LENGTH = 24, 64
"""The length of keys in bytes, according to the specification."""
ATTEMPT_SECONDS = 10.0
"""The limit of one attempt, from the connection to the end of the response headers."""
NO_ANSWER = (OSError, HTTPException)
"""Errors of an attempt that got no response."""


def new_secret() -> str:
    return SECRET + base64.b64encode(secrets.token_bytes(32)).decode()


def key_of(secret: str) -> bytes:
    """The key in a secret: whsec_ and base64 of 24 to 64 bytes. Raises Invalid, without revealing the secret."""
    try:
        key = base64.b64decode(secret.removeprefix(SECRET), validate=True)
    except (binascii.Error, ValueError):
        key = b''
    if not secret.startswith(SECRET) or not MIN_KEY_LENGTH <= len(key) <= MAX_KEY_LENGTH:
        raise Invalid(
            f'The secret of a webhook is {SECRET} followed by {MIN_KEY_LENGTH} to {MAX_KEY_LENGTH} bytes in base64.'
        )
    return key


def signed(key: bytes, message_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The headers with which the receiver verifies the sender and the time of a message."""
    digest = hmac.digest(key, f'{message_id}.{timestamp}.'.encode() + body, hashlib.sha256)
    return {
        'webhook-id': message_id,
        'webhook-timestamp': str(timestamp),
        'webhook-signature': f'v1,{base64.b64encode(digest).decode()}',
    }


class Post:
    """A POST of JSON on its own connection. `cut` aborts it, from any thread."""

    def __init__(self, target: HookTarget):
        self.target = target
        self._connection: socket.socket | None = None
        self._is_cut = False

    def send(self, headers: dict[str, str], body: bytes, destinations: HookDestinations) -> int:
        """The status of the response. Nothing else of it is read, and redirects are not followed. Raises NO_ANSWER."""
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
        """Prepare the connection for TLS if the URL requires it; `greet` does the handshake."""
        if self.target.scheme != 'https':
            return connection
        context = ssl.create_default_context()
        return context.wrap_socket(connection, server_hostname=self.target.host, do_handshake_on_connect=False)

    def cut(self) -> None:
        """Abort the request, at any point."""
        self._is_cut = True
        if self._connection is not None:
            with suppress(OSError):
                self._connection.shutdown(socket.SHUT_RDWR)


class TimedSocket(io.RawIOBase):
    """A connection with a deadline for all sending and reading: each wait lasts at most the remaining time."""

    def __init__(self, connection: socket.socket, until: float):
        self.connection, self.until = connection, until

    def _hurry(self) -> None:
        left = self.until - time.monotonic()
        if left <= 0:
            raise TimeoutError(f'No response within {ATTEMPT_SECONDS:g} s.')
        self.connection.settimeout(left)

    def greet(self) -> None:
        """Do the TLS handshake, if the connection is encrypted."""
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
