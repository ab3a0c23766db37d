"""How events come out of a cloud's database."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import sqlalchemy as sa

from computeapi.db import watching
from computeapi.db.engine import Transaction
from computeapi.kit.events import Events


class WatchedTransactions:
    """Transactions of which the events are told once `on`; before that they are what they are without."""

    def __init__(self, begin: Transaction, events: Events):
        self.begin, self.events = begin, events
        self.on = False

    def __call__(self, connection: sa.Connection) -> AbstractContextManager[object]:
        return self._watched(connection) if self.on else self.begin(connection)

    @contextmanager
    def _watched(self, connection: sa.Connection) -> Iterator[None]:
        watching.install(connection)
        batch = None
        try:
            with self.begin(connection):
                yield
                # Nobody else writes until this is committed, so this is the order in which everything is.
                batch = self.events.expect(watching.taken(connection))
        except BaseException:
            if batch is not None:
                self.events.settle(batch, committed=False)
            raise
        if batch is not None:
            self.events.settle(batch, committed=True)
