"""The link stage of a SPICE channel: exchange of capabilities, and a ticket whose contents are ignored."""

import functools
import struct
from collections.abc import Callable, Generator
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from computeapi.backends.hypervisor.simulated_consoles.conversation import ProtocolViolation

MAGIC, MAJOR, MINOR = b'REDQ', 2, 2
HEADER = struct.Struct('<4sIII')
REQUEST = struct.Struct('<IBBIII')
REPLY = struct.Struct('<I162sIII')
MAX_BYTES = 4096
# Capabilities: selecting an authentication method, authentication by ticket, mini headers of messages.
CHOICE, BY_TICKET, SHORT_HEADERS = 1 << 0, 1 << 1, 1 << 3
COMMON = CHOICE | BY_TICKET | SHORT_HEADERS
TICKET, KEY_BITS = 1, 1024
FINE, INVALID, OTHER_VERSION, DENIED, UNKNOWN_SESSION, NO_SUCH_CHANNEL = 0, 3, 4, 7, 8, 9


class LinkRequest(NamedTuple):
    """A request for a channel of that kind. session: 0 for a new one.  able: the client's capabilities, as bits."""

    session: int
    kind: int
    number: int
    able: int


class LinkRefused(ProtocolViolation):
    """status: the link error sent to the client."""

    def __init__(self, status: int):
        super().__init__()
        self.status = status


def requested() -> Generator[int, bytes, LinkRequest]:
    """The client's link request; LinkRefused."""
    magic, major, _, size = HEADER.unpack((yield HEADER.size))
    if magic != MAGIC or not REQUEST.size <= size <= MAX_BYTES:
        raise ProtocolViolation
    body = yield size
    if major != MAJOR:
        raise LinkRefused(OTHER_VERSION)
    session, kind, number, common_words, own_words, at = REQUEST.unpack(body[: REQUEST.size])
    if at + 4 * (common_words + own_words) > size:
        raise LinkRefused(INVALID)
    common, *_ = words(body, at, common_words)
    if common & COMMON != COMMON:
        raise LinkRefused(INVALID)
    return LinkRequest(session, kind, number, words(body, at + 4 * common_words, own_words)[0])


def words(body: bytes, at: int, count: int) -> tuple[int, ...]:
    """32-bit numbers; a single 0 if there are none."""
    return struct.unpack_from(f'<{count}I', body, at) if count else (0,)


def admitted(send: Callable[[bytes], None]) -> Generator[int, bytes, None]:
    """Admit any client that can encrypt with the public key; ProtocolViolation otherwise. There is no password."""
    send(reply(FINE))
    [way] = struct.unpack('<I', (yield 4))
    ticket = yield KEY_BITS // 8
    if way != TICKET:
        raise ProtocolViolation
    try:
        key().decrypt(ticket, padding.OAEP(padding.MGF1(SHA1()), SHA1(), None))
    except ValueError:
        send(struct.pack('<I', DENIED))
        raise ProtocolViolation from None
    send(struct.pack('<I', FINE))


def reply(status: int) -> bytes:
    public = b''
    if status == FINE:
        public = key().public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    body = REPLY.pack(status, public, 1, 0, REPLY.size) + struct.pack('<I', COMMON)
    return HEADER.pack(MAGIC, MAJOR, MINOR, len(body)) + body


@functools.cache
def key() -> rsa.RSAPrivateKey:
    """The key for empty tickets: its length is fixed by the protocol, and the process uses one for all links."""
    return rsa.generate_private_key(65537, KEY_BITS)
