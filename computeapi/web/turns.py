"""How the threads of a process take turns at looking something up in a database that is a file."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from computeapi.web.filters import Environ, PasteFilter, WSGIApp

PATIENCE_SECONDS = 0.02


class Turns:
    """One thread after the other has its turn.

    Who waits for something else meanwhile, such as a neighbour, keeps the others waiting no longer than a moment: their
    turns go on without that thread.
    """

    def __init__(self, patience: float = PATIENCE_SECONDS):
        self.patience, self._turn = patience, threading.Lock()

    @contextmanager
    def taken(self) -> Iterator[None]:
        while not (turn := self._turn).acquire(timeout=self.patience):
            if turn is self._turn:
                self._turn = threading.Lock()
        try:
            yield
        finally:
            turn.release()


TURNS = Turns()
"""Those of this process."""


class InTurn(PasteFilter):
    """turns: answers one GET after the other.

    Python runs one thread at a time anyway. But at each row SQLite's driver lets another one go on, and to change over
    so often takes up to half of what a look-up takes.
    """

    def __init__(self, app: WSGIApp, turns: Turns = TURNS):
        super().__init__(app)
        self.turns = turns

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ['REQUEST_METHOD'] != 'GET':
            return self.app(environ, start_response)
        with self.turns.taken():
            return self.app(environ, start_response)
