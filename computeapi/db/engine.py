"""The only access to the database: `read()` for queries, `write()` for changes.

SQLite takes its write lock when a transaction begins, not at its first write, so two writers queue instead of failing
halfway. The parameters of statements may be secret, so errors do not show them. If the database is unreachable, full,
locked or slow, `read()` and `write()` raise DatabaseError.
"""

import copy
import functools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, Concatenate, NamedTuple, ParamSpec, Self, TypeVar, cast

import orjson
import sqlalchemy as sa
from oslo_config import cfg
from sqlalchemy.dialects.sqlite.base import SQLiteCompiler

from computeapi import errors
from computeapi.db import drivers, patterns, quota_usages, timeouts
from computeapi.db.clock import clock_of
from computeapi.db.connection_cache import ConnectionCache, SnapshotConnectionCache
from computeapi.db.driver_errors import DatabaseErrorLog, unfit
from computeapi.db.timeouts import DEFAULT, UNLIMITED, Timeouts

MAX_TRIES, PAUSE_SECONDS = 5, 0.01
MAX_KEPT = 5
"""How many connections to SQLite are kept for reading."""
LARGE_PAGE = 16 * 1024
PREPARED = 64
"""How many prepared statements each connection to SQLite keeps: more than a boot has. One takes about 10 KiB."""
PAGES_KIB = 512
"""How much of the database each connection to SQLite keeps in memory; the operating system keeps it, too."""

Transaction = Callable[[sa.Connection], AbstractContextManager[object]]
"""Makes a transaction of a block."""

P = ParamSpec('P')
T = TypeVar('T')
M = TypeVar('M', bound=Callable[..., Any])


class Connections(NamedTuple):
    """The connections of a process to its database. kept: how many it keeps open."""

    in_use: int
    idle: int
    kept: int


class Store:
    """The database behind an SQLAlchemy URL (sqlite, postgresql+psycopg, mysql+pymysql).

    durable=False trades crash safety for speed on SQLite; for stores that are thrown away.
    alone=True: nobody else has the database open, and nothing is read while it is being written, so that SQLite writes
    new data once instead of to a log first.
    mirrored: changes are recorded for Placement; see db/placement_changes.py.
    """

    def __init__(
        self,
        url: str,
        *,
        durable: bool = True,
        alone: bool = False,
        pool_size: int = 10,
        timeouts: Timeouts = DEFAULT,
        mirrored: bool = False,
    ):
        self.url = sa.make_url(url)
        # Set when a change was recorded for Placement.
        self.noted = threading.Event() if mirrored else None
        # Set when a notification is to be sent.
        self.announced = threading.Event()
        self.dialect = self.url.get_backend_name()
        self.error_log = DatabaseErrorLog(self.url.database if self.dialect == 'sqlite' else None)
        if self.dialect == 'sqlite':
            self.engine = _sqlite_engine(self.url, pool_size, timeouts, durable=durable, alone=alone)
        else:
            self.engine = _server_engine(self.url, pool_size, timeouts)
        sa.event.listen(self.engine, 'handle_error', unfit, retval=True)
        self.connection_cache = _connection_cache(self.engine, pool_size)
        self.clock = clock_of(self.dialect, self.query)
        self.check: Callable[[sa.Connection], None] = lambda connection: None
        self.transaction: Transaction = sa.Connection.begin
        # Whether somebody follows each change within a transaction, not only its final result.
        self.followed: Callable[[], bool] = lambda: False
        # Called after each change, for temporary listeners.
        self.change_listeners: list[Callable[[], None]] = []

    def checked(self, check: Callable[[sa.Connection], None]) -> Self:
        """The same store, where *check*, called at the end of each transaction, can abort it with an error."""
        store = copy.copy(self)
        store.check = check
        return store

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """A connection for queries; a consistent snapshot on SQLite."""
        with self.error_log.translating(), self.connection_cache.read() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """A transaction: committed at the end of the block, rolled back on an exception."""
        notes: list[str] | None = None if self.noted is None else []
        announced: list[int] = []
        with self.error_log.translating(), self.connection_cache.write() as connection:
            options = {'computeapi_notes': notes, 'computeapi_announced': announced}
            connection = connection.execution_options(**options, **quota_usages.new())
            with self.transaction(connection):
                yield connection
                self.check(connection)
                quota_usages.flush(connection)
        if self.noted is not None and notes:
            self.noted.set()
        if announced:
            self.announced.set()
        for notify in self.change_listeners:
            notify()

    @contextmanager
    def rebuild(self) -> Iterator[sa.Connection]:
        """Like `write`, for changes of tables, without time limits: SQLite, which recreates a table and drops the old
        one, would otherwise delete rows that refer to it as if its rows had been deleted."""
        with (
            self.error_log.translating(),
            self._without_timeouts() as engine,
            engine.connect() as connection,
            _unbound(connection),
            connection.begin(),
        ):
            yield connection
            if self.dialect == 'sqlite' and connection.exec_driver_sql('PRAGMA foreign_key_check').first():
                raise errors.DatabaseError('Rows would refer to missing rows.')

    def query(self, query: Callable[Concatenate[sa.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run one query, a function of db/, and return its result."""
        with self.read() as connection:
            return query(connection, *args, **kwargs)

    def change(self, change: Callable[Concatenate[sa.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Make one change in a transaction of its own, which is retried after a deadlock."""

        def act() -> T:
            with self.write() as connection:
                return change(connection, *args, **kwargs)

        return self.repeat(act)

    def repeat(self, act: Callable[[], T]) -> T:
        """Run *act*, which must be one transaction, and retry it after a deadlock."""
        for attempt in range(1, MAX_TRIES):
            with suppress(errors.Deadlock):
                return act()
            # The other transaction ends in a moment.
            time.sleep(attempt * PAUSE_SECONDS)
        return act()

    @contextmanager
    def _without_timeouts(self) -> Iterator[sa.Engine]:
        """An engine without time limits."""
        if self.dialect == 'sqlite':
            yield self.engine
            return
        engine = _server_engine(self.url, 1, UNLIMITED)
        try:
            yield engine
        finally:
            engine.dispose()

    def connections(self) -> Connections:
        pool = self.engine.pool
        assert isinstance(pool, sa.QueuePool), 'A database in memory has no pool.'
        unused = len(self.connection_cache.kept)
        return Connections(pool.checkedout() - unused, pool.checkedin() + unused, pool.size())

    def close(self) -> None:
        """Close all connections; one that another thread is using is closed when that thread returns it."""
        sa.event.listen(self.engine.pool, 'checkin', _close)
        self.connection_cache.close()
        self.engine.dispose()


def repeated(method: M) -> M:
    """Decorates a method that is one transaction in its object's store, which is retried after a deadlock."""

    @functools.wraps(method)
    def act(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self.store.repeat(lambda: method(self, *args, **kwargs))

    return cast(M, act)


def _close(driver: Any, record: sa.pool.ConnectionPoolEntry) -> None:
    """Close a connection that is returned to its pool."""
    record.close()


@contextmanager
def conflicts(problem: str) -> Iterator[None]:
    """Turns an IntegrityError, such as a duplicate, into a Conflict with this message."""
    try:
        yield
    except sa.exc.IntegrityError:
        raise errors.Conflict(problem) from None


@contextmanager
def _unbound(connection: sa.Connection) -> Iterator[None]:
    """Disable the foreign keys of SQLite, which is possible only between transactions."""
    driver: Any = connection.connection.dbapi_connection
    sqlite = connection.dialect.name == 'sqlite'
    if sqlite:
        driver.execute('PRAGMA foreign_keys=OFF')
    try:
        yield
    finally:
        if sqlite:
            driver.execute('PRAGMA foreign_keys=ON')


def store_of(conf: cfg.ConfigOpts, **more: Any) -> Store:
    """The database in the configuration; *more*: arguments of Store.  cfg.Error for an invalid URL."""
    options = conf.database
    timeouts = Timeouts(options.statement_timeout, options.lock_timeout, options.connect_timeout)
    usual = {'pool_size': options.max_pool_size, 'timeouts': timeouts, 'mirrored': conf.placement.enabled}
    try:
        return Store(options.connection, **{**usual, **more})
    except (sa.exc.ArgumentError, ImportError) as error:
        raise cfg.ConfigFileValueError(f'[database]connection: {error}') from None


def _server_engine(url: sa.URL, pool_size: int, limits: Timeouts) -> sa.Engine:
    engine = sa.create_engine(
        url,
        json_deserializer=orjson.loads,
        hide_parameters=True,
        isolation_level='READ COMMITTED',
        pool_size=pool_size,
        # The most recently used connection has the server's caches for repeated queries.
        pool_use_lifo=True,
        max_overflow=20,
        pool_recycle=3600,
        pool_timeout=limits.lock or None,
        connect_args=timeouts.arguments(url.get_backend_name(), limits),
    )
    limit = timeouts.limit_postgresql if url.get_backend_name() == 'postgresql' else timeouts.limit_mariadb
    limit(engine, limits)
    _read_json_quickly(engine)
    drivers.reduce_parsing(engine)
    timeouts.ping_at_checkout(engine)
    return engine


def _connection_cache(engine: sa.Engine, pool_size: int) -> ConnectionCache:
    if engine.dialect.name == 'sqlite':
        return SnapshotConnectionCache(engine, MAX_KEPT if isinstance(engine.pool, sa.QueuePool) else 0)
    return ConnectionCache(engine, pool_size, timeouts.is_alive)


class HintingCompiler(SQLiteCompiler):
    """Writes hints such as INDEXED BY after table names, which SQLAlchemy does only for other databases."""

    def get_from_hint_text(self, table: sa.FromClause, text: str | None) -> str | None:
        return text


class QuickJSON(sa.JSON):
    """Decodes JSON text with a single function call instead of several: a page of servers has hundreds of texts."""

    def result_processor(self, dialect: sa.Dialect, coltype: object) -> Callable[[Any], Any]:
        read = orjson.loads
        # A bare number, which SQLite stores as such, is decoded already.
        return lambda kept: read(kept) if isinstance(kept, str) else kept


def _read_json_quickly(engine: sa.Engine) -> None:
    dialect = engine.dialect
    quick = type('QuickJSON', (QuickJSON, dialect.colspecs[sa.JSON]), {})
    dialect.colspecs = {**dialect.colspecs, sa.JSON: quick}


def _sqlite_engine(url: sa.URL, pool_size: int, limits: Timeouts, *, durable: bool, alone: bool) -> sa.Engine:
    engine = sa.create_engine(
        url,
        json_deserializer=orjson.loads,
        hide_parameters=True,
        pool_size=pool_size,
        connect_args={'timeout': limits.lock, 'check_same_thread': False, 'cached_statements': PREPARED},
    )
    engine.dialect.statement_compiler = HintingCompiler
    # A listener for the event would cost more: each statement would then look for listeners, too.
    engine.dialect.do_begin = _begin  # type: ignore[method-assign]
    _read_json_quickly(engine)

    @sa.event.listens_for(engine, 'connect')
    def configure(connection: Any, record: Any) -> None:
        # The driver must not open transactions by itself: `read` and `write` do.
        connection.isolation_level = None
        for pragma in (
            # For a new database. Large pages make thousands of new servers cheaper, and a change more expensive.
            *([f'page_size={LARGE_PAGE}'] if alone else []),
            f'journal_mode={"DELETE" if alone else "WAL"}',
            f'synchronous={"FULL" if durable else "OFF"}',
            f'cache_size=-{PAGES_KIB}',
            'foreign_keys=ON',
        ):
            connection.execute(f'PRAGMA {pragma}')
        connection.create_function('regexp', 2, patterns.search, deterministic=True)

    return engine


def _begin(dbapi_connection: Any) -> None:
    """Begin a transaction with changes, unless a read has begun one without."""
    if not dbapi_connection.in_transaction:
        dbapi_connection.execute('BEGIN IMMEDIATE')
