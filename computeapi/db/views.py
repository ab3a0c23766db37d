"""What look-ups see of an SQLite database.

Connections stay open between two of them: to get one and to give it back takes longer than most look-ups."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa


class Views:
    """most: how many connections are kept, the one that was used last at the end."""

    def __init__(self, engine: sa.Engine, most: int):
        self.engine, self.most = engine, most
        self.kept: list[sa.Connection] = []

    @contextmanager
    def view(self) -> Iterator[sa.Connection]:
        """A connection that sees what was committed before its first look-up, and nothing of what is after that."""
        connection = self._taken()
        try:
            # It takes no lock, so nothing can go wrong; by way of SQLAlchemy it costs as much as a look-up.
            driver: Any = connection.connection.dbapi_connection
            driver.execute('BEGIN')
            yield connection
            connection.rollback()
            # SQLAlchemy does so where there was a look-up.
            driver.rollback()
        except BaseException:
            connection.close()
            raise
        if len(self.kept) < self.most:
            self.kept.append(connection)
        else:
            connection.close()

    def _taken(self) -> sa.Connection:
        try:
            return self.kept.pop()
        except IndexError:
            return self.engine.connect()

    def close(self) -> None:
        while self.kept:
            self.kept.pop().close()
