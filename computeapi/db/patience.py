"""How long a database is waited for: by the database itself, and by its drivers when it says nothing at all."""

import math
import select
import time
from collections.abc import Generator
from typing import Any, NamedTuple

import sqlalchemy as sa

QUIET_SECONDS = 5
"""For how long a connection is taken to be there without being asked."""
USED_AT = 'used_at'
PLAIN = {'max_parallel_workers_per_gather': '0', 'jit': 'off'}
"""To start processes, or to compile, takes PostgreSQL longer than an answer."""
SPARE_SECONDS = 5
"""How much longer than the database itself a driver waits for the end of a statement."""


class Patience(NamedTuple):
    """Seconds that a statement, a lock in its way, and a new connection may take; 0: any time."""

    statement: float = 30
    lock: float = 20
    connect: float = 5

    @property
    def answer(self) -> float | None:
        """How long a driver waits for the database to answer anything; None: for ever."""
        return self.statement + SPARE_SECONDS if self.statement else None

    @property
    def idle(self) -> float:
        """How long a transaction may stand still with what it has locked, as that of a stopped process does: others
        still get the lock in their time."""
        return self.lock / 2


USUAL, ENDLESS = Patience(), Patience(0, 0, 0)


def arguments(dialect: str, patience: Patience) -> dict[str, Any]:
    """What to tell the driver of this database when it connects."""
    connect = {'connect_timeout': max(int(patience.connect), 1)} if patience.connect else {}
    if dialect == 'postgresql':
        return connect
    limits = {
        'max_statement_time': patience.statement,
        'innodb_lock_wait_timeout': int(patience.lock),
        'lock_wait_timeout': int(patience.lock),
        'idle_transaction_timeout': math.ceil(patience.idle),
    }
    wanted = ', '.join(f'{name} = {value}' for name, value in limits.items() if value)
    command = {'init_command': f'SET SESSION {wanted}'} if wanted else {}
    return {**connect, **command, 'read_timeout': patience.connect or None, 'write_timeout': patience.answer}


def limit_mariadb(engine: sa.Engine, patience: Patience) -> None:
    """Let its connections wait for an answer as long as they may: PyMySQL knows one time for that and the greeting."""

    @sa.event.listens_for(engine, 'connect')
    def configure(connection: Any, record: Any) -> None:
        connection._read_timeout = patience.answer


def limit_postgresql(engine: sa.Engine, patience: Patience) -> None:
    """Let its connections give up: the server what takes too long, and the driver a server that is silent."""
    import psycopg

    class Connection(psycopg.Connection[Any]):
        """psycopg itself waits for ever for a server that can be reached and says nothing."""

        def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
            if patience.answer is None:
                return super().wait(gen, *args, **options)
            try:
                return super().wait(_within(patience.answer, gen), *args, **options)
            except TimeoutError as silence:
                # What it says later would be taken for the answer to the next question.
                self.close()
                raise psycopg.OperationalError(str(silence)) from silence

    @sa.event.listens_for(engine, 'do_connect')
    def connect(dialect: Any, record: Any, args: Any, options: Any) -> Any:
        return Connection.connect(*args, **options)

    @sa.event.listens_for(engine, 'connect')
    def configure(connection: Any, record: Any) -> None:
        wanted = {
            'statement_timeout': patience.statement,
            'lock_timeout': patience.lock,
            'idle_in_transaction_session_timeout': patience.idle,
        }
        limits = {name: str(int(seconds * 1000)) for name, seconds in wanted.items()}
        connection.execute('; '.join(f'SET {name} = {value}' for name, value in (limits | PLAIN).items()))
        connection.commit()


def look_at_checkout(engine: sa.Engine) -> None:
    """Let its pool hand out no connection that leads nowhere."""

    @sa.event.listens_for(engine, 'checkout')
    def look(driver: Any, record: Any, proxy: Any) -> None:
        if not _answers(engine.dialect, driver, record.info):
            raise sa.exc.InvalidatePoolError()


def is_there(connection: sa.Connection) -> bool:
    """Whether a connection still leads to the database."""
    return _answers(connection.dialect, connection.connection.dbapi_connection, connection.info)


def _answers(dialect: Any, driver: Any, info: dict[str, Any]) -> bool:
    """A connection is asked that was not used for a while, or on which something came that nobody asked for: a server
    that goes says so. To ask each time would cost as much as a look-up."""
    now = time.monotonic()
    quiet, info[USED_AT] = now - info.get(USED_AT, now), now
    try:
        if quiet > QUIET_SECONDS or _has_spoken(driver):
            dialect.do_ping(driver)
    except dialect.loaded_dbapi.Error:
        return False
    return True


def _has_spoken(driver: Any) -> bool:
    """Whether the server said something, or the connection is closed. PyMySQL keeps its socket to itself."""
    socket = getattr(driver, '_sock', driver)
    return socket is None or has_come(socket.fileno())


def has_come(descriptor: int) -> bool:
    """Whether there is something to read, or the end, on a connection."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


def _within(seconds: float, waiting: Any) -> Generator[Any, Any, Any]:
    """The steps of what psycopg waits for, until the time is over; a step that is nothing says that time passes."""
    end = time.monotonic() + seconds
    try:
        state = next(waiting)
        while True:
            ready = yield state
            if not ready and time.monotonic() >= end:
                raise TimeoutError(f'No answer after {seconds:g} s.')
            state = waiting.send(ready)
    except StopIteration as result:
        return result.value
