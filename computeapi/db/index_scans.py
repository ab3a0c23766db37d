"""Scans along an index: rows in the order of its columns, starting after a marker, as many as fill a page.

The database is told which index to use, where that is possible; it examines only rows on the way, and sorts nothing.
"""

import functools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.sql.util import ClauseAdapter
from sqlalchemy.sql.visitors import iterate

from computeapi.db.constant_queries import Row, fetch
from computeapi.db.listing import NO_MARKER, Clause, Page
from computeapi.errors import Invalid

HINTS = {'sqlite': 'INDEXED BY {}', 'mysql': 'FORCE INDEX ({})', 'mariadb': 'FORCE INDEX ({})'}
FIRST_LOOK, LOOK_FURTHER, MAX_LOOK = 100, 2, 4000
LIMIT = 'row_limit'
"""The name of the parameter that limits the rows."""
FEW = 1000
"""This many rows are sorted as fast as a page is read."""

Place = Sequence[Any]
"""The values of a row in the columns of an order: its position."""


def index_of(table: sa.Table, name: str) -> sa.Index:
    return next(index for index in table.indexes if index.name == name)


class IndexScan(NamedTuple):
    """The rows with these values in the first columns of an index (None: NULL), in the order of the next columns.

    keys: the number of those columns; none is ever NULL, except that the first may be with *present*, which omits rows
    without a value in it.  where: further conditions that the index covers.  uncovered: conditions that it does not
    cover.
    """

    along: sa.Index
    fixed: tuple[Any, ...]
    keys: int
    descending: bool
    present: bool = False
    where: tuple[Clause, ...] = ()
    uncovered: tuple[Clause, ...] = ()

    @property
    def table(self) -> sa.Table:
        assert self.along.table is not None
        return self.along.table

    @property
    def order(self) -> list[sa.Column[Any]]:
        return list(self.along.columns)[len(self.fixed) : len(self.fixed) + self.keys]


def rows(
    connection: sa.Connection,
    select: sa.Select[Any],
    scan: IndexScan,
    after: Place | None = None,
    limit: int | None = None,
    until: Place | None = None,
) -> list[Row]:
    """*select* applied to the first rows of a scan, or to those after a place in its order; until: the last place, for
    scans by age."""
    found: list[Row] = []
    shape, values = _shape(scan, after)
    # First the rows that share all but the last column of the place, finally those that share none.
    for same in [None] if after is None else reversed(range(scan.keys)):
        if limit is not None and len(found) >= limit:
            break
        statement = _statement(connection.dialect.name, select, shape, same)
        within = () if until is None else _until(scan, until, is_tie=bool(same))
        conditions = (*scan.where, *scan.uncovered, *within)
        statement = _narrowed(statement, conditions, limit is not None)
        parameters = values if limit is None else values | {LIMIT: limit - len(found)}
        # Conditions may contain values; without any, the statement is one that is built once.
        found += (
            connection.execute(statement, parameters).all() if conditions else fetch(connection, statement, parameters)
        )
    return found


def stretch(
    connection: sa.Connection,
    select: sa.Select[Any],
    scan: IndexScan,
    after: Place | None,
    end: Place | None,
    size: int,
    limit: int,
) -> list[Row]:
    """Like `rows`, limited to the next *size* rows by age, which end at the place *end*; None: the end of the scan."""
    if connection.dialect.name == 'postgresql':
        return list(connection.execute(_fenced(select, scan, after, size).limit(limit)).all())
    return rows(connection, select, scan, after, limit, end)


def _until(scan: IndexScan, end: Place, *, is_tie: bool) -> Iterator[Clause]:
    """The conditions for the rows of a scan by age up to a place. For ties the range on creation time is omitted:
    SQLite would scan all of it."""
    created_at, number = scan.order
    moment = sa.literal(end[0], created_at.type)
    if not is_tie:
        yield created_at >= moment if scan.descending else created_at <= moment
    if scan.descending:
        yield (created_at > moment) | (number >= end[1])
    else:
        yield (created_at < moment) | (number <= end[1])


def _fenced(select: sa.Select[Any], scan: IndexScan, after: Place | None, size: int) -> sa.Select[Any]:
    """PostgreSQL cannot be told which index to use. The remaining conditions are applied to the rows of the stretch
    only, because it would otherwise find all matching rows by another index, and sort them."""
    shape, values = _shape(scan, None)
    # For PostgreSQL, columns that are NULL must be part of the order; columns with a fixed value must not.
    order = [column for column, is_null in zip(scan.along.columns, shape.fixed, strict=False) if is_null] + scan.order
    parts = (part for clause in scan.uncovered for part in iterate(clause))
    asked = [part for part in parts if getattr(part, 'table', None) is scan.table]
    columns = sa.select(*dict.fromkeys((*select.selected_columns, *order, *asked)))
    some = _statement('postgresql', columns, shape, None).params(values).where(*scan.where, *_beyond(scan, after))
    some = some.limit(size + 1)
    those = ClauseAdapter(some.subquery()).traverse
    fitting = sa.select(*map(those, select.selected_columns)).where(*map(those, scan.uncovered))
    return fitting.order_by(*(each.desc() if scan.descending else each.asc() for each in map(those, order)))


def _beyond(scan: IndexScan, after: Place | None) -> Iterator[Clause]:
    """The condition for rows after a place, in the form that PostgreSQL finds along an index."""
    if after is not None:
        order, place = sa.tuple_(*scan.order), sa.tuple_(*after, types=[column.type for column in scan.order])
        yield order < place if scan.descending else order > place


@functools.lru_cache(maxsize=256)
def _narrowed(statement: sa.Select[Any], where: tuple[Clause, ...], limited: bool) -> sa.Select[Any]:
    """The statement with more conditions; cached, for conditions that are the same objects."""
    narrowed = statement.where(*where) if where else statement
    return narrowed.limit(sa.bindparam(LIMIT, type_=sa.Integer())) if limited else narrowed


def _shape(scan: IndexScan, after: Place | None) -> tuple[IndexScan, dict[str, Any]]:
    """The cacheable part of a scan, and the statement parameters; its `fixed` says which values are NULL."""
    values = {f'fixed_{number}': value for number, value in enumerate(scan.fixed) if value is not None}
    values |= {f'place_{number}': value for number, value in enumerate(after or ())}
    return scan._replace(fixed=tuple(value is None for value in scan.fixed), where=(), uncovered=()), values


@functools.lru_cache(maxsize=1024)
def _statement(dialect: str, select: sa.Select[Any], scan: IndexScan, same: int | None) -> sa.Select[Any]:
    """One part of a scan, given as its shape: the rows that share this many columns of the order with the place, and
    are beyond it in the next one; None: all."""
    columns = list(scan.along.columns)
    fixed, order = columns[: len(scan.fixed)], scan.order
    conditions = [
        column.is_(None) if missing else column == sa.bindparam(f'fixed_{number}', type_=column.type)
        for number, (column, missing) in enumerate(zip(fixed, scan.fixed, strict=True))
    ]
    if same is not None:
        place = [sa.bindparam(f'place_{number}', type_=column.type) for number, column in enumerate(order)]
        conditions += [order[number] == place[number] for number in range(same)]
        beyond, bound = order[same], place[same]
        conditions.append(beyond < bound if scan.descending else beyond > bound)
    elif scan.present:
        conditions.append(order[0].is_not(None))
    # For PostgreSQL, columns that are NULL must be part of the order.
    told = [*fixed, *order] if dialect == 'postgresql' else order[same or 0 :]
    found = select.where(*conditions).order_by(*(each.desc() if scan.descending else each.asc() for each in told))
    return hinted(found, scan.along)


def hinted(statement: sa.Select[Any], index: sa.Index) -> sa.Select[Any]:
    """The statement, with hints to use that index."""
    assert index.table is not None
    for dialect, words in HINTS.items():
        statement = statement.with_hint(index.table, words.format(index.name), dialect)
    return statement


def page(connection: sa.Connection, select: sa.Select[Any], scan: IndexScan, page: Page, marked: Clause) -> list[Row]:
    """The rows of one page. marked: the condition for the marker's row; Invalid if the scan does not contain it."""
    after: Place | None = None
    if page.marker is not None:
        columns = list(scan.along.columns)
        shared = [column == value for column, value in zip(columns, scan.fixed, strict=False)]
        after = connection.execute(sa.select(*scan.order).where(marked, *shared)).first()
        if after is None:
            raise Invalid(NO_MARKER.format(marker=page.marker))
    return rows(connection, select, scan, after, page.limit)


def place_at(connection: sa.Connection, scan: IndexScan, after: Place | None, offset: int) -> Place | None:
    """The place of the row that comes *offset* rows later, from the index only; None if there is none. Except on
    PostgreSQL, rows that share the first column with the place are not counted."""
    shape, values = _shape(scan, after)
    dialect, select = connection.dialect.name, _places(*shape[:3])
    if dialect == 'postgresql':
        statement = _statement(dialect, select, shape, None).where(*_beyond(scan, after))
    else:
        statement = _statement(dialect, select, shape, None if after is None else 0)
    return connection.execute(statement.where(*scan.where).offset(offset).limit(1), values).first()


def places(
    connection: sa.Connection, scan: IndexScan, after: Place | None = None, more: tuple[sa.ColumnElement[Any], ...] = ()
) -> Iterator[Place]:
    """The places of the rows of a scan, read from the index in growing batches. more: further columns of each."""
    size, select = FIRST_LOOK, _places(*_shape(scan, None)[0][:3], more)
    while True:
        found = rows(connection, select, scan, after, size)
        yield from found
        if len(found) < size:
            return
        after, size = found[-1][: scan.keys], min(size * LOOK_FURTHER, MAX_LOOK)


@functools.lru_cache(maxsize=1024)
def _places(
    index: sa.Index, fixed: tuple[Any, ...], keys: int, more: tuple[sa.ColumnElement[Any], ...] = ()
) -> sa.Select[Any]:
    return sa.select(*list(index.columns)[len(fixed) : len(fixed) + keys], *more)
