"""Rows along an index of their table: in the order of its columns, those after a marker, as many as fill a page.

A database is told which index to use, where it can be told; none but those in the way is looked at, and none sorted.
"""

import functools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.sql.util import ClauseAdapter
from sqlalchemy.sql.visitors import iterate

from computeapi.db.listing import NO_MARKER, Clause, Page
from computeapi.errors import Invalid

HINTS = {'sqlite': 'INDEXED BY {}', 'mysql': 'FORCE INDEX ({})', 'mariadb': 'FORCE INDEX ({})'}
FIRST_LOOK, LOOK_FURTHER, LONGEST_LOOK = 100, 2, 4000
MOST = 'most'
"""What the parameter is called that bounds the rows."""
FEW = 1000
"""So many are sorted as quickly as a page is made."""

Place = Sequence[Any]
"""What a row holds in the columns of an order: where it stands."""


def index_of(table: sa.Table, name: str) -> sa.Index:
    return next(index for index in table.indexes if index.name == name)


class Walk(NamedTuple):
    """The rows that hold these values in the first columns of an index (None: NULL), in the order of the next columns.

    keys: how many these are; none of them is ever NULL, or it is the first one and *present*, which leaves out the rows
    that have no value there.  where: what else holds for the rows, as the index tells.  besides: what it does not.
    """

    along: sa.Index
    fixed: tuple[Any, ...]
    keys: int
    descending: bool
    present: bool = False
    where: tuple[Clause, ...] = ()
    besides: tuple[Clause, ...] = ()

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
    walk: Walk,
    after: Place | None = None,
    limit: int | None = None,
    until: Place | None = None,
) -> list[sa.Row[Any]]:
    """What *select* tells of the first rows of a walk, or of those after a place in its order; until: up to which one,
    if it is by age."""
    found: list[sa.Row[Any]] = []
    shape, values = _shape(walk, after)
    # What shares all but the last column of the place comes first, and what shares none of it last.
    for same in [None] if after is None else reversed(range(walk.keys)):
        if limit is not None and len(found) >= limit:
            break
        statement = _statement(connection.dialect.name, select, shape, same)
        within = () if until is None else _until(walk, until, is_tie=bool(same))
        statement = _narrowed(statement, (*walk.where, *walk.besides, *within), limit is not None)
        most = {} if limit is None else {MOST: limit - len(found)}
        found += connection.execute(statement, values | most).all()
    return found


def stretch(
    connection: sa.Connection,
    select: sa.Select[Any],
    walk: Walk,
    after: Place | None,
    end: Place | None,
    size: int,
    limit: int,
) -> list[sa.Row[Any]]:
    """As `rows`, of no others than the so many rows up to a place, by age; None: the end of the walk."""
    if connection.dialect.name == 'postgresql':
        return list(connection.execute(_fenced(select, walk, after, size).limit(limit)).all())
    return rows(connection, select, walk, after, limit, end)


def _until(walk: Walk, end: Place, *, is_tie: bool) -> Iterator[Clause]:
    """What is so of the rows of a walk by age up to a place. Of those that are as old as the one before, SQLite would
    look at all in this range."""
    created_at, number = walk.order
    moment = sa.literal(end[0], created_at.type)
    if not is_tie:
        yield created_at >= moment if walk.descending else created_at <= moment
    if walk.descending:
        yield (created_at > moment) | (number >= end[1])
    else:
        yield (created_at < moment) | (number <= end[1])


def _fenced(select: sa.Select[Any], walk: Walk, after: Place | None, size: int) -> sa.Select[Any]:
    """PostgreSQL cannot be told which index to use. What holds besides is asked of the rows of a stretch, or it would
    find them in another way, all of them, and sort them."""
    shape, values = _shape(walk, None)
    # What is NULL is in order, too; what is fixed is not, to PostgreSQL.
    order = [column for column, is_null in zip(walk.along.columns, shape.fixed, strict=False) if is_null] + walk.order
    asked = [part for clause in walk.besides for part in iterate(clause) if getattr(part, 'table', None) is walk.table]
    columns = sa.select(*dict.fromkeys((*select.selected_columns, *order, *asked)))
    some = _statement('postgresql', columns, shape, None).params(values).where(*walk.where, *_beyond(walk, after))
    some = some.limit(size + 1)
    those = ClauseAdapter(some.subquery()).traverse
    fitting = sa.select(*map(those, select.selected_columns)).where(*map(those, walk.besides))
    return fitting.order_by(*(each.desc() if walk.descending else each.asc() for each in map(those, order)))


def _beyond(walk: Walk, after: Place | None) -> Iterator[Clause]:
    """What is so of the rows after a place, as PostgreSQL finds them along an index."""
    if after is not None:
        order, place = sa.tuple_(*walk.order), sa.tuple_(*after, types=[column.type for column in walk.order])
        yield order < place if walk.descending else order > place


@functools.lru_cache(maxsize=256)
def _narrowed(statement: sa.Select[Any], where: tuple[Clause, ...], limited: bool) -> sa.Select[Any]:
    """Those of the rows for which more holds; the statement is there already where that is told by the same objects."""
    narrowed = statement.where(*where) if where else statement
    return narrowed.limit(sa.bindparam(MOST, type_=sa.Integer())) if limited else narrowed


def _shape(walk: Walk, after: Place | None) -> tuple[Walk, dict[str, Any]]:
    """What statements are made from once, and their parameters; `fixed` tells which values are NULL."""
    values = {f'fixed_{number}': value for number, value in enumerate(walk.fixed) if value is not None}
    values |= {f'place_{number}': value for number, value in enumerate(after or ())}
    return walk._replace(fixed=tuple(value is None for value in walk.fixed), where=(), besides=()), values


@functools.lru_cache(maxsize=1024)
def _statement(dialect: str, select: sa.Select[Any], walk: Walk, same: int | None) -> sa.Select[Any]:
    """One stretch of a walk, in shape: the rows that share so many columns of the order with the place, and are beyond
    it in the next one; all if it is None."""
    columns = list(walk.along.columns)
    fixed, order = columns[: len(walk.fixed)], walk.order
    conditions = [
        column.is_(None) if missing else column == sa.bindparam(f'fixed_{number}', type_=column.type)
        for number, (column, missing) in enumerate(zip(fixed, walk.fixed, strict=True))
    ]
    if same is not None:
        place = [sa.bindparam(f'place_{number}', type_=column.type) for number, column in enumerate(order)]
        conditions += [order[number] == place[number] for number in range(same)]
        beyond, bound = order[same], place[same]
        conditions.append(beyond < bound if walk.descending else beyond > bound)
    elif walk.present:
        conditions.append(order[0].is_not(None))
    # PostgreSQL has to be told that NULL is in order, too.
    told = [*fixed, *order] if dialect == 'postgresql' else order[same or 0 :]
    found = select.where(*conditions).order_by(*(each.desc() if walk.descending else each.asc() for each in told))
    return hinted(found, walk.along)


def hinted(statement: sa.Select[Any], index: sa.Index) -> sa.Select[Any]:
    """The statement, which is to go along that index."""
    assert index.table is not None
    for dialect, words in HINTS.items():
        statement = statement.with_hint(index.table, words.format(index.name), dialect)
    return statement


def page(
    connection: sa.Connection, select: sa.Select[Any], walk: Walk, page: Page, marked: Clause
) -> list[sa.Row[Any]]:
    """The rows of one page. marked: what the row of the marker is; Invalid if the walk comes by none."""
    after: Place | None = None
    if page.marker is not None:
        columns = list(walk.along.columns)
        shared = [column == value for column, value in zip(columns, walk.fixed, strict=False)]
        after = connection.execute(sa.select(*walk.order).where(marked, *shared)).first()
        if after is None:
            raise Invalid(NO_MARKER.format(marker=page.marker))
    return rows(connection, select, walk, after, page.limit)


def place_at(connection: sa.Connection, walk: Walk, after: Place | None, most: int) -> Place | None:
    """Where a row stands that comes so many later, as the index tells; None if there are no more than those. But on
    PostgreSQL, rows that share the first column with the place are not counted."""
    shape, values = _shape(walk, after)
    dialect, select = connection.dialect.name, _places(*shape[:3])
    if dialect == 'postgresql':
        statement = _statement(dialect, select, shape, None).where(*_beyond(walk, after))
    else:
        statement = _statement(dialect, select, shape, None if after is None else 0)
    return connection.execute(statement.where(*walk.where).offset(most).limit(1), values).first()


def places(
    connection: sa.Connection, walk: Walk, after: Place | None = None, more: tuple[sa.ColumnElement[Any], ...] = ()
) -> Iterator[Place]:
    """Where the rows of a walk stand, a look at the index at a time, each at more rows than the one before. more: what
    is told of each besides."""
    size, select = FIRST_LOOK, _places(*_shape(walk, None)[0][:3], more)
    while True:
        found = rows(connection, select, walk, after, size)
        yield from found
        if len(found) < size:
            return
        after, size = found[-1][: walk.keys], min(size * LOOK_FURTHER, LONGEST_LOOK)


@functools.lru_cache(maxsize=1024)
def _places(
    index: sa.Index, fixed: tuple[Any, ...], keys: int, more: tuple[sa.ColumnElement[Any], ...] = ()
) -> sa.Select[Any]:
    return sa.select(*list(index.columns)[len(fixed) : len(fixed) + keys], *more)
