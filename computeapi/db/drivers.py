"""Avoids most of the parsing that psycopg and PyMySQL do in Python for each result.

An application repeats its statements, so the descriptions of the columns of a result are nearly always known already.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import sqlalchemy as sa

MOST_COLUMNS_KEPT = 5_000


def spare_parsing(engine: sa.Engine) -> None:
    """Make an engine for PostgreSQL (psycopg) or MariaDB (PyMySQL) parse results this way."""
    spare = _spare_psycopg if engine.dialect.name == 'postgresql' else _spare_pymysql
    spare(engine)


def _spare_psycopg(engine: sa.Engine) -> None:
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


def _spare_pymysql(engine: sa.Engine) -> None:
    """Cache the descriptions of columns by their bytes: the server sends them with each result, and parsing one takes
    longer than parsing a row."""
    from pymysql.connections import Connection
    from pymysql.protocol import FieldDescriptorPacket, MysqlPacket

    class Column(FieldDescriptorPacket):  # type: ignore[misc]
        def __init__(self, data: bytes, encoding: str):
            super().__init__(data, encoding)
            self.described = super().description()

        def description(self) -> Any:
            return self.described

    column = functools.lru_cache(MOST_COLUMNS_KEPT)(Column)

    class LeanConnection(Connection):  # type: ignore[misc]
        # A private method; if a later PyMySQL no longer calls it, nothing breaks, and columns are parsed each time.
        def _read_packet(self, packet_type: Any = MysqlPacket) -> Any:
            return super()._read_packet(column if packet_type is FieldDescriptorPacket else packet_type)

    @sa.event.listens_for(engine, 'do_connect')
    def connect(dialect: Any, record: Any, args: Any, options: Any) -> Any:
        return LeanConnection(*args, **options)
