"""Conditions for the rows of the caller. Its project is a parameter, so that a cached statement can be executed for
another caller."""

import sqlalchemy as sa

from computeapi.context import Context
from computeapi.db.listing import Clause

CALLER = 'caller'
"""The statement parameter for the caller's project."""


def caller(context: Context) -> sa.BindParameter[str | None]:
    return sa.bindparam(CALLER, context.project_id)


def owned(table: sa.Table, context: Context) -> Clause:
    """The rows of the caller's project."""
    return table.c.project_id == caller(context)


def own_rows(table: sa.Table, context: Context) -> Clause:
    """The same; all rows for an administrator."""
    return sa.true() if context.is_admin else owned(table, context)
