"""Errors that the database causes, as opposed to mistakes in this service.

They are recognized by the errors of the drivers, and logged at intervals.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import exc
from sqlalchemy.engine import ExceptionContext

from computeapi.errors import ConnectionLost, DatabaseError, Deadlock, Invalid

LOG = logging.getLogger(__name__)
LOG_INTERVAL_SECONDS = 30
"""How long further problems of the same kind are not logged."""

# The primary result codes of sqlite3: busy, locked, out of memory, read-only, interrupted, I/O error, corrupt, full,
# cannot open, locking protocol, too big, not a database.
SQLITE = frozenset({5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 22, 26})
# PostgreSQL errors that are not OperationalErrors: a read-only standby, corrupted data or index.
POSTGRESQL = frozenset({'25006', 'XX001', 'XX002'})
# OperationalErrors of MariaDB that are errors in a statement: unknown column, key or function.
MISTAKES_ON_MARIADB = frozenset({1054, 1091, 1305})
# A transaction conflicted with another one, and was aborted by the database.
DEADLOCK = frozenset({'40001', '40P01', 1020, 1213})


def database_error_of(error: exc.DBAPIError | exc.TimeoutError, file: str | None = None) -> DatabaseError | None:
    """The problem of the database behind the error; None if it is an error in the request.

    file: the SQLite database, which SQLite does not name.
    """
    if isinstance(error, exc.TimeoutError):
        return DatabaseError('All connections are in use.')
    code = code_of(error.orig)
    reason = ' '.join(str(error.orig).split()) or type(error.orig).__name__
    if file is not None:
        reason = f'{file}: {reason}'
    if code in DEADLOCK:
        return Deadlock(reason)
    silent = isinstance(getattr(error.orig, '__context__', None), TimeoutError)
    if error.connection_invalidated and not silent:
        return ConnectionLost(reason)
    return DatabaseError(reason) if _is_database_error(error, code) else None


def code_of(original: Any) -> Any:
    """The error code of a driver's exception; None if it has none."""
    if hasattr(original, 'sqlite_errorcode'):
        return original.sqlite_errorcode & 0xFF
    number = original.args[0] if original is not None and original.args else None
    return number if isinstance(number, int) else getattr(original, 'sqlstate', None)


def _is_database_error(error: exc.DBAPIError, code: Any) -> bool:
    if hasattr(error.orig, 'sqlite_errorcode'):
        return code in SQLITE
    if isinstance(error, exc.OperationalError):
        return code not in MISTAKES_ON_MARIADB
    # PyMySQL raises InternalError for file system errors of the server, e.g. a full disk.
    unusual = isinstance(error, exc.InternalError) and isinstance(code, int)
    return unusual or isinstance(error, exc.InterfaceError) or code in POSTGRESQL


def unfit(context: ExceptionContext) -> Invalid | None:
    """Invalid for a client's value that does not fit its column: a number out of range, or a text too long."""
    wrapped = isinstance(context.sqlalchemy_exception, exc.DataError)
    # sqlite3 raises Python's own OverflowError.
    if wrapped or isinstance(context.original_exception, OverflowError):
        return Invalid('A number in the request is too large, or a text too long.')
    return None


class DatabaseErrorLog:
    """Logs the problems of a store's database, not each time but at intervals.

    file: the SQLite database.  on_error: called for each problem.
    """

    def __init__(self, file: str | None = None, clock: Callable[[], float] = time.monotonic):
        self.file, self.clock, self.lock = file, clock, threading.Lock()
        # By kind of problem: when it was last logged, and how often it has occurred since.
        self.logged: dict[type, tuple[float, int]] = {}
        self.silent = False
        self.on_error: Callable[[DatabaseError], None] = lambda error: None

    @contextmanager
    def translating(self) -> Iterator[None]:
        """Turns errors caused by the database into DatabaseError, and logs them at intervals."""
        try:
            yield
        except (exc.DBAPIError, exc.TimeoutError) as error:
            translated = database_error_of(error, self.file)
            if translated is None:
                raise
            self.on_error(translated)
            self.log(translated)
            raise translated from error

    @contextmanager
    def silenced(self) -> Iterator[None]:
        """Without logging, for a caller that reports problems itself."""
        self.silent = True
        try:
            yield
        finally:
            self.silent = False

    def log(self, error: DatabaseError) -> None:
        if self.silent:
            return
        with self.lock:
            now = self.clock()
            last, since = self.logged.get(type(error), (None, 0))
            if last is not None and now - last < LOG_INTERVAL_SECONDS:
                self.logged[type(error)] = (last, since + 1)
                return
            self.logged[type(error)] = (now, 0)
        more = f' (and {since} times since this was last logged)' if since else ''
        LOG.error('Database error: %s%s', error.reason, more)
