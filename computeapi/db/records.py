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

    def __init__(self, record: Callable[..., R], table: sa.FromClause, **others: sa.ColumnElement[Any]):
        self.record = record
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


def insert(connection: sa.Connection, table: sa.Table, values: Mapping[str, Any]) -> int:
    """Add a row to a table whose key counts; the number it is given."""
    key = connection.execute(sa.insert(table).values(**values)).inserted_primary_key
    assert key is not None
    return int(key[0])


def required(record: Any) -> list[str]:
    """The names of the fields without a default, in their order."""
    if dataclasses.is_dataclass(record):
        missing = dataclasses.MISSING
        fields = dataclasses.fields(record)
        return [each.name for each in fields if each.default is missing and each.default_factory is missing]
    return [name for name in record._fields if name not in record._field_defaults]
