"""Names and values that belong to a row (properties, metadata, extra specs), and tags.

A table of pairs has the columns owner_id, name and value; one of tags has the owner's id in its first column, and tag.
"""

import functools
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from computeapi.db.records import Among


def load(connection: sa.Connection, table: sa.Table, owner_ids: Collection[str]) -> dict[str, dict[str, str]]:
    """The pairs of these owners by owner; an owner without pairs has an empty dict."""
    found: dict[str, dict[str, str]] = {owner_id: {} for owner_id in owner_ids}
    if owner_ids:
        for owner_id, name, value in connection.execute(*_pairs_of(table).of(owner_ids)):
            found[owner_id][name] = value
    return found


def replace(connection: sa.Connection, table: sa.Table, owner_id: str, pairs: Mapping[str, str]) -> None:
    """Let the owner have exactly these pairs."""
    connection.execute(sa.delete(table).where(table.c.owner_id == owner_id))
    add(connection, table, owner_id, pairs)


def add(connection: sa.Connection, table: sa.Table, owner_id: str, pairs: Mapping[str, str]) -> None:
    """Give the owner pairs that it does not have."""
    if pairs:
        rows = [{'owner_id': owner_id, 'name': name, 'value': value} for name, value in pairs.items()]
        connection.execute(sa.insert(table), rows)


def has(table: sa.Table, owner: sa.ColumnElement[Any], name: str, *values: str) -> sa.ColumnElement[bool]:
    """Whether the owner in an enclosing query has the name, with one of the values if there are any."""
    # The enclosing query may be about the same table.
    pairs = table.alias().c
    query = sa.select(pairs.name).where(pairs.owner_id == owner, pairs.name == name)
    if values:
        query = query.where(pairs.value.in_(values))
    return query.exists()


def load_tags(connection: sa.Connection, table: sa.Table, owner_ids: Collection[str]) -> dict[str, tuple[str, ...]]:
    """The tags of these owners by owner, in order; an owner without tags has an empty tuple."""
    found: dict[str, tuple[str, ...]] = dict.fromkeys(owner_ids, ())
    if owner_ids:
        for owner_id, text in connection.execute(*_tags_of(table).of(owner_ids)):
            found[owner_id] += (text,)
    return found


def replace_tags(connection: sa.Connection, table: sa.Table, owner_id: str, tags: Iterable[str]) -> None:
    """Let the owner have exactly these tags."""
    connection.execute(sa.delete(table).where(table.columns[0] == owner_id))
    add_tags(connection, table, owner_id, tags)


def add_tags(connection: sa.Connection, table: sa.Table, owner_id: str, tags: Iterable[str]) -> None:
    """Give the owner tags that it does not have."""
    if rows := [{table.columns[0].name: owner_id, 'tag': tag} for tag in tags]:
        connection.execute(sa.insert(table), rows)


@functools.cache
def _pairs_of(table: sa.Table) -> Among:
    pairs = table.c
    return Among(sa.select(pairs.owner_id, pairs.name, pairs.value).order_by(pairs.name), pairs.owner_id)


@functools.cache
def _tags_of(table: sa.Table) -> Among:
    owner, tag = table.columns[0], table.c.tag
    return Among(sa.select(owner, tag).order_by(tag), owner)
