"""Avoids most of the parsing that psycopg and PyMySQL do in Python for each result.

An application repeats its statements, so the descriptions of the columns of a result are nearly always known already.
"""

import functools
import io
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

PACKET_HEADER, SEQUENCE = 4, 256
"""The length of the header of a packet of MariaDB, and the modulus of its sequence numbers."""
MAX_KNOWN = 100
"""How many descriptions are remembered for each number of columns."""


def reduce_parsing(engine: sa.Engine) -> None:
    """Make an engine for PostgreSQL (psycopg) or MariaDB (PyMySQL) parse results this way."""
    reduce = _reduce_psycopg_parsing if engine.dialect.name == 'postgresql' else _reduce_pymysql_parsing
    reduce(engine)


def _reduce_psycopg_parsing(engine: sa.Engine) -> None:
    """Leave JSON undecoded, because the store decodes it, and describe columns only on demand."""
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
    """The columns of a result, computed on demand: for a cached statement, SQLAlchemy only checks for any."""

    def __init__(self, describe: Callable[[], Sequence[Any]]):
        self.describe = describe

    @functools.cached_property
    def columns(self) -> Sequence[Any]:
        return self.describe()

    def __getitem__(self, index: Any) -> Any:
        return self.columns[index]

    def __len__(self) -> int:
        return len(self.columns)


class KnownColumns(NamedTuple):
    """packets: the descriptions of the columns of a result, as the server sends them; parsed: PyMySQL's fields,
    converters and description."""

    packets: bytes
    parsed: tuple[Any, Any, Any]


def _reduce_pymysql_parsing(engine: sa.Engine) -> None:
    """Recognize descriptions of columns by their bytes: the server sends them with each result, and parsing them takes
    longer than parsing ten rows.

    This relies on private parts of PyMySQL.
    """
    from pymysql.connections import Connection, MySQLResult

    known_columns: dict[int, tuple[KnownColumns, ...]] = {}

    class LeanResult(MySQLResult):  # type: ignore[misc]
        def _get_descriptions(self) -> None:
            connection, count = self.connection, self.field_count
            arrived = _arrived(connection._rfile)
            for packets, parsed in known_columns.get(count, ()):
                if arrived.startswith(packets):
                    connection._rfile.read(len(packets))
                    connection._next_seq_id = (connection._next_seq_id + count) % SEQUENCE
                    self.fields, self.converters, self.description = parsed
                    # The mark of their end.
                    connection._read_packet()
                    return
            super()._get_descriptions()
            size = sum(PACKET_HEADER + len(each.get_all_data()) for each in self.fields)
            if size <= len(arrived):
                new = KnownColumns(arrived[:size], (self.fields, self.converters, self.description))
                known_columns[count] = (new, *known_columns.get(count, ())[: MAX_KNOWN - 1])

    class LeanConnection(Connection):  # type: ignore[misc]
        def _read_query_result(self, unbuffered: bool = False) -> Any:
            if unbuffered:
                return super()._read_query_result(unbuffered)
            self._result = LeanResult(self)
            self._result.read()
            if self._result.server_status is not None:
                self.server_status = self._result.server_status
            return self._result.affected_rows

    @sa.event.listens_for(engine, 'do_connect')
    def connect(dialect: Any, record: Any, args: Any, options: Any) -> Any:
        return LeanConnection(*args, **options)


def _arrived(stream: io.BufferedReader) -> bytes:
    """What has arrived and is not read yet, or what arrives next; nothing on an error, which the next read reports."""
    try:
        return stream.peek()
    except OSError:
        return b''
