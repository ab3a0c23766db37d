"""A store on its way into a document."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from computeapi.db import bulk
from computeapi.kit.scenes.scene import Index, Values
from computeapi.kit.scenes.schema import VERSION, Schema
from computeapi.kit.scenes.sections import REFERABLE

Sections = list[tuple[Values, dict[str, Any]]]


class Export:
    """hashes: whether users keep their passwords, as hashes of them."""

    def __init__(self, connection: sa.Connection, *, hashes: bool = False):
        self.connection, self.hashes = connection, hashes
        self.document: dict[str, Any] = {'version': VERSION, 'replace': True}
        # What there is that the document does not tell.
        self.left_out: list[str] = []
        self._indexes: dict[str, Index] = {}
        self._servers: list[Values] | None = None
        self._written: dict[str, dict[str, str]] = {}

    def rows(self, table: str) -> Iterator[Values]:
        return bulk.rows_of(self.connection, table)

    def grouped(self, table: str, column: str) -> dict[str, list[Values]]:
        """All rows of a table, by what they have in a column."""
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
        """Their rows, which are read once."""
        if self._servers is None:
            self._servers = list(self.rows('servers'))
        return self._servers

    def section(self, name: str, wanted: Callable[[Values], bool] = lambda row: True) -> Sections:
        """Put the things of a section that are wanted into the document; their rows, and what is told of them."""
        kind = REFERABLE[name]
        found = [(row, self.entry(kind.schema, row)) for row in self.rows(kind.table) if wanted(row)]
        if found:
            self.document[name] = [entry for _, entry in found]
        return found

    def entry(self, schema: Schema, row: Values) -> dict[str, Any]:
        """What a row tells, but for what is so where nothing is said."""
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
        """What the thing can be called in the document: its name, where only it is called so, or else its id."""
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

    def leaves_out(self, what: str, table: str) -> None:
        """Note that there is something of which nothing is told."""
        if number := bulk.count(self.connection, table):
            self.left_out.append(f'{number} {what}')


def moment(value: datetime) -> str:
    return f'{value.isoformat()}Z'
