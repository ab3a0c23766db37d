"""Cells: parts of the cloud, with the hosts in them, that can be out of reach together."""

import time
from collections.abc import Callable, Mapping

from computeapi.db import cells as rows
from computeapi.db.cells import Cell
from computeapi.db.engine import Store
from computeapi.errors import CellDown, NotFound

REMEMBERED_SECONDS = 1.0


class Cells:
    """Which hosts are out of reach because their cell is down.

    Every request about servers asks, so the answer is remembered for a moment.
    """

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic):
        self.store, self.clock = store, clock
        self.until, self.known = clock(), dict[str, str]()

    def out_of_reach(self) -> Mapping[str, str]:
        """By host whose cell is down, that cell."""
        if self.clock() >= self.until:
            self.known = self.store.ask(rows.out_of_reach)
            self.until = self.clock() + REMEMBERED_SECONDS
        return self.known

    def list(self) -> list[Cell]:
        """All cells with their hosts, by name."""
        return self.store.ask(rows.every)

    def check(self, host: str | None) -> None:
        """CellDown for a host that is out of reach."""
        cell = self.out_of_reach().get(host or '')
        if cell is not None:
            raise CellDown(name=cell)

    def mark(self, name: str, *, down: bool) -> None:
        """Say that a cell is down, or that it is back; NotFound."""
        if not self.store.tell(rows.mark, name, down=down):
            raise NotFound(f'There is no cell {name}.')
        self.forget()

    def forget(self) -> None:
        """Look it up again the next time."""
        self.until = self.clock()
