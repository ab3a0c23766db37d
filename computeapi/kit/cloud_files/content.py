"""Converts a document to rows: resolves names, and collects the rows of each table."""

import functools
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from computeapi.backends.image.files import Written
from computeapi.clock import parsed
from computeapi.db import bulk
from computeapi.kit.cloud_files.document import CloudFileError, Document, Place
from computeapi.kit.cloud_files.schema import Schema
from computeapi.kit.cloud_files.sections import REFERABLE

Entry = Mapping[str, Any]
Values = dict[str, Any]

HEXADECIMAL = ('domains', 'projects', 'users')
"""Sections whose IDs are written without dashes."""
MANY = ('servers', 'ports')
OWNERS = {'project_id': 'projects', 'owner': 'projects', 'user_id': 'users'}
"""The section that a column with an owner refers to."""
IDS = uuid.UUID('5e0a35d6-2f5d-4d34-9b8e-0d6c8f4f2f5a')


class Index:
    """The things of a section that can be referred to, as rows: those in the store and those of the document."""

    def __init__(self, id: str, name: str, owner: str | None):
        self.keys = (id, name, owner)
        self.rows: dict[str, Values] = {}
        self.named: dict[str, list[str]] = defaultdict(list)

    def add(self, row: Values) -> None:
        id, name, _ = self.keys
        self.rows[row[id]] = row
        if row[name]:
            self.named[row[name]].append(row[id])

    def forget(self, ids: Iterable[str]) -> None:
        """Forget things that are not referred to any more."""
        for each in ids:
            row = self.rows.pop(each)
            self.named.pop(row[self.keys[1]], None)

    def find(self, reference: str, owner: str | None) -> list[str]:
        """The IDs that a reference matches: this ID, or else all things with this name."""
        return [reference] if reference in self.rows else self.called(reference, owner)

    def called(self, name: str, owner: str | None) -> list[str]:
        """The IDs of all things with this name; only those of the owner, if there are any."""
        found = self.named.get(name, [])
        if len(found) > 1 and (column := self.keys[2]):
            return [each for each in found if self.rows[each][column] == owner] or found
        return found


class Fact(NamedTuple):
    """How a property is stored: the column, the section that it refers to, and whether it is a time."""

    column: str
    section: str | None
    is_time: bool


class Facts:
    """How a thing is read: the default values by column, and its properties by name."""

    def __init__(self, schema: Schema):
        kept = {name: each for name, each in schema['properties'].items() if 'column' in each}
        self.usual: Values = {each['column']: each.get('default') for each in kept.values()}
        self.named = {
            name: Fact(each['column'], each.get('of'), each.get('format') == 'date-time') for name, each in kept.items()
        }


class CloudContent:
    """The rows to write, by table, and the names by which things in the document can be referred to.

    now: the default time of creation.
    """

    def __init__(self, connection: sa.Connection, document: Document, now: datetime):
        self.connection, self.document, self.now = connection, document, now
        self.seed = document.get('seed', 0)
        self.rows: dict[str, list[Values]] = defaultdict(list)
        # By user ID, the password in plain text.
        self.passwords: dict[str, str] = {}
        self.image_data: dict[str, Written] = {}
        self._indexes: dict[str, Index] = {}
        self._facts: dict[int, Facts] = {}
        self._made: dict[tuple[str, ...], int] = defaultdict(int)
        self._numbers: dict[str, int] = {}
        # By project.
        self.default_groups: dict[str, str] = {}

    # ------------------------------------------------------------ names

    def index(self, section: str) -> Index:
        """The things of a section by name; those in the store are read on first use."""
        index = self._indexes.get(section)
        if index is None:
            kind = REFERABLE[section]
            self._indexes[section] = index = Index(kind.id, kind.name, kind.owner)
            # There may be many of these, and only their names are needed.
            names = [kind.id, kind.name, kind.owner] if section in MANY and kind.owner else None
            for row in bulk.rows_of(self.connection, kind.table, names):
                index.add(row)
        return index

    def resolve(self, section: str, reference: str, place: Place, owner: str | None = None) -> str:
        """The ID of the thing with this name or ID; CloudFileError if there is none, or several."""
        index = self._indexes.get(section) or self.index(section)
        if reference in index.rows:
            return reference
        found = index.called(reference, owner)
        if len(found) != 1:
            how_many = 'there are several' if found else 'there is nothing'
            raise CloudFileError(place, f'{how_many} called {reference} in {section}')
        return found[0]

    def row(self, section: str, id: str) -> Values:
        return self.index(section).rows[id]

    def entries(self, section: str) -> Iterable[tuple[Place, Entry]]:
        """The things of a section, and the place of each."""
        return (((section, number), entry) for number, entry in enumerate(self.document.get(section, ())))

    def made_id(self, *parts: str) -> str:
        """A UUID derived from the parts and the seed; each repetition of the parts gives another one."""
        self._made[parts] += 1
        return str(uuid.uuid5(IDS, '/'.join((str(self.seed), *parts, str(self._made[parts])))))

    def stored(self, table: str) -> Iterator[Values]:
        """The rows in the store."""
        return bulk.rows_of(self.connection, table)

    @functools.cached_property
    def cells(self) -> set[str]:
        """The names of all cells; new ones are added to the set."""
        return {row['name'] for row in self.stored('cells')}

    @functools.cached_property
    def image_properties(self) -> Mapping[str, Mapping[str, str]]:
        """By image; available when the images of the document have been added."""
        found: dict[str, dict[str, str]] = defaultdict(dict)
        for row in (*self.stored('image_properties'), *self.rows['image_properties']):
            found[row['owner_id']][row['name']] = row['value']
        return found

    def title(self, column: str | None, owner: str | None) -> str:
        """The name of an owner, which is the same each time the document is loaded, unlike its ID."""
        section = OWNERS.get(column or '')
        row = self.index(section).rows.get(owner or '') if section else None
        return str(row['name']) if row else owner or ''

    def number(self, table: str) -> int:
        """The next number of a table with numeric IDs."""
        if table not in self._numbers:
            self._numbers[table] = bulk.greatest(self.connection, table)
        self._numbers[table] += 1
        return self._numbers[table]

    # ------------------------------------------------------------ rows

    def add(self, table: str, /, **row: Any) -> None:
        self.rows[table].append(row)

    def add_pairs(self, table: str, owner_id: str, pairs: Mapping[str, Any]) -> None:
        for name, value in pairs.items():
            self.add(table, owner_id=owner_id, name=name, value=str(value))

    def values(self, schema: Schema, entry: Entry, place: Place, owner: str | None = None) -> Values:
        """The values of an entry, by column."""
        facts = self._facts.get(id(schema))
        if facts is None:
            facts = self._facts[id(schema)] = Facts(schema)
        row, named = facts.usual.copy(), facts.named
        for name, value in entry.items():
            fact = named.get(name)
            if fact is None:
                continue
            column, section, is_time = fact
            if section is not None and value is not None:
                value = self.resolve(section, value, (*place, name), owner)
            elif is_time and isinstance(value, str):
                value = parsed(value)
            row[column] = value
        return row

    def make(self, section: str, entry: Entry, place: Place) -> Values:
        """Create the row of a thing, and index it by name; CloudFileError if its ID is taken."""
        kind = REFERABLE[section]
        owner = self.owner(section, entry, place)
        row = self.values(kind.schema, entry, place, owner)
        if kind.owner is not None:
            row[kind.owner] = owner
        if row.get(kind.id) is None:
            made = self.made_id(section, self.title(kind.owner, owner), str(row.get(kind.name) or ''))
            row[kind.id] = made.replace('-', '') if section in HEXADECIMAL else made
        if 'created_at' in row:
            row['created_at'] = row['created_at'] or self.now
        if 'updated_at' in row and bulk.is_required(kind.table, 'updated_at'):
            row['updated_at'] = row['updated_at'] or row['created_at']
        self.add_row(section, row, place)
        return row

    def add_row(self, section: str, row: Values, place: Place) -> None:
        kind, index = REFERABLE[section], self.index(section)
        if row[kind.id] in index.rows:
            raise CloudFileError(place, f'{row[kind.id]} already exists')
        index.add(row)
        self.rows[kind.table].append(row)

    def unique_name(self, section: str, name: str, place: Place, owner: str | None = None) -> None:
        """Raise CloudFileError if the name, which must be unique (for the owner), is taken."""
        index = self.index(section)
        column = index.keys[2]
        for other in index.named.get(name, ()):
            if owner is None or column is None or index.rows[other][column] == owner:
                raise CloudFileError(place, f'{name} already exists')

    def owner(self, section: str, entry: Entry, place: Place) -> str | None:
        """The ID of the project, domain or user that a thing belongs to."""
        kind = REFERABLE[section]
        if kind.owner == 'domain_id':
            domain = entry.get('domain')
            return self.resolve('domains', domain, (*place, 'domain')) if domain else 'default'
        if kind.owner == 'user_id':
            return self.user(entry, place)
        return self.project(entry, place) if kind.owner else None

    def project(self, entry: Entry, place: Place) -> str:
        """The project of the entry, or of the document; '' if the entry explicitly has none."""
        named = entry.get('project', self.document.get('project', 'admin'))
        return self.resolve('projects', named, (*place, 'project')) if named else ''

    def user(self, entry: Entry, place: Place) -> str:
        """The user of the entry, or else one with the name of the project, or else the administrator."""
        if entry.get('user'):
            return self.resolve('users', entry['user'], (*place, 'user'))
        project = self.index('projects').rows.get(self.project(entry, place))
        users = self.index('users')
        for name in (project['name'] if project else '', 'admin'):
            if users.named.get(name):
                return users.named[name][0]
        return next(iter(users.rows), '')

    def leave(self, counted: Iterable[str]) -> None:
        """Read everything that servers may need from the store, including the counters of tables, and stop using it."""
        for section in REFERABLE:
            self.index(section)
        for table in counted:
            self._numbers.setdefault(table, bulk.greatest(self.connection, table))
        self.__dict__['image_properties'] = self.image_properties
        # The keys are memory addresses in this process.
        self._facts.clear()
        del self.connection

    def write(self) -> None:
        """Write all rows so far to the store."""
        bulk.insert(self.connection, self.rows)
        bulk.advance_sequences(self.connection)
        self.rows.clear()
