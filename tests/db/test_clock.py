"""The time of the database, independent of the clock of the process."""

from datetime import datetime, timedelta

import pytest

from computeapi.clock import utcnow
from computeapi.db import clock
from computeapi.db.clock import DatabaseClock

NOON = datetime(2026, 1, 1, 12)


@pytest.fixture
def machine(monkeypatch):
    """A fake monotonic clock: the seconds since the machine was started."""

    class Machine:
        seconds = 1000.0

    monkeypatch.setattr(clock, 'elapsed', lambda: Machine.seconds)
    return Machine


def test_every_database_tells_its_time(store):
    before = utcnow()
    assert before - timedelta(seconds=1) < store.clock() < utcnow() + timedelta(seconds=1)


def test_the_database_is_asked_now_and_then(machine):
    asked = []

    def ask():
        asked.append(machine.seconds)
        return NOON + timedelta(seconds=machine.seconds - 1000)

    now = DatabaseClock(ask, every_seconds=10)
    for seconds in (1000.0, 1004.0, 1009.5, 1011.0, 1012.0):
        machine.seconds = seconds
        assert now() == NOON + timedelta(seconds=seconds - 1000)
    assert asked == [1000.0, 1011.0]


def test_an_answer_that_took_long_is_asked_for_again(machine):
    delays = [20.0, 0.0]

    def ask():
        moment = NOON + timedelta(seconds=machine.seconds - 1000)
        machine.seconds += delays.pop(0)
        return moment

    assert DatabaseClock(ask)() == NOON + timedelta(seconds=20)
