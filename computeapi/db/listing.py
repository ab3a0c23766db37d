"""What lists have in common: pages, their order, what comes after a marker in it, and what rows are chosen by."""

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from computeapi import errors

MOST_DIGITS = 18
UNKNOWN_MARKER = 'marker [{marker}] not found'


class Page(NamedTuple):
    """A part of a list, in an order that clients choose.

    limit: the most items (None: all).  marker: the id of the last item of the page before.  sort: (name, descending).
    """

    limit: int | None = None
    marker: str | None = None
    sort: Sequence[tuple[str, bool]] = ()


WHOLE = Page()
MAX_PAGE = 1000

NEWEST_FIRST = (('created_at', 'desc'),)
"""The order of a list where nobody asks for another, in the words of clients."""


def bounded(limit: int | None, marker: str | None) -> Page:
    """A page that is not too long, in an order of its own."""
    return Page(MAX_PAGE if limit is None else min(limit, MAX_PAGE), marker)


Clause = sa.ColumnElement[bool]
Order = Sequence[tuple[sa.ColumnElement[Any], bool]]
"""Columns, each with whether it descends; the last one tells all rows apart. NULL comes before every value."""


def paged(
    connection: sa.Connection,
    statement: sa.Select[Any],
    order: Order,
    page: Page,
    *,
    marked: Sequence[Clause] = (),
    where: Sequence[Clause] = (),
    unknown: str = UNKNOWN_MARKER,
) -> sa.Select[Any]:
    """The statement for the rows of one page, among those that fit *where*.

    marked: what the row of the marker is, which need not fit.  Invalid, in the words of *unknown*, if there is none.
    """
    chosen = list(where)
    if page.marker is not None:
        later = after(connection, order, *marked, statement=statement)
        if later is None:
            raise errors.Invalid(unknown.format(marker=page.marker))
        chosen.append(later)
    return statement.where(*chosen).order_by(*order_by(order)).limit(page.limit)


def ordered(table: sa.Table, page: Page, unique: str) -> Order:
    """The order of the page, made total by the column *unique*, which follows the direction of the one before it."""
    order = [(table.c[name], descending) for name, descending in page.sort]
    if unique not in dict(page.sort):
        order.append((table.c[unique], order[-1][1] if order else False))
    return order


def sorted_by(
    sort: Sequence[tuple[str, str]], keys: Mapping[str, sa.ColumnElement[Any]], last: sa.ColumnElement[Any]
) -> Order:
    """The order that these keys and directions mean, made total by the last column; Invalid for an unknown key."""
    for key, direction in sort:
        if key not in keys or direction not in ('asc', 'desc'):
            raise errors.Invalid(f'sort: {key}:{direction} must be one of {", ".join(keys)} with asc or desc.')
    return [*((keys[key], direction == 'desc') for key, direction in sort), (last, True)]


def sort_key(column: sa.Column[Any]) -> sa.ColumnElement[Any]:
    """The column; what may be null sorts as if it held the least value, alike on every database."""
    if not column.nullable:
        return column
    return sa.func.coalesce(column, '' if column.type.python_type is str else -1)


def order_by(order: Order) -> list[sa.ColumnElement[Any]]:
    return [part for column, descending in order for part in _ordered(column, descending)]


def _ordered(column: sa.ColumnElement[Any], descending: bool) -> list[sa.ColumnElement[Any]]:
    if not _is_nullable(column):
        return [_directed(column, descending)]
    # The databases disagree on where NULL sorts, and MariaDB has no NULLS FIRST.
    missing = column.is_(None)
    return [missing.asc() if descending else missing.desc(), _directed(column, descending)]


def _directed(column: sa.ColumnElement[Any], descending: bool) -> sa.ColumnElement[Any]:
    return column.desc() if descending else column.asc()


def walked(
    connection: sa.Connection,
    statement: sa.Select[Any],
    order: Order,
    page: Page,
    *,
    marked: Sequence[Clause] = (),
    where: Sequence[Clause] = (),
    fixed: Sequence[sa.Column[Any]] = (),
    unknown: str = UNKNOWN_MARKER,
) -> list[sa.Row[Any]]:
    """As `paged`, but the rows, which every database finds along an index of the columns of the order, if there is one.

    fixed: the columns that stand before those of the order in the index, each of which has the same value, or none, in
    all rows that fit *where*.
    """
    found: list[sa.Row[Any]] = []
    for stretch in _stretches(order, _marker(connection, statement, order, page, marked, unknown)):
        room = None if page.limit is None else page.limit - len(found)
        if room != 0:
            found.extend(
                connection.execute(_along(connection, statement.where(*where), stretch, order, fixed).limit(room))
            )
    return found


def sifted(
    connection: sa.Connection,
    statement: sa.Select[Any],
    order: Order,
    page: Page,
    sought: Sequence[Clause],
    most: int,
    *,
    marked: Sequence[Clause] = (),
    where: Sequence[Clause] = (),
    fixed: Sequence[sa.Column[Any]] = (),
) -> tuple[list[sa.Row[Any]], sa.Row[Any] | None]:
    """As `walked`, but the rows that are *sought* among those, for which there is no index, at most so many looked at.

    And the order of the row that was looked at last, if there are more. It is looked at some rows, and if they do not
    fill the page, at more and more of them.
    """
    unique = order[-1][0]
    there = sa.select(*(column for column, _ in order)).where(*where)
    found: list[sa.Row[Any]] = []
    position = _marker(connection, statement, order, page, marked, UNKNOWN_MARKER)
    left, size = most, FIRST_LOOK
    while True:
        for stretch in _stretches(order, position):
            size = min(size, left)
            looked_at = _along(connection, there, stretch, order, fixed)
            ids = sa.select(looked_at.limit(size).subquery().c[len(order) - 1])
            room = None if page.limit is None else page.limit - len(found)
            some = statement.where(*among(unique, ids, sought)).order_by(*order_by(order)).limit(room)
            found.extend(connection.execute(some))
            if len(found) == page.limit:
                return found, None
            last = connection.execute(looked_at.offset(size - 1).limit(1)).first()
            if last is not None:
                break
        else:
            return found, None
        left -= size
        if left <= 0:
            return found, last
        position, size = last, size * LOOK_FURTHER


FIRST_LOOK, LOOK_FURTHER = 500, 8


def among(unique: sa.ColumnElement[Any], ids: Any, sought: Sequence[Clause]) -> list[Clause]:
    """What chooses the rows of these ids that are sought; no database comes to them in another way than by the ids."""
    return [unique.in_(ids), sa.case((sa.and_(sa.true(), *sought), 1), else_=0) == 1]


def _marker(
    connection: sa.Connection,
    statement: sa.Select[Any],
    order: Order,
    page: Page,
    marked: Sequence[Clause],
    unknown: str,
) -> sa.Row[Any] | None:
    if page.marker is None:
        return None
    found = _row(connection, statement, order, marked)
    if found is None:
        raise errors.Invalid(unknown.format(marker=page.marker))
    return found


def _along(
    connection: sa.Connection,
    statement: sa.Select[Any],
    stretch: '_Stretch',
    order: Order,
    fixed: Sequence[sa.Column[Any]],
) -> sa.Select[Any]:
    index = _index([*fixed, *(column for column, _ in order)])
    if index is not None and index.table is not None:
        # MariaDB may rather sort what it finds by another index.
        for dialect in ('mysql', 'mariadb'):
            statement = statement.with_hint(index.table, f'FORCE INDEX ({index.name})', dialect)
    begin = stretch.place + stretch.missing
    constant = [*((column, order[0][1]) for column in fixed), *order[:begin]]
    # Of columns that are NULL PostgreSQL has to be told that they are in order, and MariaDB must not be told.
    told = [_directed(*each) for each in constant] if connection.dialect.name == 'postgresql' else []
    further = (
        [_directed(*order[begin]), *order_by(order[begin + 1 :])] if not stretch.missing else order_by(order[begin:])
    )
    return statement.where(*stretch.where).order_by(*told, *further)


def _index(columns: Sequence[sa.ColumnElement[Any]]) -> sa.Index | None:
    """The one that has these columns, in their order."""
    table = getattr(columns[0], 'table', None)
    return _indexes(table).get(tuple(columns)) if isinstance(table, sa.Table) else None


@functools.cache
def _indexes(table: sa.Table) -> dict[tuple[sa.ColumnElement[Any], ...], sa.Index]:
    return {tuple(index.columns): index for index in table.indexes}


class _Stretch(NamedTuple):
    """Rows that follow each other in an index: in a range of the column at *place* in the order, those before it being
    the same in all; so is that one where it is *missing*."""

    where: Sequence[Clause]
    place: int
    missing: bool


def _stretches(order: Order, marker: sa.Row[Any] | None) -> list[_Stretch]:
    """What comes after the marker (None: everything), cut where one walk along an index ends: where what is the same as
    in the marker ends, and where NULL begins or ends."""
    if marker is None:
        return [_Stretch(where, 0, missing) for where, missing in _halves(*order[0])]
    values = zip(order, marker, strict=True)
    same = [column.is_(None) if value is None else column == value for (column, _), value in values]
    return [
        _Stretch([*same[:place], later], place, missing)
        for place in reversed(range(len(order)))
        for later, missing in _later(*order[place], marker[place])
    ]


def _halves(column: sa.ColumnElement[Any], descending: bool) -> list[tuple[Sequence[Clause], bool]]:
    """Each with whether the column is missing there."""
    if not _is_nullable(column):
        return [([], False)]
    halves: list[tuple[Sequence[Clause], bool]] = [([column.is_(None)], True), ([column.is_not(None)], False)]
    return halves[::-1] if descending else halves


def _later(column: sa.ColumnElement[Any], descending: bool, value: object) -> list[tuple[Clause, bool]]:
    """As `_halves`, what comes after a value."""
    if value is None:
        return [] if descending else [(column.is_not(None), False)]
    # SQLAlchemy asks nothing but equality of a boolean that it is given as such.
    bound = sa.literal(value, column.type)
    if not descending:
        return [(column > bound, False)]
    return [(column < bound, False), *([(column.is_(None), True)] if _is_nullable(column) else [])]


def after(
    connection: sa.Connection, order: Order, *marked: Clause, statement: sa.Select[Any] | None = None
) -> Clause | None:
    """Whether a row comes after the one that `marked` describes (the marker); None if there is no such row.

    statement: what the marker is looked for in, if it is more than the tables of the order.
    """
    marker = _row(connection, sa.select() if statement is None else statement, order, marked)
    if marker is None:
        return None
    later: list[Clause] = []
    same: list[Clause] = []
    for (column, descending), value in zip(order, marker, strict=True):
        later.append(sa.and_(*same, sa.or_(sa.false(), *(clause for clause, _ in _later(column, descending, value)))))
        same.append(column.is_(None) if value is None else column == value)
    return sa.or_(*later)


def _row(
    connection: sa.Connection, statement: sa.Select[Any], order: Order, marked: Sequence[Clause]
) -> sa.Row[Any] | None:
    """What the columns of the order hold in the row of the marker."""
    columns = [column for column, _ in order]
    wanted: sa.Select[Any] = statement.with_only_columns(*columns)
    return connection.execute(wanted.where(*marked)).first()


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
    """The column against a bound such as ('gte', moment)."""
    comparison, value = bound
    return COMPARISONS[comparison](column, value)


def identified(table: sa.Table, identifier: str) -> Clause:
    """The row of that number or UUID; longer numbers than a database can compare are nobody's."""
    if identifier.isdecimal() and len(identifier) <= MOST_DIGITS:
        return table.c.id == int(identifier)
    return table.c.uuid == identifier


def equals(column: sa.ColumnElement[Any], value: object) -> Clause:
    """The value, or one of several."""
    return column.in_(value if isinstance(value, list | tuple | set | frozenset) else (value,))
