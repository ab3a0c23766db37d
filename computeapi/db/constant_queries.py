"""Executes queries that are built once directly on the driver.

SQLAlchemy writes such a query, and converts the values of its parameters and columns, as always. But finding the
written query again for each execution, and making a result that knows its columns by name, takes it longer than most
queries take on SQLite, and half as long as they take on PostgreSQL and MariaDB.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import sqlalchemy as sa

Query = sa.Select[Any] | sa.CompoundSelect[Any]
Row = Sequence[Any]
Convert = Callable[[Any], Any]
KEPT = 'computeapi_written_queries'


def fetch(connection: sa.Connection, query: Query, parameters: Mapping[str, Any] | None = None) -> Sequence[Row]:
    """All rows of a query, as sequences of values.

    A query with parameters must be one that is built once, because it is written and kept at its first execution.
    Errors are those of SQLAlchemy.
    """
    written = _written(connection, query, parameters)
    if written is None:
        return connection.execute(query, parameters).all()
    return written.execute(connection, parameters or {}, lambda cursor: cursor.fetchall())


def first(connection: sa.Connection, query: Query, parameters: Mapping[str, Any] | None = None) -> Row | None:
    """Like `fetch`, the first row only."""
    written = _written(connection, query, parameters)
    if written is None:
        return connection.execute(query, parameters).first()
    rows = written.execute(connection, parameters or {}, lambda cursor: cursor.fetchmany(1))
    return rows[0] if rows else None


class WrittenQuery:
    """A query as text, and how its values are converted; `is_constant` is False if the text depends on them."""

    def __init__(self, query: Query, dialect: sa.Dialect):
        compiled: Any = query.compile(dialect=dialect)
        binds = compiled.binds
        self.text, self.positional = compiled.string, compiled.positional
        self.types = [column.type for column in query.selected_columns]
        names = compiled.positiontup if self.positional else binds
        # Its name in the text, which cannot contain each name, and its own.
        self.parameters = [(compiled.escaped_bind_names.get(name, name), name) for name in names]
        self.defaults = {name: bind.value for name, bind in binds.items() if not bind.required}
        converters = {name: _impl(bind.type, dialect).bind_processor(dialect) for name, bind in binds.items()}
        self.converters: dict[str, Convert] = {name: each for name, each in converters.items() if each is not None}
        self.is_constant = not (
            compiled.post_compile_params
            or compiled.literal_execute_params
            or any(bind.callable for bind in binds.values())
            or query.get_execution_options()
        )
        # Depends on the types of the driver, which are known after the first execution.
        self.readers: list[tuple[int, Convert]] | None = None

    def execute(
        self, connection: sa.Connection, parameters: Mapping[str, Any], read: Callable[[Any], Sequence[Row]]
    ) -> Sequence[Row]:
        """The rows that *read* takes from the driver's cursor."""
        driver: Any = connection.connection.dbapi_connection
        values, cursor = self._values(parameters), None
        try:
            if self.readers is not None and _prepares(driver):
                rows = driver.fetch_prepared(self.text, values)
            else:
                cursor = driver.cursor()
                cursor.execute(self.text, values)
                rows = read(cursor)
        except BaseException as error:
            # As for SQLAlchemy's own executions: it raises its error, and gives up a connection that is lost.
            connection._handle_dbapi_exception(error, self.text, values, cursor, None)
        if cursor is not None:
            if self.readers is None:
                self.readers = self._readers(connection.dialect, cursor.description)
            cursor.close()
        return [_read(row, self.readers) for row in rows] if self.readers else rows

    def _values(self, parameters: Mapping[str, Any]) -> Any:
        values = {**self.defaults, **parameters}
        for name, convert in self.converters.items():
            values[name] = convert(values[name])
        if self.positional:
            return [values[name] for _, name in self.parameters]
        return {written: values[name] for written, name in self.parameters}

    def _readers(self, dialect: sa.Dialect, description: Sequence[Sequence[Any]]) -> list[tuple[int, Convert]]:
        """The places of the columns whose values are converted, and how."""
        typed = zip(self.types, description, strict=True)
        readers = [_impl(kind, dialect).result_processor(dialect, each[1]) for kind, each in typed]
        return [(place, reader) for place, reader in enumerate(readers) if reader is not None]


def _prepares(driver: Any) -> bool:
    """Whether the driver's connection executes queries as prepared statements: it must not be in a transaction."""
    return hasattr(driver, 'fetch_prepared') and driver.autocommit


def _written(connection: sa.Connection, query: Query, parameters: Mapping[str, Any] | None) -> WrittenQuery | None:
    """None if the query must be executed by SQLAlchemy: it is built for this execution, it has no fixed text, or
    listeners expect its execution."""
    if parameters is None or connection._has_events or connection.engine._has_events:
        return None
    known = written_queries(connection.dialect)
    if query not in known:
        written = WrittenQuery(query, connection.dialect)
        known[query] = written if written.is_constant else None
    return known[query]


def written_queries(dialect: sa.Dialect) -> WeakKeyDictionary[Any, WrittenQuery | None]:
    """They are kept at the dialect, which each engine has its own of: engines can differ in how they convert values."""
    known: WeakKeyDictionary[Any, WrittenQuery | None] | None = vars(dialect).get(KEPT)
    return vars(dialect).setdefault(KEPT, WeakKeyDictionary()) if known is None else known


def _impl(kind: sa.types.TypeEngine[Any], dialect: sa.Dialect) -> Any:
    """The type with what this database needs for it."""
    return kind.dialect_impl(dialect)


def _read(row: Row, readers: Sequence[tuple[int, Convert]]) -> Row:
    values = list(row)
    for place, read in readers:
        values[place] = read(values[place])
    return values
