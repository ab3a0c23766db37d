"""Who fails to log in has to wait before the next attempt, and longer each time."""

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from computeapi.errors import NotAuthenticated, TooManyAttempts

FREE = 5
"""How many failures cost nothing: people mistype."""
LONGEST_PAUSE = 60.0
FORGOTTEN = 900.0
"""After how many seconds without another one the failures of a caller are forgotten."""
MOST_CALLERS = 10_000


class Failures(NamedTuple):
    """How often a caller failed, and when it did so last."""

    times: int
    last: float

    @property
    def pause(self) -> float:
        """For how many seconds nothing that it sends is looked at."""
        return 0.0 if self.times < FREE else min(2.0 ** (self.times - FREE), LONGEST_PAUSE)


class Attempts:
    """The failures of late, by caller: a user and the address that it is said to come from.

    So nobody is kept out by what is tried elsewhere. Memory is bounded: the oldest failures make room for others.
    Who sends many attempts at once gains nothing: no more of them are looked at together than may fail without a pause,
    and the others wait for what comes out.
    clock: seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float]):
        self.clock, self.lock = clock, threading.Condition()
        self.failures: OrderedDict[Hashable, Failures] = OrderedDict()
        # How many attempts of a caller are being looked at.
        self.under_way: Counter[Hashable] = Counter()

    @contextmanager
    def counted(self, caller: Hashable) -> Iterator[None]:
        """An attempt of the caller, which fails with NotAuthenticated; TooManyAttempts if it has to wait."""
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
        """How many attempts of the caller may be looked at together."""
        failures = self.failures.get(caller)
        return max(FREE - failures.times, 1) if failures else FREE

    def _check(self, caller: Hashable) -> None:
        failures = self.failures.get(caller)
        left = failures.last + failures.pause - self.clock() if failures else 0
        if left > 0:
            raise TooManyAttempts(seconds=int(left) + 1)

    def note(self, caller: Hashable) -> None:
        """The caller failed once more."""
        now = self.clock()
        with self.lock:
            before = self.failures.pop(caller, None)
            times = before.times if before and now - before.last < FORGOTTEN else 0
            self.failures[caller] = Failures(times + 1, now)
            if len(self.failures) > MOST_CALLERS:
                self.failures.popitem(last=False)

    def forget(self) -> None:
        with self.lock:
            self.failures.clear()
