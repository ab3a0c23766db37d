"""The time that a cloud in a test lives by: as it is, standing still, faster, or set by hand."""

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
"""How often, while time runs faster than it does, it is looked whether something is due."""


class CloudClock:
    """`clock()`: naive UTC. With it go the times that the cloud shows and compares, and what it does at some time:
    tokens expire, resizes confirm themselves, deleted servers are reclaimed, states pass.

    What a test waits for really takes its time all the same: limits of requests, retries of neighbours.
    """

    def __init__(self) -> None:
        self._real: Callable[[], datetime] = lambda: datetime.max
        self._moved: Callable[[], None] = lambda: None
        self._look: Callable[[], None] = lambda: None
        self._lock = threading.Lock()
        # What it was, when that was by `elapsed`, and how fast it goes; None: as it really is.
        self._set: tuple[datetime, float, float] | None = None
        self._ticking: Periodic | None = None

    def follow(self, real: Callable[[], datetime]) -> None:
        """The clock to go by as long as nobody says otherwise."""
        self._real = real

    def tell(self, moved: Callable[[], None], look: Callable[[], None]) -> None:
        """Whom to tell that it is suddenly later, or earlier, and who looks what is due."""
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
        """How many of its seconds pass in one: 0 while it stands still."""
        return 1.0 if self._set is None else self._set[2]

    def freeze(self, moment: datetime | None = None) -> None:
        """Stand still, now or at a moment, in UTC where it says no zone; Invalid for one too far away."""
        self.change(moment=moment, rate=0)

    def step(self, seconds: float = 0, **time: float) -> None:
        """Be later by so much time: step(90), or as timedelta takes it: step(hours=2); earlier, if it is below 0.
        Invalid."""
        try:
            self.change(moment=self() + timedelta(seconds=seconds, **time))
        except OverflowError:
            raise _too_far() from None

    def run(self, rate: float = 1.0) -> None:
        """Go on at this rate: 60 makes a second of what takes a minute. Invalid for one below 0 or too high."""
        self.change(rate=rate)

    def change(self, *, moment: datetime | None = None, rate: float | None = None) -> None:
        """Be set to a moment, or to another rate, or both; Invalid."""
        with self._lock:
            moment, rate = self() if moment is None else naive(moment), self.rate if rate is None else rate
            if not FIRST <= moment <= LAST:
                raise _too_far()
            if not 0 <= rate <= FASTEST:
                raise Invalid(f'The rate of the clock must be 0 to {FASTEST}.')
            self._set = moment, elapsed(), rate
            self._tick()
        self._moved()

    def reset(self) -> None:
        """Be right again."""
        if self._set is not None:
            self.stop()
            self._moved()

    def _tick(self) -> None:
        """Have somebody look what is due more often than real time would ask for, if time goes so fast."""
        if self._ticking is not None:
            self._ticking.stop(patience=1)
            self._ticking = None
        if self.rate > 1:
            self._ticking = Periodic('fast-clock', self._look, TICK_SECONDS)
            self._ticking.start()

    def stop(self) -> None:
        """Nobody needs it any more."""
        with self._lock:
            self._set = None
            self._tick()


def _too_far() -> Invalid:
    return Invalid(f'The clock can be set to moments from {FIRST:%Y-%m-%d} to {LAST:%Y-%m-%d}.')
