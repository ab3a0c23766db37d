"""What look-ups see of a database.

Connections stay open between two of them: to get one and to give it back takes longer than most look-ups."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import sqlalchemy as sa


class Views:
    """most: how many connections are kept, the one that was used last at the end.

    is_there: whether a connection that was kept still leads to the database."""

    def __init__(self, engine: sa.Engine, most: int, is_there: Callable[[sa.Connection], bool] = lambda kept: True):
        self.engine, self.most, self.is_there = engine, most, is_there
        self.kept: list[sa.Connection] = []

    @contextmanager
    def view(self) -> Iterator[sa.Connection]:
        """A connection that sees with each look-up what is committed by then."""
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
                # Another thread was quicker.
                break
            if self.is_there(connection):
                return connection
            connection.invalidate()
            connection.close()
        return self.engine.connect()

    def _keep(self, connection: sa.Connection) -> None:
        if len(self.kept) < self.most:
            self.kept.append(connection)
        else:
            connection.close()

    def make_room(self) -> None:
        """Give a connection back to a pool that has none, before it makes another one: a process has no more of them
        than it uses at a time."""
        if self.kept and not self.engine.pool.checkedin():  # type: ignore[attr-defined]
            with suppress(IndexError):
                self.kept.pop(0).close()

    def close(self) -> None:
        while self.kept:
            self.kept.pop().close()


class SteadyViews(Views):
    """Views of SQLite that stay as they are."""

    @contextmanager
    def view(self) -> Iterator[sa.Connection]:
        """A connection that sees what was committed before its first look-up, and nothing of what is after that."""
        with super().view() as connection:
            # It takes no lock, so nothing can go wrong; by way of SQLAlchemy it costs as much as a look-up.
            driver: Any = connection.connection.dbapi_connection
            driver.execute('BEGIN')
            yield connection
            connection.rollback()
            # SQLAlchemy does so where there was a look-up.
            driver.rollback()
