"""What is done now and then, as long as a process lives."""

import logging
import threading
from collections.abc import Callable

from computeapi.errors import DatabaseTrouble

LOG = logging.getLogger(__name__)


class Periodic:
    """Does something every so many seconds (0: never) in a thread of its own, from `start` to `stop`.

    What goes wrong is logged: to miss it once does no harm, a thread that ended would.
    alarm: when it is set, that is done at once.
    """

    def __init__(self, name: str, act: Callable[[], None], seconds: float, alarm: threading.Event | None = None):
        self.name, self.act, self.seconds = name, act, seconds
        self.alarm, self.stopping = alarm or threading.Event(), False
        self.thread = threading.Thread(target=self.run, name=name, daemon=True)

    def start(self) -> None:
        if self.seconds:
            self.thread.start()

    def stop(self, patience: float | None = None) -> None:
        """End, after what is being done, or after so many seconds; nothing to do if it was never started."""
        self.stopping = True
        self.alarm.set()
        if self.thread.is_alive():
            self.thread.join(patience)

    def run(self) -> None:
        while not self._is_over():
            try:
                self.act()
            except DatabaseTrouble:
                # The store has said so in the log.
                pass
            except Exception:
                LOG.exception('%s failed, and is retried in %g s', self.name, self.seconds)

    def _is_over(self) -> bool:
        """Whether it is to end, after the time until the next turn."""
        self.alarm.wait(self.seconds)
        self.alarm.clear()
        return self.stopping
