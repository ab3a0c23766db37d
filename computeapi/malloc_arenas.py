"""The malloc arenas of the C library. By default each thread has an arena of its own, and memory that one frees is
of no use to the others: with a single arena for all threads, `serve` takes seven MiB less. Python threads seldom
allocate at once.
"""

import ctypes
from contextlib import suppress

M_ARENA_MAX, MAX_ARENAS = -8, 1
"""glibc's name for the limit, and its value."""


def limit() -> None:
    """Limit the arenas of this process, if its C library has any. Call it before threads start."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, MAX_ARENAS)
