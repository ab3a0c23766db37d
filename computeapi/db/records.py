"""Rows as records: the columns of a statement, and their order, follow from the fields of a record. Also inserts and
upserts in one statement on every database.

ACTIONS = Rows(Action, actions)
ACTIONS.all(connection, ACTIONS.select.where(actions.c.server_id == server_id))
"""

import dataclasses
import functools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

from computeapi.db.constant_queries import Query, Row, fetch, first

K = TypeVar('K')
R = TypeVar('R')
T = TypeVar('T')


class Rows(Generic[R]):
    """The rows of a table as records of one class, a NamedTuple or a dataclass.

    A field without a default is the column of its name (of the table, or among *others*); otherwise the import fails
    with a KeyError. Fields with a default are not loaded. `select` is the statement to build on.
    """

    def __init__(self, record: Callable[..., R], table: sa.Table, **others: sa.ColumnElement[Any]):
        self.record, self.table = record, table
        self.columns = [others[name] if name in others else table.c[name] for name in required(record)]
        self.select = sa.select(*self.columns)

    def all(self, connection: sa.Connection, statement: Query, parameters: Mapping[str, Any] | None = None) -> list[R]:
        """The records of a statement built from `select`; parameters: only for one that is built once."""
        return self.of(fetch(connection, statement, parameters))

    def of(self, rows: Iterable[Row]) -> list[R]:
        """The records of the result of a statement built from `select`."""
        record = self.record
        return [record(*row) for row in rows]

    def first(
        self, connection: sa.Connection, statement: Query, parameters: Mapping[str, Any] | None = None
    ) -> R | None:
        """The first record of a statement built from `select`; parameters: only for one that is built once."""
        row = first(connection, statement, parameters)
        return None if row is None else self.record(*row)

    def find(self, connection: sa.Connection, /, *, lock: bool = False, **values: Any) -> R | None:
        """The record with these values; `lock` locks it for this transaction."""
        return self.first(connection, self._finding(tuple(values), lock, _nulls(values)), _named(values))

    def named(self, connection: sa.Connection, **values: Any) -> list[R]:
        """The records with these values, by name (if they have one) and ID."""
        key = self.table.c.id
        return self.all(connection, self.select.filter_by(**values).order_by(self.table.c.get('name', key), key))

    def number_of(self, connection: sa.Connection, **values: Any) -> int:
        """The number of records with these values."""
        return connection.scalar(sa.select(sa.func.count()).select_from(self.table).filter_by(**values)) or 0

    def insert(self, connection: sa.Connection, **values: Any) -> None:
        connection.execute(insertion(self.table), values)

    def add(self, connection: sa.Connection, **values: Any) -> int:
        """Like `insert`, for a table with an integer key; returns the new ID."""
        key = connection.execute(insertion(self.table), values).inserted_primary_key
        assert key is not None
        return int(key[0])

    def update(self, connection: sa.Connection, /, values: Mapping[str, Any], **where: Any) -> None:
        """Update the rows that match *where*."""
        if values:
            change(connection, self._updating(tuple(where), _nulls(where)), values, _named(where))

    def delete(self, connection: sa.Connection, /, **values: Any) -> int:
        """Delete the rows with these values; returns how many there were."""
        return connection.execute(self._deleting(tuple(values), _nulls(values)), _named(values)).rowcount

    # Statements are cached by column names, because building one costs more than executing it.

    @functools.cache  # noqa: B019  There is one Rows per record class.
    def _finding(self, names: tuple[str, ...], lock: bool, nulls: frozenset[str]) -> sa.Select[Any]:
        query = self.select.where(*self._holding(names, nulls))
        return query.with_for_update() if lock else query

    @functools.cache  # noqa: B019
    def _updating(self, names: tuple[str, ...], nulls: frozenset[str]) -> sa.Update:
        return sa.update(self.table).where(*self._holding(names, nulls))

    @functools.cache  # noqa: B019
    def _deleting(self, names: tuple[str, ...], nulls: frozenset[str]) -> sa.Delete:
        return sa.delete(self.table).where(*self._holding(names, nulls))

    def _holding(self, names: Collection[str], nulls: Collection[str]) -> list[sa.ColumnElement[bool]]:
        columns = [self.table.c[name] for name in names]
        return [
            each.is_(None) if each.name in nulls else each == sa.bindparam(HOLDING + each.name, type_=each.type)
            for each in columns
        ]


HOLDING = 'holding_'
"""The prefix of condition parameters, followed by the names of their columns."""


def _named(values: Mapping[str, Any]) -> dict[str, Any]:
    return {HOLDING + name: value for name, value in values.items() if value is not None}


def _nulls(values: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(name for name, value in values.items() if value is None)


@functools.cache
def insertion(table: sa.Table) -> sa.Insert:
    """The INSERT statement, to be executed with the values of a row."""
    return sa.insert(table)


def change(connection: sa.Connection, statement: sa.Update, values: Mapping[str, Any], where: Mapping[str, Any]) -> int:
    """Execute a cached update: *values* for its columns, *where* for its parameters, whose names are not column names;
    returns the number of rows changed."""
    if any(isinstance(value, sa.ClauseElement) for value in values.values()):
        return connection.execute(statement.values(**values), where).rowcount
    return connection.execute(statement, {**values, **where}).rowcount


class Among:
    """The statement for the rows that have one of some values in a column; a single value uses another statement.
    more: further statements whose rows are appended.  order: the names of the columns by which all of them are
    sorted."""

    def __init__(
        self,
        statement: sa.Select[Any],
        column: sa.ColumnElement[Any],
        *more: tuple[sa.Select[Any], sa.ColumnElement[Any]],
        order: Sequence[str] = (),
    ):
        self.parts, self.order = [(statement, column), *more], order

    def rows(
        self, connection: sa.Connection, values: Collection[Any], parameters: Mapping[str, Any] | None = None
    ) -> Sequence[Row]:
        """The rows with one of these values; parameters: further parameters of the statement."""
        more = parameters or {}
        if len(values) == 1:
            return fetch(connection, self._one, {**more, 'value': next(iter(values))})
        return fetch(connection, self._several(connection.dialect.name), {**more, 'values': list(values)})

    @functools.cached_property
    def _one(self) -> Any:
        return self._where(lambda column: column == sa.bindparam('value', type_=column.type))

    @functools.cache  # noqa: B019  There are few, one for each statement.
    def _several(self, dialect: str) -> Any:
        return self._where(lambda column: is_among(dialect, column, 'values'))

    def _where(self, holds: Callable[[sa.ColumnElement[Any]], sa.ColumnElement[bool]]) -> Any:
        first, *more = (statement.where(holds(column)) for statement, column in self.parts)
        return sa.union_all(first, *more).order_by(*self.order) if more else first


def is_among(dialect: str, column: sa.ColumnElement[Any], parameter: str) -> sa.ColumnElement[bool]:
    """Whether a column has one of the values of a parameter: a single array on databases that support it; elsewhere
    the list is expanded into the text of the statement each time."""
    if dialect == 'postgresql':
        return column == sa.any_(sa.bindparam(parameter, type_=sa.ARRAY(column.type)))
    if dialect == 'sqlite':
        values = sa.func.json_each(sa.bindparam(parameter, type_=sa.JSON)).table_valued('value')
        return column.in_(sa.select(values.c.value))
    return column.in_(sa.bindparam(parameter, type_=column.type, expanding=True))


def dicts(names: Iterable[str], rows: Iterable[Row]) -> list[dict[str, Any]]:
    """The rows by column name; `mappings()` looks up each value by itself, which takes twice as long."""
    keys = tuple(names)
    return [dict(zip(keys, row, strict=True)) for row in rows]


def grouped(pairs: Iterable[tuple[K, T]]) -> dict[K, list[T]]:
    """The second items grouped by the first, in order."""
    groups: dict[K, list[T]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def required(record: Any) -> list[str]:
    """The names of the fields without a default, in order."""
    if dataclasses.is_dataclass(record):
        missing = dataclasses.MISSING
        fields = dataclasses.fields(record)
        return [each.name for each in fields if each.default is missing and each.default_factory is missing]
    return [name for name in record._fields if name not in record._field_defaults]


def upsert(
    connection: sa.Connection,
    table: sa.Table,
    rows: Sequence[Mapping[str, Any]],
    changed: tuple[str, ...] | None = None,
    *,
    added: tuple[str, ...] = (),
) -> None:
    """Insert these rows, or update those whose primary key exists; they stay locked until the transaction ends.

    changed: the columns to update in existing rows; None: all.  added: those of them to which the new value is added.
    """
    if rows:
        connection.execute(_statement(connection.dialect.name, table, changed, added), rows)


def make_sure(connection: sa.Connection, table: sa.Table, row: Mapping[str, Any]) -> bool:
    """Insert the row, unless its key exists: then the existing row is kept. Returns whether it was inserted."""
    return connection.execute(_ensuring(connection.dialect.name, table), row).rowcount == 1


@functools.cache
def _ensuring(dialect: str, table: sa.Table) -> sa.Insert:
    insert = _insert(dialect, table)
    mariadb = dialect in ('mysql', 'mariadb')
    ensuring: sa.Insert = insert.prefix_with('IGNORE') if mariadb else insert.on_conflict_do_nothing()
    # SQLAlchemy does not keep the row count of an insert by default.
    return ensuring.execution_options(preserve_rowcount=True)


def make_sure_of(connection: sa.Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Like `make_sure`, for several rows."""
    connection.execute(_ensuring(connection.dialect.name, table), rows)


def lock_row(connection: sa.Connection, table: sa.Table, row: Mapping[str, Any]) -> None:
    """Lock a row that exists only to be locked, until the transaction ends; creates it first if necessary."""
    if connection.dialect.name in ('mysql', 'mariadb'):
        _make_apart(connection, table, row)
    upsert(connection, table, [row])


def _make_apart(connection: sa.Connection, table: sa.Table, row: Mapping[str, Any]) -> None:
    """Create the row in a transaction of its own: if the creating transaction were rolled back, InnoDB would let all
    waiters lock the gap, and then deadlock."""
    wanted = [table.c[name] == value for name, value in row.items()]
    if connection.execute(sa.select(sa.literal(1)).where(*wanted)).first() is None:
        with connection.engine.begin() as other:
            make_sure(other, table, row)


@functools.cache
def _statement(
    dialect: str, table: sa.Table, changed: tuple[str, ...] | None = None, added: tuple[str, ...] = ()
) -> sa.Insert:
    keys = [column.name for column in table.primary_key]
    # For a table that has only its key, the key is set again, so that the row is locked all the same.
    changed = changed or tuple(column.name for column in table.columns if column.name not in keys) or tuple(keys)
    insert = _insert(dialect, table)
    found: sa.Insert
    if dialect in ('mysql', 'mariadb'):
        found = insert.on_duplicate_key_update(_values(table, insert.inserted, changed, added))
    else:
        found = insert.on_conflict_do_update(index_elements=keys, set_=_values(table, insert.excluded, changed, added))
    return found


def _values(table: sa.Table, new: Any, changed: Collection[str], added: Collection[str]) -> dict[str, Any]:
    """The new values of an existing row."""
    return {name: table.c[name] + new[name] if name in added else new[name] for name in changed}


def _insert(dialect: str, table: sa.Table) -> Any:
    # Importing other dialects would cost memory and startup time.
    if dialect == 'postgresql':
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(table)
    if dialect in ('mysql', 'mariadb'):
        from sqlalchemy.dialects import mysql

        return mysql.insert(table)
    return sqlite.insert(table)
