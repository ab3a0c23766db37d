"""Rows that are inserted, or replaced where they are there already, in one statement on every database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql, sqlite


def upsert(connection: sa.Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Let the table hold these rows, told apart by its primary key; they are locked until the transaction ends."""
    if rows:
        connection.execute(_statement(connection.dialect.name, table), rows)


def lock_row(connection: sa.Connection, table: sa.Table, row: Mapping[str, Any]) -> None:
    """Hold a row that is only there to be locked, until the transaction ends; make it first if need be."""
    if connection.dialect.name in ('mysql', 'mariadb'):
        _make_apart(connection, table, row)
    upsert(connection, table, [row])


def _make_apart(connection: sa.Connection, table: sa.Table, row: Mapping[str, Any]) -> None:
    """Make the row in a transaction of its own: if one that made it was rolled back, InnoDB would let those that wait
    for it lock the gap together, and then each other out."""
    wanted = [table.c[name] == value for name, value in row.items()]
    if connection.execute(sa.select(sa.literal(1)).where(*wanted)).first() is None:
        with connection.engine.begin() as other:
            other.execute(mysql.insert(table).prefix_with('IGNORE'), row)


def _statement(dialect: str, table: sa.Table) -> sa.Insert:
    keys = [column.name for column in table.primary_key]
    # A table that has nothing but its key gets the key again: the row is locked all the same.
    changed = [column.name for column in table.columns if column.name not in keys] or keys
    if dialect in ('mysql', 'mariadb'):
        statement = mysql.insert(table)
        return statement.on_duplicate_key_update({name: statement.inserted[name] for name in changed})
    insert: Any = {'postgresql': postgresql.insert, 'sqlite': sqlite.insert}[dialect](table)
    found: sa.Insert = insert.on_conflict_do_update(
        index_elements=keys, set_={name: insert.excluded[name] for name in changed}
    )
    return found
