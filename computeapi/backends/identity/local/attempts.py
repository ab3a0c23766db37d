"""Who fails to log in has to wait before the next attempt, and longer each time."""

import threading
from collections import OrderedDict
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
    clock: seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float]):
        self.clock, self.lock = clock, threading.Lock()
        self.failures: OrderedDict[Hashable, Failures] = OrderedDict()

    @contextmanager
    def counted(self, caller: Hashable) -> Iterator[None]:
        """An attempt of the caller, which fails with NotAuthenticated; TooManyAttempts if it has to wait."""
        self.check(caller)
        try:
            yield
        except NotAuthenticated:
            self.note(caller)
            raise
        with self.lock:
            self.failures.pop(caller, None)

    def check(self, caller: Hashable) -> None:
        with self.lock:
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
