"""Common parts of lists: pages, sorting, markers, and filters."""

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from computeapi import errors

MAX_DIGITS = 18
UNKNOWN_MARKER, NO_MARKER = 'marker [{marker}] not found', 'Marker {marker} could not be found.'
"""The messages for unknown markers, which differ between lists."""


class Page(NamedTuple):
    """A page of a list, in the order that the client chose.

    limit: the maximum number of items (None: all).  marker: the ID of the last item of the previous page.  sort: (name,
    descending).  backwards: the page before the marker instead, or the last page; only network lists have it.
    """

    limit: int | None = None
    marker: str | None = None
    sort: Sequence[tuple[str, bool]] = ()
    backwards: bool = False


WHOLE = Page()
MAX_PAGE = 1000
LIMIT = 'page_limit'

NEWEST_FIRST = (('created_at', 'desc'),)
"""The default order of lists, in the API's terms."""


def bounded(limit: int | None, marker: str | None) -> Page:
    """A page with a bounded length, in the default order."""
    return Page(MAX_PAGE if limit is None else min(limit, MAX_PAGE), marker)


Clause = sa.ColumnElement[bool]
Order = Sequence[tuple[sa.ColumnElement[Any], bool]]
"""Columns, each with whether it is descending; the last one is unique. NULL sorts before every value."""


def paged(
    connection: sa.Connection,
    statement: sa.Select[Any],
    order: Order,
    page: Page,
    *,
    marked: Sequence[Clause] = (),
    where: Sequence[Clause] = (),
    unknown: str | type[errors.NotFound] = UNKNOWN_MARKER,
) -> sa.Select[Any]:
    """The statement for the rows of one page, among those that match *where*.

    marked: the conditions that identify the marker's row, which need not match *where*.  An unknown marker raises
    Invalid with the message *unknown*, or that error class.
    """
    chosen = list(where)
    if page.marker is not None:
        later = after(connection, order, *marked, statement=statement)
        if later is None:
            if isinstance(unknown, str):
                raise errors.Invalid(unknown.format(marker=page.marker))
            raise unknown(id=page.marker)
        chosen.append(later)
    return statement.where(*chosen).order_by(*order_by(order)).limit(page.limit)


def beginning(
    statement: sa.Select[Any], order: Order, limit: int | None, parameters: Mapping[str, Any]
) -> tuple[sa.Select[Any], Mapping[str, Any]]:
    """Like `paged`, for a page without a marker of a statement that is built once; also its parameters."""
    return _beginning(statement, tuple(order), limit is not None), {**parameters, LIMIT: limit}


@functools.lru_cache(maxsize=256)
def _beginning(
    statement: sa.Select[Any], order: tuple[tuple[sa.ColumnElement[Any], bool], ...], limited: bool
) -> sa.Select[Any]:
    return limit_to(statement.order_by(*order_by(order)), limited)


def limit_to(statement: sa.Select[Any], limited: bool) -> sa.Select[Any]:
    """The statement with the parameter LIMIT, if its rows are limited."""
    return statement.limit(sa.bindparam(LIMIT, type_=sa.Integer)) if limited else statement


def ordered(table: sa.Table, page: Page, *further: str) -> Order:
    """The order of the page, made total by further columns, which follow the direction of its first one."""
    order = [(table.c[name], descending) for name, descending in page.sort]
    descending = order[0][1] if order else False
    return [*order, *((table.c[name], descending) for name in further if name not in dict(page.sort))]


def sorted_by(
    sort: Sequence[tuple[str, str]], keys: Mapping[str, sa.ColumnElement[Any]], last: sa.ColumnElement[Any]
) -> Order:
    """The order for these keys and directions, made total by the last column; Invalid for an unknown key."""
    for key, direction in sort:
        if key not in keys or direction not in ('asc', 'desc'):
            raise errors.Invalid(f'sort: {key}:{direction} must be one of {", ".join(keys)} with asc or desc.')
    return [*((keys[key], direction == 'desc') for key, direction in sort), (last, True)]


def sort_key(column: sa.Column[Any]) -> sa.ColumnElement[Any]:
    """The column; NULL sorts like the least value, consistently on every database."""
    if not column.nullable:
        return column
    return sa.func.coalesce(column, '' if column.type.python_type is str else -1)


def order_by(order: Order) -> list[sa.ColumnElement[Any]]:
    return [part for column, descending in order for part in _ordered(column, descending)]


def _ordered(column: sa.ColumnElement[Any], descending: bool) -> list[sa.ColumnElement[Any]]:
    direction = column.desc() if descending else column.asc()
    if not _is_nullable(column):
        return [direction]
    # The databases disagree on where NULL sorts, and MariaDB has no NULLS FIRST.
    missing = column.is_(None)
    return [missing.asc() if descending else missing.desc(), direction]


def after(
    connection: sa.Connection, order: Order, *marked: Clause, statement: sa.Select[Any] | None = None
) -> Clause | None:
    """The condition for rows after the one that `marked` identifies (the marker); None if there is no such row.

    statement: the statement to search for the marker, if it needs more than the tables of the order.
    """
    columns = [column for column, _ in order]
    found = sa.select(*columns) if statement is None else statement.with_only_columns(*columns)
    marker = connection.execute(found.where(*marked)).first()
    if marker is None:
        return None
    later: list[Clause] = []
    same: list[Clause] = []
    for (column, descending), value in zip(order, marker, strict=True):
        later.append(sa.and_(*same, _beyond(column, descending, value)))
        same.append(column.is_(None) if value is None else column == value)
    return sa.or_(*later)


def _beyond(column: sa.ColumnElement[Any], descending: bool, value: object) -> Clause:
    if value is None:
        return sa.false() if descending else column.is_not(None)
    # SQLAlchemy only accepts equality comparisons with a plain bool.
    bound = sa.literal(value, column.type)
    if descending:
        return sa.or_(column < bound, column.is_(None)) if _is_nullable(column) else column < bound
    return column > bound


def _is_nullable(column: sa.ColumnElement[Any]) -> bool:
    return isinstance(column, sa.Column) and bool(column.nullable)


COMPARISONS: dict[str, Callable[[sa.ColumnElement[Any], Any], Clause]] = {
    'eq': operator.eq,
    'neq': operator.ne,
    'gt': operator.gt,
    'gte': operator.ge,
    'lt': operator.lt,
    'lte': operator.le,
}


def compared(column: sa.ColumnElement[Any], bound: tuple[str, object]) -> Clause:
    """Compares the column with a bound such as ('gte', moment)."""
    comparison, value = bound
    return COMPARISONS[comparison](column, value)


def identified(table: sa.Table, identifier: str) -> Clause:
    """The row with that ID or UUID."""
    name, value = identity(identifier)
    return table.c[name] == value


def identity(identifier: str) -> tuple[str, int | str]:
    """The column of an ID or UUID, and its value; numbers longer than a database can compare match nothing."""
    if identifier.isdecimal() and len(identifier) <= MAX_DIGITS:
        return 'id', int(identifier)
    return 'uuid', identifier


SEVERAL = (list, tuple, set, frozenset)
"""The types of several alternatives for a value."""


def equals(column: sa.ColumnElement[Any], value: object) -> Clause:
    """Matches the value, or any of several; None matches NULL."""
    if value is None:
        return column.is_(None)
    return column.in_(value if isinstance(value, SEVERAL) else (value,))
