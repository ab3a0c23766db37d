"""How the threads of a process take turns at reading from a database that is a file."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from computeapi.web.filters import Environ, PasteFilter, WSGIApp

TURN_SECONDS = 0.02


class Turns:
    """One thread at a time has its turn.

    A thread that waits for something else during its turn, such as a neighbour, delays the others only for a moment:
    after *timeout* seconds they take turns without it.
    """

    def __init__(self, timeout: float = TURN_SECONDS):
        self.timeout, self._turn = timeout, threading.Lock()

    @contextmanager
    def taken(self) -> Iterator[None]:
        while not (turn := self._turn).acquire(timeout=self.timeout):
            if turn is self._turn:
                self._turn = threading.Lock()
        try:
            yield
        finally:
            turn.release()


TURNS = Turns()
"""The turns of this process."""


class InTurn(PasteFilter):
    """turns: answers GET requests one at a time.

    Python runs one thread at a time anyway. But SQLite's driver lets another thread run at each row, and switching so
    often takes up to half of the time of a read.
    """

    def __init__(self, app: WSGIApp, turns: Turns = TURNS):
        super().__init__(app)
        self.turns = turns

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ['REQUEST_METHOD'] != 'GET':
            return self.app(environ, start_response)
        with self.turns.taken():
            return self.app(environ, start_response)
