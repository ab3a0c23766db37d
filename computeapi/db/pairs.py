"""Name-value pairs that belong to a row (properties, metadata, extra specs), and tags.

A table of pairs has the columns owner_id, name and value; a table of tags has the owner's ID in its first column, and
tag.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from computeapi.db.records import Among

TAGS = 'tags'


class Belongings:
    """The pairs of owners of one kind, by attribute name, and their tags."""

    def __init__(self, pairs: Mapping[str, sa.Table], tags: sa.Table | None = None):
        self.names, self.tagged = pairs.keys(), tags is not None
        parts = [
            (_part(name, *table.c['owner_id', 'name', 'value']), table.c.owner_id) for name, table in pairs.items()
        ]
        if tags is not None:
            owner = tags.columns[0]
            parts.append((_part(TAGS, owner, tags.c.tag, sa.null()), owner))
        self.among = Among(*parts[0], *parts[1:]) if parts else None

    def of(self, connection: sa.Connection, owner_ids: Collection[str]) -> dict[str, dict[str, Any]]:
        """By attribute name and owner: dicts of pairs, and under `tags` sorted tuples, all with one statement. Owners
        without any have empty ones."""
        found: dict[str, dict[str, Any]] = {name: {owner_id: {} for owner_id in owner_ids} for name in self.names}
        tags: dict[str, tuple[str, ...]] = dict.fromkeys(owner_ids, ())
        rows = self.among.rows(connection, owner_ids) if self.among and owner_ids else []
        for part, owner_id, name, value in sorted(rows, key=lambda row: row[2]):
            if part == TAGS:
                tags[owner_id] += (name,)
            else:
                found[part][owner_id][name] = value
        return found | {TAGS: tags} if self.tagged else found


def _part(called: str, *columns: sa.ColumnElement[Any]) -> sa.Select[Any]:
    return sa.select(sa.literal_column(f"'{called}'", sa.String), *columns)


def replace(connection: sa.Connection, table: sa.Table, owner_id: str, pairs: Mapping[str, str]) -> None:
    """Replace all pairs of the owner."""
    connection.execute(sa.delete(table).where(table.c.owner_id == owner_id))
    add(connection, table, owner_id, pairs)


def add(connection: sa.Connection, table: sa.Table, owner_id: str, pairs: Mapping[str, str]) -> None:
    """Add pairs that the owner does not have yet."""
    if pairs:
        rows = [{'owner_id': owner_id, 'name': name, 'value': value} for name, value in pairs.items()]
        connection.execute(sa.insert(table), rows)


def has(table: sa.Table, owner: sa.ColumnElement[Any], name: str, *values: str) -> sa.ColumnElement[bool]:
    """Whether the owner in an enclosing query has a pair of this name, with one of the values if any are given."""
    # An alias, because the enclosing query may be about the same table.
    pairs = table.alias().c
    query = sa.select(sa.func.count()).where(pairs.owner_id == owner, pairs.name == name)
    if values:
        query = query.where(pairs.value.in_(values))
    # As a count: PostgreSQL would spend half a minute planning how to join a hundred EXISTS clauses.
    return query.scalar_subquery() > 0


def count_tags(table: sa.Table, owner: sa.ColumnElement[Any], tags: Collection[str]) -> sa.ScalarSelect[int]:
    """How many of these tags the owner in an enclosing query has."""
    same = (table.columns[0] == owner) & table.c.tag.in_(tags)
    return sa.select(sa.func.count()).select_from(table).where(same).scalar_subquery()


def replace_tags(connection: sa.Connection, table: sa.Table, owner_id: str, tags: Iterable[str]) -> None:
    """Replace all tags of the owner."""
    connection.execute(sa.delete(table).where(table.columns[0] == owner_id))
    add_tags(connection, table, owner_id, tags)


def add_tags(connection: sa.Connection, table: sa.Table, owner_id: str, tags: Iterable[str]) -> None:
    """Add tags that the owner does not have yet."""
    if rows := [{table.columns[0].name: owner_id, 'tag': tag} for tag in tags]:
        connection.execute(sa.insert(table), rows)
