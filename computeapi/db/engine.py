"""One door to the database: `read()` for look-ups, `write()` for changes.

SQLite takes its write lock when a transaction begins, not when it first writes,
so two writers queue instead of failing half way. What goes into a statement may be secret: errors do not show it.
What comes out of a door is DatabaseTrouble when the database is the reason: it is away, full, locked, or slow.
"""

import copy
import functools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, Concatenate, NamedTuple, ParamSpec, Self, TypeVar, cast

import orjson
import sqlalchemy as sa
from oslo_config import cfg
from sqlalchemy.dialects.sqlite.base import SQLiteCompiler

from computeapi import errors
from computeapi.db import patience, patterns, quota_usages
from computeapi.db.clock import clock_of
from computeapi.db.patience import ENDLESS, USUAL, Patience
from computeapi.db.trouble import Watch, unfit
from computeapi.db.views import SteadyViews, Views

MOST_TRIES, PAUSE_SECONDS = 5, 0.01
MOST_KEPT = 5
LARGE_PAGE = 16 * 1024

Transaction = Callable[[sa.Connection], AbstractContextManager[object]]
"""Makes what happens in a block one change, or none."""

P = ParamSpec('P')
T = TypeVar('T')
M = TypeVar('M', bound=Callable[..., Any])


class Connections(NamedTuple):
    """How many connections a process has to its database. kept: how many it does not close again."""

    in_use: int
    idle: int
    kept: int


class Store:
    """The database behind an SQLAlchemy URL (sqlite, postgresql+psycopg, mysql+pymysql).

    durable=False gives up crash safety on SQLite for speed; for stores that are thrown away.
    alone=True: nobody else has the database open, and nothing is read while it is written, so that SQLite writes what
    is new once, and not to its log first.
    mirrored: what changes is written down for Placement; see db/placement_changes.py.
    """

    def __init__(
        self,
        url: str,
        *,
        durable: bool = True,
        alone: bool = False,
        pool_size: int = 10,
        patience: Patience = USUAL,
        mirrored: bool = False,
    ):
        self.url = sa.make_url(url)
        # Set when something was written down for Placement.
        self.noted = threading.Event() if mirrored else None
        self.dialect = self.url.get_backend_name()
        self.watch = Watch()
        if self.dialect == 'sqlite':
            self.engine = _sqlite_engine(self.url, pool_size, patience, durable=durable, alone=alone)
            self.writer = _sqlite_writer(self.engine)
        else:
            self.engine = self.writer = _server_engine(self.url, pool_size, patience)
        sa.event.listen(self.engine, 'handle_error', unfit, retval=True)
        self.views = _views(self.engine)
        self.clock = clock_of(self.dialect, self.ask)
        self.check: Callable[[sa.Connection], None] = lambda connection: None
        self.transaction: Transaction = sa.Connection.begin
        # Whether somebody is told of each change in a transaction, and not only of what it ends with.
        self.followed: Callable[[], bool] = lambda: False
        # What to call after each change, by whoever wants to hear of them for a while.
        self.told_of_changes: list[Callable[[], None]] = []

    def checked(self, check: Callable[[sa.Connection], None]) -> Self:
        """The same store, each change of which is lost unless *check*, asked last in its transaction, lets it pass."""
        store = copy.copy(self)
        store.check = check
        return store

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """A connection to look things up with; one consistent view on SQLite."""
        with self.watch.watching(), self.views.view() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """A transaction: committed at the end of the block, rolled back on an exception."""
        notes: list[str] | None = None if self.noted is None else []
        self.views.make_room()
        with self.watch.watching(), self.writer.connect() as connection:
            connection = connection.execution_options(computeapi_notes=notes, **quota_usages.new())
            with self.transaction(connection):
                yield connection
                self.check(connection)
                quota_usages.flush(connection)
        if self.noted is not None and notes:
            self.noted.set()
        for tell in self.told_of_changes:
            tell()

    @contextmanager
    def rebuild(self) -> Iterator[sa.Connection]:
        """As `write`, to change tables: SQLite, which makes a table anew and drops the old one, would delete what
        refers to it as if its rows had gone. It may take any time."""
        with (
            self.watch.watching(),
            self._patient() as engine,
            engine.connect() as connection,
            _unbound(connection),
            connection.begin(),
        ):
            yield connection
            if self.dialect == 'sqlite' and connection.exec_driver_sql('PRAGMA foreign_key_check').first():
                raise errors.DatabaseTrouble('Rows would refer to others that are not there.')

    def ask(self, query: Callable[Concatenate[sa.Connection, P], T], *args: P.args, **facts: P.kwargs) -> T:
        """One look-up: what the query, a function of db/, finds."""
        with self.read() as connection:
            return query(connection, *args, **facts)

    def tell(self, change: Callable[Concatenate[sa.Connection, P], T], *args: P.args, **facts: P.kwargs) -> T:
        """One change in a transaction of its own, made again when it was in the way of others."""

        def act() -> T:
            with self.write() as connection:
                return change(connection, *args, **facts)

        return self.repeat(act)

    def repeat(self, act: Callable[[], T]) -> T:
        """What the act answers, which is one transaction, and is made again when that was in the way of others."""
        for attempt in range(1, MOST_TRIES):
            with suppress(errors.Deadlock):
                return act()
            # Whoever was in the way is at it for a moment.
            time.sleep(attempt * PAUSE_SECONDS)
        return act()

    @contextmanager
    def _patient(self) -> Iterator[sa.Engine]:
        """Connections that have no limits of time."""
        if self.dialect == 'sqlite':
            yield self.writer
            return
        engine = _server_engine(self.url, 1, ENDLESS)
        try:
            yield engine
        finally:
            engine.dispose()

    def connections(self) -> Connections:
        pool = self.engine.pool
        assert isinstance(pool, sa.QueuePool), 'A database in memory has no pool.'
        unused = len(self.views.kept)
        return Connections(pool.checkedout() - unused, pool.checkedin() + unused, pool.size())

    def close(self) -> None:
        self.views.close()
        self.engine.dispose()


def repeated(method: M) -> M:
    """A method that is one transaction in its object's store, which is made again when it was in the way of others."""

    @functools.wraps(method)
    def act(self: Any, *args: Any, **facts: Any) -> Any:
        return self.store.repeat(lambda: method(self, *args, **facts))

    return cast(M, act)


@contextmanager
def conflicts(problem: str) -> Iterator[None]:
    """What the database refuses, such as a duplicate, is a Conflict with this message."""
    try:
        yield
    except sa.exc.IntegrityError:
        raise errors.Conflict(problem) from None


@contextmanager
def _unbound(connection: sa.Connection) -> Iterator[None]:
    """Let SQLite look at no foreign keys; it can be told so only between two transactions."""
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
    """The database that the configuration names; *more*: as Store takes it.  cfg.Error for a URL of none."""
    options = conf.database
    patience = Patience(options.statement_timeout, options.lock_timeout, options.connect_timeout)
    usual = {'pool_size': options.max_pool_size, 'patience': patience, 'mirrored': conf.placement.enabled}
    try:
        return Store(options.connection, **{**usual, **more})
    except (sa.exc.ArgumentError, ImportError) as error:
        raise cfg.ConfigFileValueError(f'[database]connection: {error}') from None


def _read_quickly_from_postgresql(engine: sa.Engine) -> None:
    """Let the driver do no more in Python than it must: JSON is for us to read, and columns are described in vain."""
    import psycopg
    from psycopg.types.string import TextLoader

    class Cursor(psycopg.Cursor[Any]):
        @property
        def description(self) -> Any:
            if self.pgresult is None or not self.pgresult.nfields:
                return super().description
            return Description(lambda: super(Cursor, self).description or ())

    @sa.event.listens_for(engine, 'connect')
    def configure(connection: Any, record: Any) -> None:
        connection.cursor_factory = Cursor
        connection.adapters.register_loader('json', TextLoader)


class Description(Sequence[Any]):
    """The columns of a result, made when somebody looks at them: of a statement that it knows, SQLAlchemy wants to know
    only that there are some."""

    def __init__(self, describe: Callable[[], Sequence[Any]]):
        self.describe = describe

    @functools.cached_property
    def columns(self) -> Sequence[Any]:
        return self.describe()

    def __getitem__(self, index: Any) -> Any:
        return self.columns[index]

    def __len__(self) -> int:
        return len(self.columns)


def _server_engine(url: sa.URL, pool_size: int, limits: Patience) -> sa.Engine:
    engine = sa.create_engine(
        url,
        json_deserializer=orjson.loads,
        hide_parameters=True,
        isolation_level='READ COMMITTED',
        pool_size=pool_size,
        # The connection that was used last has in its memory what is asked again.
        pool_use_lifo=True,
        max_overflow=20,
        pool_recycle=3600,
        pool_timeout=limits.lock or None,
        connect_args=patience.arguments(url.get_backend_name(), limits),
    )
    limit = patience.limit_postgresql if url.get_backend_name() == 'postgresql' else patience.limit_mariadb
    limit(engine, limits)
    _read_json_quickly(engine)
    if engine.dialect.name == 'postgresql':
        _read_quickly_from_postgresql(engine)
    patience.look_at_checkout(engine)
    return engine


def _views(engine: sa.Engine) -> Views:
    if engine.dialect.name == 'sqlite':
        return SteadyViews(engine, MOST_KEPT if isinstance(engine.pool, sa.QueuePool) else 0)
    # Where each statement sees what is committed, a transaction around look-ups is two more ways to the server.
    return Views(engine.execution_options(isolation_level='AUTOCOMMIT'), MOST_KEPT, patience.is_there)


class HintingCompiler(SQLiteCompiler):
    """Writes hints after the names of tables, such as INDEXED BY, which SQLAlchemy does for other databases alone."""

    def get_from_hint_text(self, table: sa.FromClause, text: str | None) -> str | None:
        return text


class QuickJSON(sa.JSON):
    """Reads a text by one function, where SQLAlchemy or drivers have more: a page of servers is hundreds of texts."""

    def result_processor(self, dialect: sa.Dialect, coltype: object) -> Callable[[Any], Any]:
        read = orjson.loads
        # A lone number, which SQLite keeps as one, is read already.
        return lambda kept: read(kept) if isinstance(kept, str) else kept


def _read_json_quickly(engine: sa.Engine) -> None:
    dialect = engine.dialect
    quick = type('QuickJSON', (QuickJSON, dialect.colspecs[sa.JSON]), {})
    dialect.colspecs = {**dialect.colspecs, sa.JSON: quick}


def _sqlite_engine(url: sa.URL, pool_size: int, limits: Patience, *, durable: bool, alone: bool) -> sa.Engine:
    engine = sa.create_engine(
        url,
        json_deserializer=orjson.loads,
        hide_parameters=True,
        pool_size=pool_size,
        connect_args={'timeout': limits.lock, 'check_same_thread': False},
    )
    engine.dialect.statement_compiler = HintingCompiler
    _read_json_quickly(engine)

    @sa.event.listens_for(engine, 'connect')
    def configure(connection: Any, record: Any) -> None:
        # The driver must not open transactions by itself: who reads or writes does.
        connection.isolation_level = None
        for pragma in (
            # Of a new database. With large pages it takes less to write thousands of servers, and more to change one.
            *([f'page_size={LARGE_PAGE}'] if alone else []),
            f'journal_mode={"DELETE" if alone else "WAL"}',
            f'synchronous={"FULL" if durable else "OFF"}',
            'foreign_keys=ON',
        ):
            connection.execute(f'PRAGMA {pragma}')
        connection.create_function('regexp', 2, patterns.search, deterministic=True)

    return engine


def _sqlite_writer(engine: sa.Engine) -> sa.Engine:
    """The same connections, for transactions that change something. Who only reads pays for no event."""
    writer = engine.execution_options()

    @sa.event.listens_for(writer, 'begin')
    def begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql('BEGIN IMMEDIATE')

    return writer
