"""What is done now and then, as long as a process lives."""

import logging
import threading
from collections.abc import Callable

from computeapi.errors import DatabaseTrouble

LOG = logging.getLogger(__name__)


class Periodic:
    """Does something every so many seconds (0: never) in a thread of its own, from `start` to `stop`.

    What goes wrong is logged: to miss it once does no harm, a thread that ended would.
    """

    def __init__(self, name: str, act: Callable[[], None], seconds: float):
        self.name, self.act, self.seconds = name, act, seconds
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run, name=name, daemon=True)

    def start(self) -> None:
        if self.seconds:
            self.thread.start()

    def stop(self) -> None:
        """End, after what is being done; nothing to do if it was never started."""
        self.stopping.set()
        if self.thread.is_alive():
            self.thread.join()

    def run(self) -> None:
        while not self.stopping.wait(self.seconds):
            try:
                self.act()
            except DatabaseTrouble:
                # The store has said so in the log.
                pass
            except Exception:
                LOG.exception('%s: it failed, and is tried again in %g s', self.name, self.seconds)
