"""Hosts that do not answer, or only after a long time: they must not occupy the threads that work for other hosts."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from computeapi.bus import Unanswered

# An agent that has not answered by then is down or unhealthy. The broker does not keep the message for longer.
ANSWER_SECONDS = 20.0
# How long no calls are sent to a host that did not answer.
OPEN_SECONDS = 5.0
# The response time above which a host counts as slow, and how long it does so.
SLOW_SECONDS, SLOWNESS_SECONDS = 10.0, 60.0


class HostBusy(Unanswered):
    """A slow host already has a call."""


class CircuitBreaker:
    """The hosts that did not answer recently: one call at a time tests whether a host answers again."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self.clock, self.until, self.lock = clock, dict[str, float](), threading.Lock()

    def check(self, host: str) -> None:
        """Unanswered for a host that no calls are sent to for now."""
        with self.lock:
            until = self.until.get(host)
            if until is None:
                return
            if self.clock() < until:
                raise Unanswered(f'{host} did not respond recently')
            # Others wait until this call has ended, or has at least had its time.
            self.until[host] = self.clock() + ANSWER_SECONDS + OPEN_SECONDS

    def begin(self, host: str) -> None:
        with self.lock:
            self.until[host] = self.clock() + OPEN_SECONDS

    def end(self, host: str) -> None:
        with self.lock:
            self.until.pop(host, None)


class SlowHosts:
    """The hosts that answered slowly: each gets one call at a time."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self.clock, self.until, self.lock = clock, dict[str, float](), threading.Lock()
        self.calls = Counter[str]()

    @contextmanager
    def calling(self, host: str) -> Iterator[None]:
        """Wraps a call; HostBusy for one that has to wait."""
        began = self.clock()
        with self.lock:
            if self.calls[host] and began < self.until.get(host, began):
                raise HostBusy(f'{host} responds slowly, and has another call')
            self.calls[host] += 1
        try:
            yield
            if self.clock() - began > SLOW_SECONDS:
                self.until[host] = self.clock() + SLOWNESS_SECONDS
        finally:
            with self.lock:
                self.calls[host] -= 1
