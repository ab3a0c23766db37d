"""Time limits for the database: enforced by the database itself, and by its drivers if it does not respond at all."""

import functools
import math
import select
import time
from collections.abc import Generator, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import sqlalchemy as sa

QUIET_SECONDS = 5
"""How long a connection is assumed to be alive without a check."""
USED_AT = 'used_at'
PLAIN = {'max_parallel_workers_per_gather': '0', 'jit': 'off'}
"""Parallel workers and JIT compilation take PostgreSQL longer to start than a typical answer."""
SPARE_SECONDS = 5
"""How much longer than the database itself a driver waits for the end of a statement."""


class Timeouts(NamedTuple):
    """The maximum seconds for a statement, for a lock that it waits for, and for a new connection; 0: unlimited."""

    statement: float = 30
    lock: float = 20
    connect: float = 5

    @property
    def answer(self) -> float | None:
        """How long a driver waits for any response of the database; None: forever."""
        return self.statement + SPARE_SECONDS if self.statement else None

    @property
    def idle(self) -> float:
        """How long a transaction may be idle while it holds locks, e.g. because its process is stopped: short enough
        for others to get the locks within their time."""
        return self.lock / 2


DEFAULT, UNLIMITED = Timeouts(), Timeouts(0, 0, 0)


def arguments(dialect: str, timeouts: Timeouts) -> dict[str, Any]:
    """The connect arguments for the driver of this database."""
    connect = {'connect_timeout': max(int(timeouts.connect), 1)} if timeouts.connect else {}
    if dialect == 'postgresql':
        return connect
    limits = {
        'max_statement_time': timeouts.statement,
        'innodb_lock_wait_timeout': int(timeouts.lock),
        'lock_wait_timeout': int(timeouts.lock),
        'idle_transaction_timeout': math.ceil(timeouts.idle),
    }
    wanted = ', '.join(f'{name} = {value}' for name, value in limits.items() if value)
    command = {'init_command': f'SET SESSION {wanted}'} if wanted else {}
    return {**connect, **command, 'read_timeout': timeouts.connect or None, 'write_timeout': timeouts.answer}


def limit_mariadb(engine: sa.Engine, timeouts: Timeouts) -> None:
    """Set the read timeout after connecting: PyMySQL has only one for the greeting and for answers."""

    @sa.event.listens_for(engine, 'connect')
    def configure(connection: Any, record: Any) -> None:
        connection._read_timeout = timeouts.answer


def limit_postgresql(engine: sa.Engine, timeouts: Timeouts) -> None:
    """Make connections give up: the server after its limits, and the driver when a server does not respond."""
    import psycopg

    from computeapi.db.prepared_queries import PreparedQueries

    class Connection(psycopg.Connection[Any]):
        """Adds a time limit: psycopg itself waits forever for a server that is reachable but does not respond."""

        def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
            if timeouts.answer is None:
                return super().wait(gen, *args, **options)
            try:
                return super().wait(_within(timeouts.answer, gen), *args, **options)
            except TimeoutError as silence:
                self._give_up(silence)

        def fetch_prepared(self, text: str, parameters: Mapping[str, Any]) -> Sequence[Any]:
            """All rows of a query."""
            try:
                return self._prepared_queries.fetch(text, parameters)
            except TimeoutError as silence:
                self._give_up(silence)

        @functools.cached_property
        def _prepared_queries(self) -> PreparedQueries:
            return PreparedQueries(self, timeouts.answer)

        def _give_up(self, silence: TimeoutError) -> NoReturn:
            # A late answer would be taken for that of the next statement.
            self.close()
            raise psycopg.OperationalError(str(silence)) from silence

    @sa.event.listens_for(engine, 'do_connect')
    def connect(dialect: Any, record: Any, args: Any, options: Any) -> Any:
        return Connection.connect(*args, **options)

    @sa.event.listens_for(engine, 'connect')
    def configure(connection: Any, record: Any) -> None:
        wanted = {
            'statement_timeout': timeouts.statement,
            'lock_timeout': timeouts.lock,
            'idle_in_transaction_session_timeout': timeouts.idle,
        }
        limits = {name: str(int(seconds * 1000)) for name, seconds in wanted.items()}
        connection.execute('; '.join(f'SET {name} = {value}' for name, value in (limits | PLAIN).items()))
        connection.commit()


def ping_at_checkout(engine: sa.Engine) -> None:
    """Test connections of the pool before they are handed out."""

    @sa.event.listens_for(engine, 'checkout')
    def ping(driver: Any, record: Any, proxy: Any) -> None:
        if not _answers(engine.dialect, driver, record.info):
            raise sa.exc.InvalidatePoolError()


def is_alive(connection: sa.Connection) -> bool:
    """Whether a connection is still alive."""
    return _answers(connection.dialect, connection.connection.dbapi_connection, connection.info)


def _answers(dialect: Any, driver: Any, info: dict[str, Any]) -> bool:
    """Pings a connection that was idle for a while, or that has received unexpected data, as from a server that is
    shutting down. A ping each time would cost as much as a query."""
    now = time.monotonic()
    quiet, info[USED_AT] = now - info.get(USED_AT, now), now
    try:
        if quiet > QUIET_SECONDS or _has_sent_data(driver):
            dialect.do_ping(driver)
    except dialect.loaded_dbapi.Error:
        return False
    return True


def _has_sent_data(driver: Any) -> bool:
    """Whether the server has sent something, or the connection is closed. PyMySQL's socket is private."""
    socket = getattr(driver, '_sock', driver)
    return socket is None or is_readable(socket.fileno())


def is_readable(descriptor: int) -> bool:
    """Whether there is data, or the end of the connection, to read."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


def _within(seconds: float, waiting: Any) -> Generator[Any, Any, Any]:
    """Runs psycopg's wait generator until the time is over; an empty step means that time has passed."""
    end = time.monotonic() + seconds
    try:
        state = next(waiting)
        while True:
            ready = yield state
            if not ready and time.monotonic() >= end:
                raise TimeoutError(f'No response after {seconds:g} s.')
            state = waiting.send(ready)
    except StopIteration as result:
        return result.value
