"""Converts the content of a store to a document."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from computeapi.db import bulk
from computeapi.kit.cloud_files.content import Index, Values
from computeapi.kit.cloud_files.schema import VERSION, Schema
from computeapi.kit.cloud_files.sections import REFERABLE

Sections = list[tuple[Values, dict[str, Any]]]
Beside = Mapping[str, Mapping[str, Any]]
"""Properties that are not in the rows of things, by the IDs of these."""


class Export:
    """hashes: whether to include password hashes."""

    def __init__(self, connection: sa.Connection, *, hashes: bool = False):
        self.connection, self.hashes = connection, hashes
        self.document: dict[str, Any] = {'version': VERSION, 'replace': True}
        # What exists and is not in the document.
        self.left_out: list[str] = []
        self._indexes: dict[str, Index] = {}
        self._servers: list[Values] | None = None
        self._written: dict[str, dict[str, str]] = {}

    def rows(self, table: str) -> Iterator[Values]:
        return bulk.rows_of(self.connection, table)

    def grouped(self, table: str, column: str) -> dict[str, list[Values]]:
        """All rows of a table, by the value of a column."""
        found: dict[str, list[Values]] = defaultdict(list)
        for row in self.rows(table):
            found[row[column]].append(row)
        return found

    def pairs(self, table: str) -> dict[str, dict[str, str]]:
        grouped = self.grouped(table, 'owner_id')
        return {owner: {row['name']: row['value'] for row in rows} for owner, rows in grouped.items()}

    def tags(self, table: str) -> dict[str, list[str]]:
        grouped = self.grouped(table, bulk.owner_of(table))
        return {key: [row['tag'] for row in rows] for key, rows in grouped.items()}

    def servers(self) -> list[Values]:
        """The rows of servers, read once."""
        if self._servers is None:
            self._servers = list(self.rows('servers'))
        return self._servers

    def section(
        self, name: str, wanted: Callable[[Values], bool] = lambda row: True, *, beside: Beside | None = None
    ) -> Sections:
        """Add the selected things of a section to the document; returns their rows and entries."""
        kind, beside = REFERABLE[name], beside or {}
        rows = filter(wanted, self.rows(kind.table))
        found = [(row, self.entry(kind.schema, row) | told_of(row[kind.id], beside)) for row in rows]
        if found:
            self.document[name] = [entry for _, entry in found]
        return found

    def entry(self, schema: Schema, row: Values) -> dict[str, Any]:
        """The entry for a row, without values that are the default."""
        entry = {}
        for name, each in schema['properties'].items():
            if 'column' not in each:
                continue
            value = row[each['column']]
            if value == each.get('default') or (value is None and 'null' not in each.get('type', ())):
                continue
            if isinstance(value, datetime):
                value = moment(value)
            elif 'of' in each and value is not None:
                value = self.called(each['of'], value)
            entry[name] = value
        return entry

    def called(self, section: str, id: str) -> str:
        """How to refer to a thing in the document: by its name if that is unique, otherwise by its ID."""
        return self.names(section).get(id, id)

    def names(self, section: str) -> dict[str, str]:
        if section not in self._written:
            kind = REFERABLE[section]
            index = Index(kind.id, kind.name, None)
            for row in bulk.rows_of(self.connection, kind.table, [kind.id, kind.name]):
                index.add(row)
            self._written[section] = {
                key: row[kind.name] if row[kind.name] and index.find(row[kind.name], None) == [key] else key
                for key, row in index.rows.items()
            }
        return self._written[section]

    def leaves_out(self, what: str, table: str, besides: Values | None = None) -> None:
        """Note that the rows of this table are left out, if there are any, besides those with these values."""
        number = bulk.count(self.connection, table)
        if besides is not None:
            number -= sum(besides.items() <= row.items() for row in self.rows(table))
        if number:
            self.left_out.append(f'{number} {what}')


def told_of(id: str, beside: Beside) -> dict[str, Any]:
    return {name: values[id] for name, values in beside.items() if id in values}


def moment(value: datetime) -> str:
    return f'{value.isoformat()}Z'
