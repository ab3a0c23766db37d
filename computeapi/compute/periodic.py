"""Periodic work, for as long as a process lives."""

import logging
import threading
from collections.abc import Callable

from computeapi.errors import DatabaseError

LOG = logging.getLogger(__name__)


class Periodic:
    """Calls a function at an interval in seconds (0: never) in a thread of its own, from `start` to `stop`.

    Errors are logged and do not end the thread.
    alarm: setting it triggers the next turn at once.
    """

    def __init__(self, name: str, act: Callable[[], None], seconds: float, alarm: threading.Event | None = None):
        self.name, self.act, self.seconds = name, act, seconds
        self.alarm, self.stopping = alarm or threading.Event(), False
        self.thread = threading.Thread(target=self.run, name=name, daemon=True)

    def start(self) -> None:
        if self.seconds:
            self.thread.start()

    def stop(self, timeout: float | None = None) -> None:
        """Stop after the current turn, waiting at most *timeout* seconds for it; a no-op if it was never started."""
        self.stopping = True
        self.alarm.set()
        if self.thread.is_alive():
            self.thread.join(timeout)

    def run(self) -> None:
        while not self._is_over():
            try:
                self.act()
            except DatabaseError:
                # The store has already logged it.
                pass
            except Exception:
                LOG.exception('%s failed, and is retried in %g s', self.name, self.seconds)

    def _is_over(self) -> bool:
        """Wait for the next turn, and return whether to stop instead."""
        self.alarm.wait(self.seconds)
        self.alarm.clear()
        return self.stopping
