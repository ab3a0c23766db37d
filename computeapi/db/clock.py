"""The database's clock, by which all processes of a service agree what time it is.

A process that lives by its own could hold a worker for dead, or a host for down, because of a clock that is set wrong.
"""

import time
from collections.abc import Callable
from datetime import datetime, timedelta

import sqlalchemy as sa

from computeapi.clock import utcnow

# How to ask a database for its time: naive UTC, to the microsecond.
MOMENTS = {
    'postgresql': sa.text("SELECT clock_timestamp() AT TIME ZONE 'UTC'"),
    'mysql': sa.text('SELECT UTC_TIMESTAMP(6)'),
}
# An answer that took longer tells too little of when it was given.
LONGEST_ANSWER_SECONDS = 0.5
ATTEMPTS = 3


class DatabaseClock:
    """`clock()`: the database's time, naive UTC.

    It is asked for now and then; in between it is counted on by a clock that nobody sets, and that goes on while the
    process is stopped or the machine sleeps.
    """

    def __init__(self, ask: Callable[[], datetime], every_seconds: float = 10):
        self.ask, self.every_seconds = ask, every_seconds
        self.known: tuple[datetime, float] | None = None

    def __call__(self) -> datetime:
        known = self.known
        if known is None or elapsed() - known[1] > self.every_seconds:
            self.known = known = self.look()
        moment, at = known
        return moment + timedelta(seconds=elapsed() - at)

    def look(self) -> tuple[datetime, float]:
        """The database's time, and when it was that by `elapsed`."""
        for _ in range(ATTEMPTS):
            asked = elapsed()
            moment, answered = self.ask(), elapsed()
            if answered - asked < LONGEST_ANSWER_SECONDS:
                break
        return moment, (asked + answered) / 2


def elapsed() -> float:
    """Seconds since the machine was started, those included in which it, or this process, stood still."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, 'CLOCK_BOOTTIME') else time.monotonic()


def clock_of(dialect: str, ask: Callable[[Callable[[sa.Connection], datetime]], datetime]) -> Callable[[], datetime]:
    """The clock of a database that is asked like this. SQLite has none but that of the one machine on which all its
    processes are."""
    statement = MOMENTS.get(dialect)
    if statement is None:
        return utcnow

    def look(connection: sa.Connection) -> datetime:
        moment: datetime = connection.scalars(statement).one()
        return moment

    return DatabaseClock(lambda: ask(look))
