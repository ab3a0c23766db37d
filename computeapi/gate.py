"""A gate that many pass through at a time, until it is closed."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Gate:
    """Who closes it waits until nobody is inside, and keeps others waiting meanwhile."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside = 0
        self._closed = False

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Be inside, as soon as it is open."""
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
    def closed(self) -> Iterator[None]:
        """Nobody is inside; who closes it takes turns with others who do."""
        with self._changed:
            self._changed.wait_for(lambda: not self._closed)
            self._closed = True
        # Who is interrupted while others are still inside, as by Ctrl-C, keeps nobody out afterwards.
        try:
            with self._changed:
                self._changed.wait_for(lambda: not self._inside)
            yield
        finally:
            with self._changed:
                self._closed = False
                self._changed.notify_all()
