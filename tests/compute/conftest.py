"""What tests of work share: time."""

from datetime import timedelta

import pytest

from computeapi.clock import utcnow


class Clock:
    """Stands still until it is told to go forward."""

    def __init__(self):
        self.now = utcnow()

    def __call__(self):
        return self.now

    def forward(self, seconds):
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def clock():
    return Clock()
