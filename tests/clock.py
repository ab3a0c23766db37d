"""A clock that tests control."""

from datetime import timedelta

from computeapi.clock import utcnow


class StandingClock:
    """Stands still until it is moved forward."""

    def __init__(self):
        self.now = utcnow()

    def __call__(self):
        return self.now

    def forward(self, seconds=0, **duration):
        """Takes the arguments of timedelta."""
        self.now += timedelta(seconds=seconds, **duration)
