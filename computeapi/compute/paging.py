"""Pages of a list: a bounded slice after a marker, in an order that clients choose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa


class Page(NamedTuple):
    """limit: the most items (None: all).  marker: the id of the last item of the page before.

    sort: (column, descending)."""

    limit: int | None
    marker: str | None = None
    sort: Sequence[tuple[str, bool]] = ()


def keyset(
    table: sa.Table, page: Page, marker: Any, *, unique: str
) -> tuple[list[sa.ColumnElement[bool]], list[sa.ColumnElement[Any]]]:
    """The conditions for rows after *marker* (a record, or None) and the order by.

    The column *unique* is added last, so that the order is total; NULL sorts before every value.
    """
    columns = [(table.c[name], descending) for name, descending in page.sort]
    if unique not in dict(page.sort):
        columns.append((table.c[unique], columns[-1][1] if columns else False))
    order = [part for column, descending in columns for part in _order(column, descending)]
    if marker is None:
        return [], order
    values = [getattr(marker, column.name) for column, _ in columns]
    after = [
        sa.and_(
            *(_same(column, value) for (column, _), value in zip(columns[:position], values, strict=False)),
            _beyond(column, descending, values[position]),
        )
        for position, (column, descending) in enumerate(columns)
    ]
    return [sa.or_(*after)], order


def _order(column: sa.Column, descending: bool) -> list[sa.ColumnElement[Any]]:
    direction = column.desc() if descending else column.asc()
    if not column.nullable:
        return [direction]
    # The databases disagree on where NULL sorts, and MariaDB has no NULLS FIRST.
    missing = column.is_(None)
    return [missing.asc() if descending else missing.desc(), direction]


def _same(column: sa.Column, value: Any) -> sa.ColumnElement[bool]:
    return column.is_(None) if value is None else column == value


def _beyond(column: sa.Column, descending: bool, value: Any) -> sa.ColumnElement[bool]:
    if value is None:
        return sa.false() if descending else column.is_not(None)
    if descending:
        return sa.or_(column < value, column.is_(None)) if column.nullable else column < value
    return column > value
