"""How a long-running process learns that it is to end."""

import atexit
import contextlib
import queue
import signal
from typing import Any

LOOK_SECONDS = 1.0
SIGNALS = (signal.SIGTERM, signal.SIGINT)


class ShutdownSignals:
    """Once it is created, SIGTERM and SIGINT end the process only where it waits for them here.

    The signals are handled, not blocked: child processes, guests among them, would inherit a blocked mask and could
    only be killed.
    """

    def __init__(self) -> None:
        self.received: queue.SimpleQueue[int] = queue.SimpleQueue()
        # A handler that is not written in Python finishes before the next signal interrupts it. Python handlers would
        # nest without a limit if many signals arrive, and one that takes a lock may wait for the code that it
        # interrupted.
        receive: Any = self.received.put
        for each in SIGNALS:
            signal.signal(each, receive)
        atexit.register(self.close)

    def close(self) -> None:
        """Ignore the signals from now on: at exit the interpreter restores the default handlers, and a further signal
        would kill the process. Not earlier: processes started by work in progress, such as guests, would inherit
        ignored signals."""
        for each in SIGNALS:
            signal.signal(each, signal.SIG_IGN)

    def wait(self) -> None:
        # If the signal interrupts another thread, this one runs the handler at the next timeout.
        number = None
        while number is None:
            with contextlib.suppress(queue.Empty):
                number = self.received.get(timeout=LOOK_SECONDS)
        # A second call of `wait` returns, too.
        self.received.put(number)
