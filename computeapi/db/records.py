"""Rows as records: which columns a statement asks for, and in which order, follows from the fields of a record.

ACTIONS = Rows(Action, actions)
ACTIONS.all(connection, ACTIONS.select.where(actions.c.server_id == server_id))
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import sqlalchemy as sa

R = TypeVar('R')


class Rows(Generic[R]):
    """The rows of a table as records of one class, a NamedTuple or a dataclass.

    A field without a default is the column of its name (of the table, or among *others*), or the import fails with
    a KeyError; one with a default is nothing that the statement loads. `select` is the statement to build on.
    """

    def __init__(self, record: Callable[..., R], table: sa.Table, **others: sa.ColumnElement[Any]):
        self.record, self.table = record, table
        self.columns = [others[name] if name in others else table.c[name] for name in required(record)]
        self.select = sa.select(*self.columns)

    def all(
        self, connection: sa.Connection, statement: sa.Executable, parameters: Mapping[str, Any] | None = None
    ) -> list[R]:
        """What a statement made of `select` finds."""
        record = self.record
        return [record(*row) for row in connection.execute(statement, parameters)]

    def first(
        self, connection: sa.Connection, statement: sa.Executable, parameters: Mapping[str, Any] | None = None
    ) -> R | None:
        row = connection.execute(statement, parameters).first()
        return None if row is None else self.record(*row)

    def find(self, connection: sa.Connection, *, lock: bool = False, **values: Any) -> R | None:
        """The one record with these values; with `lock`, nobody else changes it in this transaction."""
        query = self.select.filter_by(**values)
        return self.first(connection, query.with_for_update() if lock else query)

    def named(self, connection: sa.Connection, **values: Any) -> list[R]:
        """The records with these values, by name."""
        return self.all(connection, self.select.filter_by(**values).order_by(self.table.c.name, self.table.c.id))

    def insert(self, connection: sa.Connection, **values: Any) -> None:
        connection.execute(sa.insert(self.table).values(**values))

    def add(self, connection: sa.Connection, **values: Any) -> int:
        """As `insert`, for a table whose key counts; the number that the row is given."""
        key = connection.execute(sa.insert(self.table).values(**values)).inserted_primary_key
        assert key is not None
        return int(key[0])

    def update(self, connection: sa.Connection, values: Mapping[str, Any], **where: Any) -> None:
        """Give the rows that have the values *where* other ones."""
        if values:
            connection.execute(sa.update(self.table).filter_by(**where).values(**values))

    def delete(self, connection: sa.Connection, **values: Any) -> int:
        """How many rows with these values were there to delete."""
        return connection.execute(sa.delete(self.table).filter_by(**values)).rowcount


def required(record: Any) -> list[str]:
    """The names of the fields without a default, in their order."""
    if dataclasses.is_dataclass(record):
        missing = dataclasses.MISSING
        fields = dataclasses.fields(record)
        return [each.name for each in fields if each.default is missing and each.default_factory is missing]
    return [name for name in record._fields if name not in record._field_defaults]
