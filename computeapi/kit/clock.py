"""The clock of a cloud in a test: real time, frozen, faster, or set by hand."""

import threading
from collections.abc import Callable
from datetime import datetime, timedelta

from computeapi.clock import naive
from computeapi.compute.periodic import Periodic
from computeapi.db.clock import elapsed
from computeapi.errors import Invalid

FIRST, LAST = datetime(1971, 1, 1), datetime(9000, 1, 1)
FASTEST = 1_000_000
TICK_SECONDS = 0.05
"""How often to check for due work while the clock runs faster than real time."""


class CloudClock:
    """`clock()` returns naive UTC. It drives the times that the cloud shows and compares, and what it does at certain
    times: tokens expire, resizes are confirmed, deleted servers are reclaimed, transitional states end.

    Waits that are visible to clients still take real time: timeouts of requests, retries to neighbours.
    """

    def __init__(self) -> None:
        self._real: Callable[[], datetime] = lambda: datetime.max
        self._moved: Callable[[], None] = lambda: None
        self._look: Callable[[], None] = lambda: None
        self._lock = threading.Lock()
        # The time of the cloud, the value of `elapsed` at that moment, and the rate; None: real time.
        self._set: tuple[datetime, float, float] | None = None
        self._ticking: Periodic | None = None

    def follow(self, real: Callable[[], datetime]) -> None:
        """Set the clock to use unless another time is set."""
        self._real = real

    def on_change(self, moved: Callable[[], None], look: Callable[[], None]) -> None:
        """Set the callbacks for when the time jumps, and for looking for due work."""
        self._moved, self._look = moved, look

    def __call__(self) -> datetime:
        found = self._set
        if found is None:
            return self._real()
        moment, since, rate = found
        if rate == 0:
            return moment
        return min(moment + timedelta(seconds=(elapsed() - since) * rate), LAST)

    now = __call__

    @property
    def rate(self) -> float:
        """How many seconds of the cloud pass in one real second: 0 while it is frozen."""
        return 1.0 if self._set is None else self._set[2]

    def freeze(self, moment: datetime | None = None) -> None:
        """Freeze the clock, now or at a moment (UTC if it has no time zone); Invalid if that is out of range."""
        self.change(moment=moment, rate=0)

    def step(self, seconds: float = 0, **time: float) -> None:
        """Move the clock forward: step(90), or as for timedelta: step(hours=2); back, for negative values. Invalid."""
        try:
            by = timedelta(seconds=seconds, **time)
            self._change(lambda now: now + by)
        except OverflowError:
            raise _too_far() from None

    def run(self, rate: float = 1.0) -> None:
        """Run at this rate: at 60, a minute passes in a second. Invalid if it is negative or too high."""
        self.change(rate=rate)

    def change(self, *, moment: datetime | None = None, rate: float | None = None) -> None:
        """Set the time, the rate, or both; Invalid."""
        self._change(lambda now: now if moment is None else naive(moment), rate)

    def _change(self, moved: Callable[[datetime], datetime], rate: float | None = None) -> None:
        """moved: the new time, from the current one."""
        with self._lock:
            moment, rate = moved(self()), self.rate if rate is None else rate
            if not FIRST <= moment <= LAST:
                raise _too_far()
            if not 0 <= rate <= FASTEST:
                raise Invalid(f'The rate of the clock must be 0 to {FASTEST}.')
            self._set = moment, elapsed(), rate
            self._tick()
        self._moved()

    def reset(self) -> None:
        """Return to real time."""
        if self._set is not None:
            self.stop()
            self._moved()

    def _tick(self) -> None:
        """While the clock runs faster than real time, look for due work more often."""
        if self._ticking is not None:
            self._ticking.stop(timeout=1)
            self._ticking = None
        if self.rate > 1:
            self._ticking = Periodic('fast-clock', self._look, TICK_SECONDS)
            self._ticking.start()

    def stop(self) -> None:
        """Stop the clock's thread and return to real time, at the end of the cloud."""
        with self._lock:
            self._set = None
            self._tick()


def _too_far() -> Invalid:
    return Invalid(f'The clock can be set to times from {FIRST:%Y-%m-%d} to {LAST:%Y-%m-%d}.')
