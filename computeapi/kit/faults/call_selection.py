"""Selects some of many calls: by chance, by number, by time."""

import math
import random
import threading
from collections.abc import Callable
from datetime import datetime, timedelta


class CallSelection:
    """Decides for each call whether it is hit; thread-safe.

    probability: of a hit, drawn with *seed*, so that the same calls are hit the next time.  nth: the first call that
    can be hit.  count: the maximum number of hits; 1 if only `nth` is given.  after, lasting: in seconds, when calls
    begin to count, and for how long they do.
    """

    def __init__(
        self,
        clock: Callable[[], datetime],
        *,
        probability: float = 1.0,
        seed: int = 0,
        nth: int | None = None,
        count: int | None = None,
        after: float = 0.0,
        lasting: float | None = None,
    ):
        self.clock, self.probability, self.random = clock, probability, random.Random(seed)
        self.first, self.most = nth or 1, count or (1 if nth else None)
        self.begin = clock() + timedelta(seconds=after) if after else None
        self.end = None if lasting is None else (self.begin or clock()) + timedelta(seconds=lasting)
        self.calls = self.hits = 0
        self._lock = threading.Lock()

    def take(self) -> bool:
        """Count a call; returns whether it is hit."""
        with self._lock:
            if not self._timely():
                return False
            self.calls += 1
            if self.calls < self.first or (self.most is not None and self.hits >= self.most):
                return False
            if self.probability < 1 and self.random.random() >= self.probability:
                return False
            self.hits += 1
            return True

    def left(self) -> float:
        """For how many more seconds calls count."""
        return math.inf if self.end is None else max(0.0, (self.end - self.clock()).total_seconds())

    def _timely(self) -> bool:
        if self.begin is None and self.end is None:
            return True
        now = self.clock()
        return (self.begin is None or self.begin <= now) and (self.end is None or now < self.end)
