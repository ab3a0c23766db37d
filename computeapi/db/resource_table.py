"""Resources as dicts: the columns of a row, and what belongs to it in other tables."""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from computeapi import errors
from computeapi.context import Context
from computeapi.db import listing, pairs
from computeapi.db.constant_queries import fetch
from computeapi.db.listing import Clause, Page
from computeapi.db.ownership import CALLER, own_rows, owned
from computeapi.db.pairs import TAGS, Belongings

Facts = dict[str, Any]


THING = 'thing'
"""The statement parameter for the ID of the resource."""


class ResourceTable:
    """One kind of resource, of which a caller sees what `visible` allows; any other ID raises `missing`. `visible` may
    depend only on the caller's project and on whether it is an administrator.

    Besides its columns a resource has the columns that `source` joins (`joined`), its `pairs` (see computeapi.db.pairs)
    and `tags`, and whatever other functions find by the IDs of the resources (`found`). A list takes one query, and one
    more for all pairs and tags. `order` is the order without paging, `sorts` are the columns by which pages can be
    sorted; an unknown marker also raises `missing`, or Invalid with the message `unknown`.
    """

    def __init__(
        self,
        table: sa.Table,
        missing: type[errors.NotFound],
        visible: Callable[[Context], Clause] | None = None,
        *,
        source: sa.FromClause | None = None,
        joined: Mapping[str, sa.ColumnElement[Any]] | None = None,
        pairs: Mapping[str, sa.Table] | None = None,
        tags: sa.Table | None = None,
        found: Mapping[str, Callable[[sa.Connection, Sequence[str]], Mapping[str, Any]]] | None = None,
        order: Sequence[sa.ColumnElement[Any]] = (),
        sorts: Mapping[str, sa.Column[Any]] | None = None,
        unknown: str | None = None,
    ):
        self.table, self.missing, self.order = table, missing, order
        self.unknown = unknown or missing
        self.visible = visible or (lambda context: own_rows(table, context))
        self.source = table if source is None else source
        self.joined, self.pairs, self.tags, self.found = joined or {}, pairs or {}, tags, found or {}
        self.belongings = Belongings(self.pairs, tags)
        self.columns: dict[str, sa.ColumnElement[Any]] = {**table.c, **self.joined}
        self.statement = sa.select(*(column.label(name) for name, column in self.columns.items())).select_from(
            self.source
        )
        self.sort_keys = {name: listing.sort_key(column) for name, column in (sorts or {}).items()}

    def among(self, ids: Iterable[str]) -> Clause:
        return self.table.c.id.in_(set(ids))

    def listed(self, context: Context, filters: Mapping[str, Any] | None, all_projects: bool) -> list[Clause]:
        """The conditions of a list; administrators see all projects on request. Some resources have no project."""
        everything = all_projects or 'project_id' not in self.table.c
        mine = self.visible(context) if everything else owned(self.table, context)
        return [mine, *self.matches(filters or {})]

    def matches(self, filters: Mapping[str, Any]) -> list[Clause]:
        """One clause per filter: for a column, one value or several; for `column~`, a part of the value; for pairs, a
        mapping; for a time, one bound, or a list of bounds that it must keep to."""
        return [self._match(name, value) for name, value in filters.items()]

    def _match(self, name: str, value: Any) -> Clause:
        if name in self.pairs:
            return sa.and_(*(pairs.has(self.pairs[name], self.table.c.id, key, text) for key, text in value.items()))
        if name in ('created_at', 'updated_at'):
            bounds = value if isinstance(value, list) else [value]
            return sa.and_(*(listing.compared(self.table.c[name], bound) for bound in bounds))
        if name.endswith('~'):
            return self.columns[name.removesuffix('~')].icontains(value, autoescape=True)
        return listing.equals(self.columns[name], value)

    def select(self, connection: sa.Connection, *where: Clause) -> list[Facts]:
        return self._load(connection, self.statement.where(*where).order_by(*self.order))

    def get(self, connection: sa.Connection, context: Context, thing_id: str, *, lock: bool = False) -> Facts:
        """The resource with this ID, if the caller may see it; `lock` locks it for this transaction."""
        if lock:
            self.lock(connection, thing_id)
        parameters = {CALLER: context.project_id, THING: thing_id}
        for found in self._load(connection, self._finding(context.is_admin), parameters):
            return found
        raise self.missing(id=thing_id)

    @functools.cache  # noqa: B019  There is one ResourceTable per kind of resource.
    def _finding(self, is_admin: bool) -> sa.Select[Any]:
        """The statement of `get`, cached because building it costs more than executing it."""
        mine = (self.table.c.id == sa.bindparam(THING), self.visible(Context(is_admin=is_admin)))
        return self.statement.where(*mine).order_by(*self.order)

    def page(
        self,
        connection: sa.Connection,
        context: Context,
        *where: Clause,
        sort: Sequence[tuple[str, str]],
        page: Page,
        offset: int | None = None,
    ) -> list[Facts]:
        """Like `select`, sorted; raises an error for a marker that the caller cannot see."""
        order = listing.sorted_by(sort, self.sort_keys, self.table.c.id)
        marked = [self.among([page.marker or '']), self.visible(context)]
        statement = listing.paged(
            connection, self.statement, order, page, marked=marked, where=where, unknown=self.unknown
        )
        return self._load(connection, statement.offset(offset))

    def _load(
        self, connection: sa.Connection, statement: sa.Select[Any], parameters: Mapping[str, Any] | None = None
    ) -> list[Facts]:
        rows = [dict(zip(self.columns, row, strict=True)) for row in fetch(connection, statement, parameters)]
        ids = [row['id'] for row in rows]
        parts: dict[str, Mapping[str, Any]] = {**self.belongings.of(connection, ids)}
        parts.update({name: find(connection, ids) for name, find in self.found.items()})
        return [{**row, **{name: found[row['id']] for name, found in parts.items()}} for row in rows]

    def count(self, connection: sa.Connection, *where: Clause) -> tuple[int, int]:
        """The number of resources, and their total size."""
        size = sa.func.coalesce(sa.func.sum(self.table.c.size), 0)
        statement = sa.select(sa.func.count(), size).select_from(self.source).where(*where)
        number, total = connection.execute(statement).one()
        return number, int(total)

    def lock(self, connection: sa.Connection, thing_id: str) -> None:
        """Lock the resource and what belongs to it until the transaction ends."""
        connection.execute(sa.select(self.table.c.id).where(self.table.c.id == thing_id).with_for_update()).all()

    def insert(self, connection: sa.Connection, facts: Facts) -> None:
        connection.execute(sa.insert(self.table).values(self._values(facts)))
        for name, table in self.pairs.items():
            pairs.add(connection, table, facts['id'], facts.get(name, {}))
        if self.tags is not None:
            pairs.add_tags(connection, self.tags, facts['id'], facts.get(TAGS, ()))

    def update(self, connection: sa.Connection, thing_id: str, facts: Facts) -> None:
        """Set the given values; given pairs and tags replace all existing ones."""
        if values := self._values(facts):
            connection.execute(sa.update(self.table).where(self.table.c.id == thing_id).values(values))
        for name, table in self.pairs.items():
            if name in facts:
                pairs.replace(connection, table, thing_id, facts[name])
        if self.tags is not None and TAGS in facts:
            pairs.replace_tags(connection, self.tags, thing_id, facts[TAGS])

    def _values(self, facts: Facts) -> Facts:
        beside = {*self.joined, *self.pairs, *self.found, TAGS}
        return {name: value for name, value in facts.items() if name not in beside}

    def delete(self, connection: sa.Connection, *where: Clause) -> None:
        connection.execute(sa.delete(self.table).where(*where))
