"""The common part of all kinds of network resources: visibility, filters, sorting, paging and tags.

Resources are dicts in Neutron's format. A `Collection` defines once how each attribute is read from the database;
reading, filtering, sorting and writing follow from that.
"""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

import sqlalchemy as sa

from computeapi import errors, randomness
from computeapi.context import Context
from computeapi.db import listing, pairs
from computeapi.db.constant_queries import Row, fetch
from computeapi.db.listing import SEVERAL, WHOLE, Clause, Page
from computeapi.db.ownership import CALLER, caller, own_rows
from computeapi.db.records import HOLDING, change, dicts, insertion, is_among
from computeapi.db.tables import network as tables

Document = dict[str, Any]
T = TypeVar('T')

EVERYBODY = '*'
ACCESS_AS_SHARED = 'access_as_shared'
FILTERED_TYPES = (str, bool, int)
MAX_INTEGER = 2**31 - 1
TAGGED = pairs.Belongings({}, tables.tags)
BOOLEANS = {'true': True, '1': True, 'false': False, '0': False}


@dataclass(frozen=True)
class Work:
    """One transaction on behalf of one caller."""

    connection: sa.Connection
    context: Context
    clock: Callable[[], datetime]

    def elevated(self) -> 'Work':
        """The same transaction with an administrator's access."""
        return replace(self, context=self.context.elevated())


ANYBODY = Context()
"""For parts of statements that do not depend on the caller beyond its project, which is a parameter."""


def shared(table: sa.Table, context: Context = ANYBODY) -> Clause:
    """The rows that are shared with everybody, or by an RBAC policy with the caller's project."""
    return sa.or_(table.c.shared, shared_by_policy(table, context, ACCESS_AS_SHARED))


def own_or_shared(table: sa.Table, context: Context) -> Clause:
    """The caller's own rows, and those that are shared with it."""
    return sa.or_(own_rows(table, context), shared(table, context))


def shared_by_policy(table: sa.Table, context: Context, action: str) -> Clause:
    """The rows that an RBAC policy with this action gives to the caller's project."""
    policies = tables.rbac_policies.c
    mine = sa.or_(policies.target_project == caller(context), policies.target_project == EVERYBODY)
    return table.c.id.in_(sa.select(policies.object_id).where(policies.action == action, mine))


def ids_of(documents: Iterable[Document]) -> list[str]:
    return [document['id'] for document in documents]


class Collection:
    """One kind of resource.

    A document has the columns of the table, some under other names (`renamed`) and some not at all (`hidden`), its
    tags, unless they are `hidden`, and more `attributes`, as SQL; `complete` adds data of other tables, in a constant
    number of queries; `filters` build clauses for attributes that are not columns. `visible` and `attributes` may
    depend only on the caller's project, and `visible` on whether it is an administrator.
    """

    def __init__(
        self,
        table: sa.Table,
        missing: type[errors.NotFound],
        *,
        renamed: Mapping[str, str] | None = None,
        hidden: Sequence[str] = (),
        attributes: Mapping[str, sa.ColumnElement[Any]] | None = None,
        visible: Callable[[Context], Clause] | None = None,
        complete: Callable[[Work, list[Document]], None] | None = None,
        filters: Mapping[str, Callable[[list[str]], Clause]] | None = None,
    ):
        self.table = table
        renamed = renamed or {}
        shown = {renamed.get(each.name, str(each.name)): each for each in table.c if each.name not in hidden}
        self.attributes: dict[str, sa.ColumnElement[Any]] = {
            **shown,
            'tenant_id': table.c.project_id,
            **(attributes or {}),
        }
        self.is_tagged = 'tags' not in hidden
        self.selected = dict(self.attributes)
        if self.is_tagged:
            self.selected['tags'] = sa.exists().where(tables.tags.c.resource_id == table.c.id)
        self.select = sa.select(*(each.label(name) for name, each in self.selected.items()))
        self.columns = {name: each.name for name, each in shown.items()}
        self.revising = sa.update(table).where(table.c.id == sa.bindparam(HOLDING + 'id'))
        self.revising = self.revising.values(revision_number=table.c.revision_number + 1)
        self.missing = missing
        self.visible = visible or (lambda context: own_rows(table, context))
        self.complete = complete
        self.filters = {**(tag_filters(table) if self.is_tagged else {}), **(filters or {})}

    def find(
        self,
        work: Work,
        *clauses: Clause,
        filters: Mapping[str, list[str]] | None = None,
        page: Page = WHOLE,
        complete: bool = True,
        **values: object,
    ) -> list[Document]:
        """The matching documents that the caller may see, oldest first unless the page has another order.

        values: by column, a value or several alternatives.  complete: with the data of other tables.
        """
        if clauses or filters or page is not WHOLE:
            chosen = [self.clause(name, values) for name, values in (filters or {}).items()]
            found = self.select.where(self.visible(work.context), *clauses, *self._with(values), *chosen)
            parameters = {CALLER: work.context.project_id}
            rows: Sequence[Row] = work.connection.execute(self._paged(work, found, page), parameters).all()
        else:
            rows = fetch(work.connection, *self._usual(work, values))
        documents = dicts(self.selected, rows)
        if page.backwards:
            documents.reverse()
        if documents:
            if self.is_tagged:
                self._add_tags(work.connection, documents)
            if complete and self.complete:
                self.complete(work, documents)
        return documents

    def get(self, work: Work, resource_id: str, *, complete: bool = True) -> Document:
        found = self.find(work, complete=complete, id=resource_id)
        if not found:
            raise self.missing(id=resource_id)
        return found[0]

    def lock(self, work: Work, resource_id: str, *names: str) -> Sequence[Any]:
        """Lock the resource, and so what belongs to it, until the transaction ends; returns these columns."""
        parameters = {CALLER: work.context.project_id, HOLDING + 'id': resource_id}
        found = work.connection.execute(self._locking(work.context.is_admin, names), parameters).first()
        if found is None:
            raise self.missing(id=resource_id)
        return found[1:]

    def check_revision(self, work: Work, resource_id: str, expected: int) -> None:
        """Lock the resource; RevisionMismatch unless it has the expected revision number."""
        self.lock(work, resource_id)
        if self.get(work, resource_id).get('revision_number') != expected:
            raise errors.RevisionMismatch(id=resource_id, expected=expected)

    def owned(self, work: Work, resource_id: str) -> Document:
        """The document, locked; Forbidden if the caller can see it but does not own it."""
        self.lock(work, resource_id)
        document = self.get(work, resource_id)
        if not work.context.is_admin and document['project_id'] != work.context.project_id:
            raise errors.Forbidden(f'{resource_id} belongs to another project.')
        return document

    def insert(self, work: Work, facts: Mapping[str, Any]) -> str:
        resource_id = facts.get('id') or randomness.new_id()
        now = work.clock()
        standard = {'id': resource_id, 'created_at': now, 'updated_at': now}
        work.connection.execute(insertion(self.table), self._values(facts) | standard)
        if facts.get('tags'):
            pairs.add_tags(work.connection, tables.tags, resource_id, sorted(set(facts['tags'])))
        return resource_id

    def update(self, work: Work, resource_id: str, facts: Mapping[str, Any]) -> None:
        """Change these attributes; those that are not columns are ignored."""
        values = self._values(facts) | {'updated_at': work.clock()}
        change(work.connection, self.revising, values, {HOLDING + 'id': resource_id})

    def delete(self, work: Work, **values: object) -> None:
        """Delete the rows with these values, whoever can see them."""
        chosen = self._with(values)
        ids = sa.select(self.table.c.id).where(*chosen)
        work.connection.execute(tables.tags.delete().where(tables.tags.c.resource_id.in_(ids)))
        work.connection.execute(self.table.delete().where(*chosen))

    def _usual(self, work: Work, values: Mapping[str, Any]) -> tuple[sa.Select[Any], dict[str, Any]]:
        """The statement for rows with these values, which is cached by column names, and its parameters. Alternatives
        for a column need another statement."""
        several = frozenset(name for name, value in values.items() if isinstance(value, SEVERAL) and len(value) != 1)
        parameters: dict[str, Any] = {CALLER: work.context.project_id}
        for name, value in values.items():
            one = next(iter(value)) if isinstance(value, SEVERAL) and name not in several else value
            parameters[HOLDING + name] = list(one) if name in several else one
        dialect = work.connection.dialect.name
        return self._finding(dialect, work.context.is_admin, tuple(values), several), parameters

    @functools.cache  # noqa: B019  There is one Collection per kind of resource.
    def _finding(self, dialect: str, is_admin: bool, names: tuple[str, ...], several: frozenset[str]) -> sa.Select[Any]:
        statement = self.select.where(self.visible(Context(is_admin=is_admin)))
        for name in names:
            column, held = self.table.c[name], HOLDING + name
            statement = statement.where(
                is_among(dialect, column, held) if name in several else column == sa.bindparam(held, type_=column.type)
            )
        return statement.order_by(self.table.c.created_at, self.table.c.id)

    @functools.cache  # noqa: B019
    def _locking(self, is_admin: bool, names: tuple[str, ...]) -> sa.Select[Any]:
        columns = [self.table.c[name] for name in ('id', *names)]
        mine = (self.table.c.id == sa.bindparam(HOLDING + 'id'), self.visible(Context(is_admin=is_admin)))
        return sa.select(*columns).where(*mine).with_for_update()

    def _with(self, values: Mapping[str, object]) -> list[Clause]:
        return [listing.equals(self.table.c[name], value) for name, value in values.items()]

    def clause(self, name: str, values: list[str]) -> Clause:
        """The filter `name` with any of the values, given as in a URL."""
        if name in self.filters:
            return self.filters[name](values)
        expression = self.attributes.get(name)
        if expression is None or expression.type.python_type not in FILTERED_TYPES:
            raise errors.Invalid(f"['{name}'] is invalid attribute for filtering")
        return expression.in_([_parsed(name, expression.type.python_type, value) for value in values])

    def _values(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        return {self.columns[name]: value for name, value in facts.items() if name in self.columns}

    def _paged(self, work: Work, statement: sa.Select[Any], page: Page) -> sa.Select[Any]:
        chosen = [(self._sort_column(name), descending) for name, descending in page.sort]
        order = [*chosen, (self.table.c.created_at, False), (self.table.c.id, False)]
        if page.backwards:
            order = [(column, not descending) for column, descending in order]
        if page.marker is not None:
            mine = (self.table.c.id == page.marker, self.visible(work.context))
            after = listing.after(work.connection, order, *mine)
            if after is None:
                raise self.missing(id=page.marker)
            statement = statement.where(after)
        return statement.order_by(*listing.order_by(order)).limit(page.limit)

    def _sort_column(self, name: str) -> sa.Column[Any]:
        column = self.attributes.get(name)
        if not isinstance(column, sa.Column) or column.nullable or isinstance(column.type, sa.JSON):
            raise errors.Invalid(f"Invalid input for sort_key. Reason: '{name[:64]}' is not an attribute to sort by.")
        return column

    def _add_tags(self, connection: sa.Connection, documents: list[Document]) -> None:
        held = TAGGED.of(connection, [each['id'] for each in documents if each['tags']])[pairs.TAGS]
        for document in documents:
            document['tags'] = list(held.get(document['id'], ()))


def _parsed(name: str, kind: type, text: str) -> Any:
    """The value of a query parameter for a column of this type."""
    if kind is str:
        return text
    if kind is bool and text.lower() in BOOLEANS:
        return BOOLEANS[text.lower()]
    if kind is int and text.isdecimal() and len(text) <= 10 and int(text) <= MAX_INTEGER:
        return int(text)
    meaning = 'true or false' if kind is bool else 'a whole number'
    raise errors.Invalid(f"Invalid input for {name}. Reason: '{text[:64]}' is not {meaning}.")


def set_tags(work: Work, resource_id: str, tags: Iterable[str]) -> None:
    """Replace the tags of the resource."""
    pairs.replace_tags(work.connection, tables.tags, resource_id, sorted(set(tags)))


def tag_filters(table: sa.Table) -> dict[str, Callable[[list[str]], Clause]]:
    """tags (all of them), tags-any (any of them), and their negations; tags are separated by commas."""

    def held(values: list[str]) -> tuple[sa.ScalarSelect[int], int]:
        wanted = {tag for value in values for tag in value.split(',') if tag}
        return pairs.count_tags(tables.tags, table.c.id, wanted), len(wanted)

    def every(values: list[str]) -> Clause:
        count, wanted = held(values)
        return count == wanted

    def some(values: list[str]) -> Clause:
        return held(values)[0] > 0

    return {
        'tags': every,
        'tags-any': some,
        'not-tags': lambda values: sa.not_(every(values)),
        'not-tags-any': lambda values: sa.not_(some(values)),
    }
