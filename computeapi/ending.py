"""How a process that works hears that it is to end."""

import atexit
import contextlib
import queue
import signal
from typing import Any

LOOK_SECONDS = 1.0
SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Ending:
    """From when it is made on, SIGTERM and SIGINT end the process when somebody waits for them here, and not before.

    They are heard, and not blocked: programs that the process starts, guests among them, would have them blocked, too,
    and could only be killed.
    """

    def __init__(self) -> None:
        self.told: queue.SimpleQueue[int] = queue.SimpleQueue()
        # What is not written in Python is over before it is interrupted: other handlers of many signals would be called
        # one within the other, without an end, and one that takes a lock may wait for what it interrupted.
        hear: Any = self.told.put
        for each in SIGNALS:
            signal.signal(each, hear)
        atexit.register(self.close)

    def close(self) -> None:
        """Hear no more: at its end the interpreter gives handlers back, and a further signal would kill the process.
        What is started before, such as a guest by work that is still under way, must not find them ignored."""
        for each in SIGNALS:
            signal.signal(each, signal.SIG_IGN)

    def wait(self) -> None:
        # Should another thread be interrupted by it, this one runs the handler when it looks.
        number = None
        while number is None:
            with contextlib.suppress(queue.Empty):
                number = self.told.get(timeout=LOOK_SECONDS)
        # Whoever waits again is told, too.
        self.told.put(number)
