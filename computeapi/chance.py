"""What is made up: ids, addresses, passwords. It is the system's chance, or a source's that somebody sets.

What opens something to whoever can guess it is no business of this module, for a source may be known to others: tokens,
keys and the like are made by `secrets`, and what tells processes from each other by `uuid`.
"""

import base64
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeVar

T = TypeVar('T')

MORE_BITS = 64
"""So many more than a choice needs, and nobody can see that it prefers some."""
PASSWORD_BYTES = 12
VERSION_MASK, VERSION_4 = 0xF000 << 64 | 0xC000 << 48, 0x4000 << 64 | 0x8000 << 48
"""The bits of a UUID that tell its version and its variant, and what they are in those that are made up."""


class ChanceSource(Protocol):
    """repeatable: whether it is the same again where the same is asked."""

    repeatable: bool

    def bits(self, count: int) -> int:
        """A number of so many bits, another one each time."""

    def apart(self, *names: str) -> 'ChanceSource':
        """One for something of that name, which may be made by whoever comes first."""


class System:
    """Whatever the system's chance says."""

    repeatable = False

    def bits(self, count: int) -> int:
        return secrets.randbits(count)

    def apart(self, *names: str) -> ChanceSource:
        return self


SYSTEM = System()
_source: ContextVar[ChanceSource] = ContextVar('source', default=SYSTEM)


@contextmanager
def drawn_from(source: ChanceSource) -> Iterator[None]:
    """What this thread makes up in the block comes from there."""
    token = _source.set(source)
    try:
        yield
    finally:
        _source.reset(token)


@contextmanager
def apart(*names: str) -> Iterator[None]:
    """In the block something of that name is made, which is to be the same whoever happens to make it."""
    with drawn_from(_source.get().apart(*names)):
        yield


def is_repeatable() -> bool:
    """Whether the same is to be made up again where the same is asked, in whatever order."""
    return _source.get().repeatable


def bits(count: int) -> int:
    """A number of so many bits."""
    return _source.get().bits(count)


def below(bound: int) -> int:
    """A number from 0 on."""
    return bits(bound.bit_length() + MORE_BITS) % bound


def choice(items: Sequence[T]) -> T:
    return items[below(len(items))]


def shuffled(items: Iterable[T]) -> list[T]:
    return sorted(items, key=lambda item: bits(MORE_BITS))


def new_id() -> str:
    """A UUID of version 4; uuid.UUID takes three times as long for it."""
    digits = f'{bits(128) & ~VERSION_MASK | VERSION_4:032x}'
    return f'{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}'


def new_hex_id() -> str:
    """The same without dashes."""
    return new_id().replace('-', '')


def password(user: str) -> str:
    """One for the user of that name, whoever else is given one: 16 letters, digits, - and _."""
    with apart('password', user):
        return base64.urlsafe_b64encode(bits(8 * PASSWORD_BYTES).to_bytes(PASSWORD_BYTES)).decode()
