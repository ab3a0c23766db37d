"""How a process that works hears that it is to end."""

import atexit
import signal
import threading
from types import FrameType

LOOK_SECONDS = 1.0
SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Ending:
    """From when it is made on, SIGTERM and SIGINT end the process when somebody waits for them here, and not before.

    They are heard, and not blocked: programs that the process starts, guests among them, would have them blocked, too,
    and could only be killed.
    """

    def __init__(self) -> None:
        self.told = threading.Event()
        for each in SIGNALS:
            signal.signal(each, self.hear)
        atexit.register(self.close)

    def hear(self, number: int, frame: FrameType | None) -> None:
        """A second one disturbs nothing."""
        self.told.set()

    def close(self) -> None:
        """Hear no more: at its end the interpreter gives handlers back, and a further signal would kill the process.
        What is started before, such as a guest by work that is still under way, must not find them ignored."""
        for each in SIGNALS:
            signal.signal(each, signal.SIG_IGN)

    def wait(self) -> None:
        # Should another thread be interrupted by it, this one runs the handler when it looks.
        while not self.told.wait(LOOK_SECONDS):
            pass
