"""Wakes up processes on other machines when there is new work, if the database supports notifications.

PostgreSQL does, after the commit of the transaction that queued it (LISTEN and NOTIFY). Processes that miss it, because
the connection was lost or on another database, poll periodically.
"""

import functools
import threading
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from computeapi.db.clock import elapsed
from computeapi.db.engine import Store
from computeapi.errors import DatabaseError

CHANNEL = 'computeapi_tasks'
LISTEN, NOTIFY = sa.text(f'LISTEN {CHANNEL}'), sa.text(f'NOTIFY {CHANNEL}')
LOOK_SECONDS = 0.2
"""How long it may take a listener to notice that it should stop."""
PROBE_SECONDS = 30
"""How often the connection is tested: a broken one may not be noticed otherwise."""


def notify(connection: sa.Connection) -> None:
    """Notify listeners after this transaction commits; several calls result in one notification."""
    if connection.dialect.name == 'postgresql':
        connection.execute(NOTIFY)


def notifying(connection: sa.Connection, insert: sa.Insert) -> sa.Insert:
    """The INSERT statement, extended to notify listeners."""
    return _notifying(insert) if connection.dialect.name == 'postgresql' else insert


@functools.cache
def _notifying(insert: sa.Insert) -> sa.Insert:
    return insert.returning(sa.func.pg_notify(CHANNEL, ''))


class Listener:
    """Calls `notified` for each notification, and once at the start, because earlier ones are not repeated."""

    def __init__(self, store: Store, notified: Callable[[], None]):
        self.store, self.notified, self.over = store, notified, threading.Event()

    @property
    def possible(self) -> bool:
        return self.store.dialect == 'postgresql'

    def listen(self) -> None:
        """Run until `stop`, with a connection outside of the pool; DatabaseError if it is lost."""
        with self.store.error_log.translating(), self.store.engine.connect() as connection:
            connection.execution_options(isolation_level='AUTOCOMMIT').detach()
            connection.execute(LISTEN)
            self.notified()
            try:
                self._listen(connection.connection.dbapi_connection)
            except connection.dialect.loaded_dbapi.Error as error:
                lost = DatabaseError(f'The connection that listens for tasks is lost: {error}')
                self.store.error_log.log(lost)
                raise lost from error

    def _listen(self, driver: Any) -> None:
        probe_at = elapsed() + PROBE_SECONDS
        while not self.over.is_set():
            if list(driver.notifies(timeout=LOOK_SECONDS, stop_after=1)):
                self.notified()
            if elapsed() > probe_at:
                driver.execute('SELECT 1')
                probe_at = elapsed() + PROBE_SECONDS

    def stop(self) -> None:
        self.over.set()
