"""Time that tests set."""

from datetime import timedelta

from computeapi.clock import utcnow


class StandingClock:
    """Stands still until it is told to go forward."""

    def __init__(self):
        self.now = utcnow()

    def __call__(self):
        return self.now

    def forward(self, seconds=0, **duration):
        """As timedelta takes it."""
        self.now += timedelta(seconds=seconds, **duration)
