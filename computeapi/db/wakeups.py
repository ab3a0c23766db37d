"""How processes on other machines hear at once that there is something to do, where the database tells them.

PostgreSQL does, when the transaction is over that queued it (LISTEN and NOTIFY). Whoever does not hear it, for the
connection was lost or the database is another, looks for itself now and then.
"""

import functools
import threading
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from computeapi.db.clock import elapsed
from computeapi.db.engine import Store
from computeapi.errors import DatabaseTrouble

CHANNEL = 'computeapi_tasks'
LISTEN, NOTIFY = sa.text(f'LISTEN {CHANNEL}'), sa.text(f'NOTIFY {CHANNEL}')
LOOK_SECONDS = 0.2
"""How long it may take until a listener sees that it is to stop."""
PROBE_SECONDS = 30
"""How often it is tried whether the connection is still there: one that was cut off says nothing."""


def tell(connection: sa.Connection) -> None:
    """Let those who listen know when this transaction is over; however often it is said, they hear it once."""
    if connection.dialect.name == 'postgresql':
        connection.execute(NOTIFY)


def telling(connection: sa.Connection, insert: sa.Insert) -> sa.Insert:
    """The statement, which does so by itself."""
    return _telling(insert) if connection.dialect.name == 'postgresql' else insert


@functools.cache
def _telling(insert: sa.Insert) -> sa.Insert:
    return insert.returning(sa.func.pg_notify(CHANNEL, ''))


class Listener:
    """Calls `heard` for what is told, and first of all: nobody tells again what was told before."""

    def __init__(self, store: Store, heard: Callable[[], None]):
        self.store, self.heard, self.over = store, heard, threading.Event()

    @property
    def possible(self) -> bool:
        return self.store.dialect == 'postgresql'

    def listen(self) -> None:
        """Until `stop`; DatabaseTrouble when the connection is lost. It is one beside those of the pool."""
        with self.store.watch.watching(), self.store.engine.connect() as connection:
            connection.execution_options(isolation_level='AUTOCOMMIT').detach()
            connection.execute(LISTEN)
            self.heard()
            try:
                self._listen(connection.connection.dbapi_connection)
            except connection.dialect.loaded_dbapi.Error as error:
                trouble = DatabaseTrouble(f'The connection that listens for tasks is lost: {error}')
                self.store.watch.tell(trouble)
                raise trouble from error

    def _listen(self, driver: Any) -> None:
        probe_at = elapsed() + PROBE_SECONDS
        while not self.over.is_set():
            if list(driver.notifies(timeout=LOOK_SECONDS, stop_after=1)):
                self.heard()
            if elapsed() > probe_at:
                driver.execute('SELECT 1')
                probe_at = elapsed() + PROBE_SECONDS

    def stop(self) -> None:
        self.over.set()
