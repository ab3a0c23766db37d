"""What lists have in common: their order, what comes after a marker in it, and bounds in time."""

import operator
from collections.abc import Mapping, Sequence
from datetime import datetime

import sqlalchemy as sa

from computeapi import errors

MOST_DIGITS = 18

Order = Sequence[tuple[sa.ColumnElement, str]]
"""Columns that are never null, each with asc or desc; the last one tells all rows apart."""


def order_by(order: Order) -> list[sa.ColumnElement]:
    return [column.desc() if direction == 'desc' else column.asc() for column, direction in order]


def after(connection: sa.Connection, order: Order, *where: sa.ColumnElement[bool]) -> sa.ColumnElement[bool] | None:
    """Whether a row comes after the one that `where` describes (the marker); None if there is no such row."""
    marker = connection.execute(sa.select(*(column for column, _ in order)).where(*where)).one_or_none()
    return None if marker is None else _greater(order, marker)


def _greater(order: Order, marker: Sequence) -> sa.ColumnElement[bool]:
    later = []
    same: list[sa.ColumnElement[bool]] = []
    for (column, direction), value in zip(order, marker, strict=True):
        later.append(sa.and_(*same, column < value if direction == 'desc' else column > value))
        same.append(column == value)
    return sa.or_(*later)


def sorted_by(
    sort: Sequence[tuple[str, str]], keys: Mapping[str, sa.ColumnElement], last: sa.ColumnElement
) -> list[tuple[sa.ColumnElement, str]]:
    """The order that these keys and directions mean, made total by the last column; Invalid for an unknown key."""
    for key, direction in sort:
        if key not in keys or direction not in ('asc', 'desc'):
            raise errors.Invalid(f'sort: {key}:{direction} must be one of {", ".join(keys)} with asc or desc.')
    return [*((keys[key], direction) for key, direction in sort), (last, 'desc')]


COMPARISONS = {
    'eq': operator.eq,
    'neq': operator.ne,
    'gt': operator.gt,
    'gte': operator.ge,
    'lt': operator.lt,
    'lte': operator.le,
}


def compared(column: sa.ColumnElement, bound: tuple[str, datetime]) -> sa.ColumnElement[bool]:
    """The column against a bound such as ('gte', moment)."""
    comparison, moment = bound
    return COMPARISONS[comparison](column, moment)


def identified(table: sa.Table, identifier: str) -> sa.ColumnElement[bool]:
    """The row of that number or UUID; longer numbers than a database can compare are nobody's."""
    if identifier.isdecimal() and len(identifier) <= MOST_DIGITS:
        return table.c.id == int(identifier)
    return table.c.uuid == identifier


def equals(column: sa.ColumnElement, value: object) -> sa.ColumnElement[bool]:
    """The value, or one of several."""
    return column.in_(value if isinstance(value, list | tuple | set | frozenset) else (value,))
