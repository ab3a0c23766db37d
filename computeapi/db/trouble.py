"""What is the matter with a database, and no mistake of the service.

Told from what its driver says, and logged now and then.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import exc
from sqlalchemy.engine import ExceptionContext

from computeapi.errors import ConnectionLost, DatabaseTrouble, Deadlock, Invalid

LOG = logging.getLogger(__name__)
SILENCE_SECONDS = 30
"""For how long nothing is said again of trouble of the same kind."""

# The last eight bits of what sqlite3 says: busy, locked, out of memory, read-only, interrupted, an input/output error,
# damaged, full, cannot be opened, the protocol of locks, too large a file, no database.
SQLITE = frozenset({5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 22, 26})
# What PostgreSQL says of itself otherwise than as an OperationalError: a standby takes no changes, a page is damaged.
POSTGRESQL = frozenset({'25006', 'XX001', 'XX002'})
# OperationalErrors of MariaDB that are mistakes in a statement: a column, a function or a key that is not there.
MISTAKES_ON_MARIADB = frozenset({1054, 1091, 1305})
# A transaction was in the way of another, and the database ended it.
DEADLOCK = frozenset({'40001', '40P01', 1020, 1213})


def trouble_of(error: exc.DBAPIError | exc.TimeoutError) -> DatabaseTrouble | None:
    """What the error says of the database; None if it is a mistake of who asked."""
    if isinstance(error, exc.TimeoutError):
        return DatabaseTrouble('All connections are in use.')
    code = code_of(error.orig)
    reason = ' '.join(str(error.orig).split()) or type(error.orig).__name__
    if code in DEADLOCK:
        return Deadlock(reason)
    silent = isinstance(getattr(error.orig, '__context__', None), TimeoutError)
    if error.connection_invalidated and not silent:
        return ConnectionLost(reason)
    return DatabaseTrouble(reason) if _is_trouble(error, code) else None


def code_of(original: Any) -> Any:
    """The number or the word by which a driver tells errors apart; None where it has none."""
    if hasattr(original, 'sqlite_errorcode'):
        return original.sqlite_errorcode & 0xFF
    number = original.args[0] if original is not None and original.args else None
    return number if isinstance(number, int) else getattr(original, 'sqlstate', None)


def _is_trouble(error: exc.DBAPIError, code: Any) -> bool:
    if hasattr(error.orig, 'sqlite_errorcode'):
        return code in SQLITE
    if isinstance(error, exc.OperationalError):
        return code not in MISTAKES_ON_MARIADB
    # PyMySQL calls an InternalError what the file system says to the server, e.g. that it is full.
    unusual = isinstance(error, exc.InternalError) and isinstance(code, int)
    return unusual or isinstance(error, exc.InterfaceError) or code in POSTGRESQL


def unfit(context: ExceptionContext) -> Invalid | None:
    """What came from a client and fits in no column: a number beyond its bounds, a text too long for it."""
    wrapped = isinstance(context.sqlalchemy_exception, exc.DataError)
    # sqlite3 says it in Python's own words.
    if wrapped or isinstance(context.original_exception, OverflowError):
        return Invalid('A number in the request is too large, or a text too long.')
    return None


class Watch:
    """What a store has said of its database, so that the log tells it once in a while and not each time.

    heard: is told of each trouble.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self.clock, self.lock = clock, threading.Lock()
        # By kind of trouble: when it was last told, and how often it has come up since.
        self.told: dict[type, tuple[float, int]] = {}
        self.silent = False
        self.heard: Callable[[DatabaseTrouble], None] = lambda trouble: None

    @contextmanager
    def watching(self) -> Iterator[None]:
        """What the database is the reason of becomes a DatabaseTrouble, and a line in the log now and then."""
        try:
            yield
        except (exc.DBAPIError, exc.TimeoutError) as error:
            trouble = trouble_of(error)
            if trouble is None:
                raise
            self.heard(trouble)
            self.tell(trouble)
            raise trouble from error

    @contextmanager
    def silenced(self) -> Iterator[None]:
        """For a caller that tells of trouble itself."""
        self.silent = True
        try:
            yield
        finally:
            self.silent = False

    def tell(self, trouble: DatabaseTrouble) -> None:
        if self.silent:
            return
        with self.lock:
            now = self.clock()
            last, since = self.told.get(type(trouble), (None, 0))
            if last is not None and now - last < SILENCE_SECONDS:
                self.told[type(trouble)] = (last, since + 1)
                return
            self.told[type(trouble)] = (now, 0)
        more = f' (and {since} times since this was last logged)' if since else ''
        LOG.error('Database error: %s%s', trouble.reason, more)
