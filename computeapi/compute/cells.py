"""Cells: parts of the cloud whose hosts become unreachable together."""

import time
from collections.abc import Callable, Mapping

from computeapi.db import cells
from computeapi.db.cells import Cell
from computeapi.db.engine import Store
from computeapi.errors import CellDown, NotFound

REMEMBERED_SECONDS = 1.0


class Cells:
    """Which hosts are unreachable because their cell is down.

    Every request about servers needs this, so the result is cached for REMEMBERED_SECONDS.
    """

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic):
        self.store, self.clock = store, clock
        self.until, self.known = clock(), dict[str, str]()

    def out_of_reach(self) -> Mapping[str, str]:
        """{host: cell} for the hosts whose cell is down."""
        if self.clock() >= self.until:
            self.known = self.store.query(cells.out_of_reach)
            self.until = self.clock() + REMEMBERED_SECONDS
        return self.known

    def list(self) -> list[Cell]:
        """All cells with their hosts, by name."""
        return self.store.query(cells.every)

    def check(self, host: str | None) -> None:
        """CellDown for an unreachable host."""
        cell = self.out_of_reach().get(host or '')
        if cell is not None:
            raise CellDown(name=cell)

    def mark(self, name: str, *, down: bool) -> None:
        """Mark a cell as down, or as up again; NotFound."""
        if not self.store.change(cells.mark, name, down=down):
            raise NotFound(f'There is no cell {name}.')
        self.forget()

    def forget(self) -> None:
        """Drop the cached result."""
        self.until = self.clock()
