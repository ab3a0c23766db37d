"""Produces events from the database of a cloud."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import sqlalchemy as sa

from computeapi.db import change_capture
from computeapi.db.engine import Transaction
from computeapi.kit.events import Events


class WatchedTransactions:
    """Transactions that publish events while `on`; otherwise they are unchanged."""

    def __init__(self, begin: Transaction, events: Events):
        self.begin, self.events = begin, events
        self.on = False

    def __call__(self, connection: sa.Connection) -> AbstractContextManager[object]:
        return self._watched(connection) if self.on else self.begin(connection)

    @contextmanager
    def _watched(self, connection: sa.Connection) -> Iterator[None]:
        change_capture.install(connection)
        batch = None
        try:
            with self.begin(connection):
                yield
                # No other transaction writes until this one commits, so this is the order of the commits.
                batch = self.events.expect(change_capture.taken(connection))
        except BaseException:
            if batch is not None:
                self.events.settle(batch, committed=False)
            raise
        if batch is not None:
            self.events.settle(batch, committed=True)
