"""The database's clock, on which all processes of a service agree.

With clocks of their own, a wrong setting could make processes take a live worker for dead, or a host for down.
"""

import time
from collections.abc import Callable
from datetime import datetime, timedelta

import sqlalchemy as sa

from computeapi.clock import utcnow

# The statements for a database's time: naive UTC, with microseconds.
MOMENTS = {
    'postgresql': sa.text("SELECT clock_timestamp() AT TIME ZONE 'UTC'"),
    'mysql': sa.text('SELECT UTC_TIMESTAMP(6)'),
}
# A slower answer does not say precisely enough when it was given.
MAX_ANSWER_SECONDS = 0.5
ATTEMPTS = 3


class DatabaseClock:
    """`clock()`: the database's time, naive UTC.

    The database is asked periodically; in between the time is extrapolated with a clock that cannot be set, and that
    keeps running while the process is stopped or the machine sleeps.
    """

    def __init__(self, query: Callable[[], datetime], every_seconds: float = 10):
        self.query, self.every_seconds = query, every_seconds
        self.known: tuple[datetime, float] | None = None

    def __call__(self) -> datetime:
        known = self.known
        if known is None or elapsed() - known[1] > self.every_seconds:
            self.known = known = self.look()
        moment, at = known
        return moment + timedelta(seconds=elapsed() - at)

    def look(self) -> tuple[datetime, float]:
        """The database's time, and the value of `elapsed` at that moment."""
        for _ in range(ATTEMPTS):
            asked = elapsed()
            moment, answered = self.query(), elapsed()
            if answered - asked < MAX_ANSWER_SECONDS:
                break
        return moment, (asked + answered) / 2


def elapsed() -> float:
    """Seconds since boot, including the time for which the machine or this process was suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, 'CLOCK_BOOTTIME') else time.monotonic()


def clock_of(dialect: str, query: Callable[[Callable[[sa.Connection], datetime]], datetime]) -> Callable[[], datetime]:
    """The clock of a database that is queried with *query*. SQLite's is that of the one machine on which all its
    processes run."""
    statement = MOMENTS.get(dialect)
    if statement is None:
        return utcnow

    def look(connection: sa.Connection) -> datetime:
        moment: datetime = connection.scalars(statement).one()
        return moment

    return DatabaseClock(lambda: query(look))
