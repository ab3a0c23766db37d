"""The connections of a database.

Those that read are kept open between queries: getting and returning one takes longer than most queries."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import sqlalchemy as sa


class ConnectionCache:
    """most: how many connections are kept; the most recently used one is last.

    is_alive: whether a kept connection is still alive."""

    def __init__(self, engine: sa.Engine, most: int, is_alive: Callable[[sa.Connection], bool] = lambda kept: True):
        self.engine, self.most, self.is_alive = engine, most, is_alive
        self.kept: list[sa.Connection] = []

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """A connection on which each query sees everything committed by then."""
        connection = self._taken()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        self._keep(connection)

    def _taken(self) -> sa.Connection:
        while self.kept:
            try:
                connection = self.kept.pop()
            except IndexError:
                # Another thread was faster.
                break
            if self.is_alive(connection):
                return connection
            connection.invalidate()
            connection.close()
        return self._connected()

    def _connected(self) -> sa.Connection:
        # With READ COMMITTED each statement sees the latest commits anyway; a transaction would cost two more round
        # trips. An engine with this option has a listener, for which each statement would look.
        return self.engine.connect().execution_options(isolation_level='AUTOCOMMIT')

    def _keep(self, connection: sa.Connection) -> None:
        if len(self.kept) < self.most:
            self.kept.append(connection)
        else:
            connection.close()

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """A connection for a transaction with changes."""
        self._make_room()
        with self.engine.connect() as connection:
            yield connection

    def _make_room(self) -> None:
        """Return a connection to an exhausted pool, so that it need not create another: a process has no more than it
        uses at a time."""
        if self.kept and not self.engine.pool.checkedin():  # type: ignore[attr-defined]
            with suppress(IndexError):
                self.kept.pop(0).close()

    def close(self) -> None:
        """Return all connections to the pool, and keep none from now on."""
        self.most = 0
        while self.kept:
            self.kept.pop().close()


class SnapshotConnectionCache(ConnectionCache):
    """For SQLite: what a connection reads is a consistent snapshot."""

    def _connected(self) -> sa.Connection:
        return self.engine.connect()

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """A connection that sees what was committed before its first query, and nothing later."""
        with super().read() as connection:
            # It takes no lock, so it cannot fail; through SQLAlchemy it would cost as much as a query. To SQLAlchemy,
            # all reads of the connection are in the transaction that begins with its first query.
            driver: Any = connection.connection.dbapi_connection
            driver.execute('BEGIN')
            yield connection
            driver.rollback()

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """One of the same connections: what it has in memory remains valid after its own changes."""
        with super().read() as connection:
            # The transaction of its reads.
            connection.rollback()
            yield connection
