"""A gate that many threads pass through at a time, until it is closed."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Gate:
    """Closing it waits until no thread is inside, and keeps others out meanwhile."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside = 0
        self._closed = False

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Enter as soon as the gate is open, and be inside during the block."""
        with self._changed:
            self._changed.wait_for(lambda: not self._closed)
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    @contextmanager
    def closed(self, hurry: Callable[[], None] = lambda: None) -> Iterator[None]:
        """No thread is inside during the block; threads that close the gate take turns.

        hurry: is called when no more threads can enter, so that those inside leave soon."""
        with self._changed:
            self._changed.wait_for(lambda: not self._closed)
            self._closed = True
        # An interrupt, such as Ctrl-C, while others are still inside must not leave the gate closed.
        try:
            hurry()
            with self._changed:
                self._changed.wait_for(lambda: not self._inside)
            yield
        finally:
            with self._changed:
                self._closed = False
                self._changed.notify_all()
