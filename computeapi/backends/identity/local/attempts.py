"""Rate limiting of logins: after failures a caller must wait before the next attempt, longer each time."""

import ipaddress
import re
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from computeapi.errors import NotAuthenticated, TooManyAttempts

FREE = 5
"""The number of failures without a delay, because people mistype."""
MAX_PAUSE_SECONDS = 60.0
FORGOTTEN = 900.0
"""The seconds without another failure after which those of a caller are forgotten."""
MAX_CALLERS = 10_000


WITH_PORT = re.compile(r'\[([^]]+)](?::[0-9]+)?|([^:]+):[0-9]+')
"""An address in brackets, with or without a port, or one with a port."""


def origin(address: str | None) -> str | None:
    """What a client's address stands for when its attempts are counted: of an IPv6 address the /64, because a client
    has all addresses of it. A proxy may add a port, or hide the address."""
    found = WITH_PORT.fullmatch(address or '')
    try:
        known = ipaddress.ip_address((found[1] or found[2]) if found else address or '')
    except ValueError:
        return address
    if isinstance(known, ipaddress.IPv6Address):
        return str(known.ipv4_mapped or ipaddress.ip_network((int(known) >> 64 << 64, 64)))
    return str(known)


class Failures(NamedTuple):
    """How often a caller failed, and when it last did."""

    times: int
    last: float

    @property
    def pause(self) -> float:
        """The seconds for which further attempts are rejected without being checked."""
        return 0.0 if self.times < FREE else min(2.0 ** (self.times - FREE), MAX_PAUSE_SECONDS)


class Attempts:
    """Recent failures by caller, which is a user together with the address that requests appear to come from.

    Attempts from elsewhere therefore do not lock a user out. Memory is bounded: the oldest failures are dropped.
    Parallel attempts give no advantage: only as many are checked at a time as may fail without a delay, and the others
    wait for the results.
    clock: a monotonic clock, in seconds.
    """

    def __init__(self, clock: Callable[[], float]):
        self.clock, self.lock = clock, threading.Condition()
        self.failures: OrderedDict[Hashable, Failures] = OrderedDict()
        # The number of a caller's attempts that are being checked.
        self.under_way: Counter[Hashable] = Counter()

    @contextmanager
    def counted(self, caller: Hashable) -> Iterator[None]:
        """Counts an attempt of the caller, which fails with NotAuthenticated; TooManyAttempts if it must wait."""
        self._begin(caller)
        try:
            yield
        except NotAuthenticated:
            self.note(caller)
            raise
        else:
            with self.lock:
                self.failures.pop(caller, None)
        finally:
            self._end(caller)

    def _begin(self, caller: Hashable) -> None:
        with self.lock:
            self._check(caller)
            while self.under_way[caller] >= self._free(caller):
                self.lock.wait()
                self._check(caller)
            self.under_way[caller] += 1

    def _end(self, caller: Hashable) -> None:
        with self.lock:
            self.under_way[caller] -= 1
            if not self.under_way[caller]:
                del self.under_way[caller]
            self.lock.notify_all()

    def _free(self, caller: Hashable) -> int:
        """How many attempts of the caller may be checked at a time."""
        failures = self.failures.get(caller)
        return max(FREE - failures.times, 1) if failures else FREE

    def _check(self, caller: Hashable) -> None:
        failures = self.failures.get(caller)
        left = failures.last + failures.pause - self.clock() if failures else 0
        if left > 0:
            raise TooManyAttempts(seconds=int(left) + 1)

    def note(self, caller: Hashable) -> None:
        """Record a failure of the caller."""
        now = self.clock()
        with self.lock:
            before = self.failures.pop(caller, None)
            times = before.times if before and now - before.last < FORGOTTEN else 0
            self.failures[caller] = Failures(times + 1, now)
            if len(self.failures) > MAX_CALLERS:
                self.failures.popitem(last=False)

    def forget(self) -> None:
        with self.lock:
            self.failures.clear()
