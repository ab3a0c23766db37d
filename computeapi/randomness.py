"""Generates random values: IDs, addresses, passwords. They come from the system's randomness, or from a source that is
set for a block.

Values that grant access to whoever guesses them do not come from here, because a source may be known to others:
`secrets` makes tokens, keys and the like. `uuid` makes the IDs that distinguish processes.
"""

import base64
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeVar

T = TypeVar('T')

MORE_BITS = 64
"""The bits drawn in addition to what a choice needs, so that its bias is not noticeable."""
PASSWORD_BYTES = 12
VERSION_MASK, VERSION_4 = 0xF000 << 64 | 0xC000 << 48, 0x4000 << 64 | 0x8000 << 48
"""The bits of a UUID that hold its version and variant, and their values in a random UUID."""


class RandomSource(Protocol):
    """repeatable: whether the same requests get the same values."""

    repeatable: bool

    def bits(self, count: int) -> int:
        """A number of this many bits, a new one each time."""

    def apart(self, *names: str) -> 'RandomSource':
        """A source for the thing of that name, whichever caller creates it first."""


class System:
    """The system's randomness."""

    repeatable = False

    def bits(self, count: int) -> int:
        return secrets.randbits(count)

    def apart(self, *names: str) -> RandomSource:
        return self


SYSTEM = System()
_source: ContextVar[RandomSource] = ContextVar('source', default=SYSTEM)


@contextmanager
def drawn_from(source: RandomSource) -> Iterator[None]:
    """Draw the random values that this thread generates in the block from *source*."""
    token = _source.set(source)
    try:
        yield
    finally:
        _source.reset(token)


@contextmanager
def apart(*names: str) -> Iterator[None]:
    """In the block, generate values for the thing of that name, which are the same whichever caller creates it."""
    with drawn_from(_source.get().apart(*names)):
        yield


def is_repeatable() -> bool:
    """Whether the same requests are to get the same values, in whatever order they come."""
    return _source.get().repeatable


def bits(count: int) -> int:
    """A number of this many bits."""
    return _source.get().bits(count)


def below(bound: int) -> int:
    """A number from 0 to below *bound*."""
    return bits(bound.bit_length() + MORE_BITS) % bound


def choice(items: Sequence[T]) -> T:
    return items[below(len(items))]


def shuffled(items: Iterable[T]) -> list[T]:
    return sorted(items, key=lambda item: bits(MORE_BITS))


def new_id() -> str:
    """A version 4 UUID; uuid.UUID takes three times as long."""
    digits = f'{bits(128) & ~VERSION_MASK | VERSION_4:032x}'
    return f'{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}'


def new_hex_id() -> str:
    """The same without dashes."""
    return new_id().replace('-', '')


def password(user: str) -> str:
    """A password for the user of that name, independent of other users: 16 letters, digits, - and _."""
    with apart('password', user):
        return base64.urlsafe_b64encode(bits(8 * PASSWORD_BYTES).to_bytes(PASSWORD_BYTES)).decode()
