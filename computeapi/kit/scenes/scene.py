"""A document on its way into a store: what its things are called, and the rows that they become."""

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
from computeapi.kit.scenes.document import Document, Place, SceneError
from computeapi.kit.scenes.schema import Schema
from computeapi.kit.scenes.sections import REFERABLE

Entry = Mapping[str, Any]
Values = dict[str, Any]

HEXADECIMAL = ('domains', 'projects', 'users')
"""What identity calls by digits alone."""
MANY = ('servers', 'ports')
OWNERS = {'project_id': 'projects', 'owner': 'projects', 'user_id': 'users'}
"""What is named in a column that tells whose a thing is."""
IDS = uuid.UUID('5e0a35d6-2f5d-4d34-9b8e-0d6c8f4f2f5a')


class Index:
    """The things of one section that can be named, as rows: those that are there, and those of the document."""

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
        """Nobody names these any more."""
        for each in ids:
            row = self.rows.pop(each)
            self.named.pop(row[self.keys[1]], None)

    def find(self, reference: str, owner: str | None) -> list[str]:
        """Ids: that id, or else those of that name."""
        return [reference] if reference in self.rows else self.called(reference, owner)

    def called(self, name: str, owner: str | None) -> list[str]:
        """Ids: of that name, those of the owner alone if there are any."""
        found = self.named.get(name, [])
        if len(found) > 1 and (column := self.keys[2]):
            return [each for each in found if self.rows[each][column] == owner] or found
        return found


class Fact(NamedTuple):
    """How a property is kept: where, of which section it names a thing, and whether it is a time."""

    column: str
    section: str | None
    is_time: bool


class Facts:
    """How a thing is read: what its columns have where nothing is said, and its properties by name."""

    def __init__(self, schema: Schema):
        kept = {name: each for name, each in schema['properties'].items() if 'column' in each}
        self.usual: Values = {each['column']: each.get('default') for each in kept.values()}
        self.named = {
            name: Fact(each['column'], each.get('of'), each.get('format') == 'date-time') for name, each in kept.items()
        }


class Scene:
    """Rows to be written, by table, and what things in the document can be called by.

    now: when things were made that do not say so.
    """

    def __init__(self, connection: sa.Connection, document: Document, now: datetime):
        self.connection, self.document, self.now = connection, document, now
        self.seed = document.get('seed', 0)
        self.rows: dict[str, list[Values]] = defaultdict(list)
        # By the id of a user who was given a password.
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
        """What can be called by name in a section; what the store has is read when it is first asked for."""
        index = self._indexes.get(section)
        if index is None:
            kind = REFERABLE[section]
            self._indexes[section] = index = Index(kind.id, kind.name, kind.owner)
            # There may be many of these, and nothing is asked of them but what they are called.
            names = [kind.id, kind.name, kind.owner] if section in MANY and kind.owner else None
            for row in bulk.rows_of(self.connection, kind.table, names):
                index.add(row)
        return index

    def resolve(self, section: str, reference: str, place: Place, owner: str | None = None) -> str:
        """The id of the thing that is named; SceneError if there is none, or are several."""
        index = self._indexes.get(section) or self.index(section)
        if reference in index.rows:
            return reference
        found = index.called(reference, owner)
        if len(found) != 1:
            how_many = 'there are several' if found else 'there is nothing'
            raise SceneError(place, f'{how_many} called {reference} in {section}')
        return found[0]

    def row(self, section: str, id: str) -> Values:
        return self.index(section).rows[id]

    def entries(self, section: str) -> Iterable[tuple[Place, Entry]]:
        """The things of a section, and where each is."""
        return (((section, number), entry) for number, entry in enumerate(self.document.get(section, ())))

    def made_id(self, *parts: str) -> str:
        """A UUID that is the same for the same parts and seed; for each further time that they come, another one."""
        self._made[parts] += 1
        return str(uuid.uuid5(IDS, '/'.join((str(self.seed), *parts, str(self._made[parts])))))

    def stored(self, table: str) -> Iterator[Values]:
        """The rows that the store has."""
        return bulk.rows_of(self.connection, table)

    @functools.cached_property
    def cells(self) -> set[str]:
        """Their names; what is added to them is known."""
        return {row['name'] for row in self.stored('cells')}

    @functools.cached_property
    def image_properties(self) -> Mapping[str, Mapping[str, str]]:
        """By image, when the images of the document are made."""
        found: dict[str, dict[str, str]] = defaultdict(dict)
        for row in (*self.stored('image_properties'), *self.rows['image_properties']):
            found[row['owner_id']][row['name']] = row['value']
        return found

    def title(self, column: str | None, owner: str | None) -> str:
        """What is called the same whenever the document is loaded: the name of an owner."""
        section = OWNERS.get(column or '')
        row = self.index(section).rows.get(owner or '') if section else None
        return str(row['name']) if row else owner or ''

    def number(self, table: str) -> int:
        """The next one of a table that counts."""
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
        """What an entry says, by column."""
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
        """The row of a thing, written down and known by its name; SceneError if its id is taken."""
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
        self.keep(section, row, place)
        return row

    def keep(self, section: str, row: Values, place: Place) -> None:
        kind, index = REFERABLE[section], self.index(section)
        if row[kind.id] in index.rows:
            raise SceneError(place, f'{row[kind.id]} already exists')
        index.add(row)
        self.rows[kind.table].append(row)

    def unique_name(self, section: str, name: str, place: Place, owner: str | None = None) -> None:
        """SceneError if another thing, of the same owner, has the name, where no two can."""
        index = self.index(section)
        column = index.keys[2]
        for other in index.named.get(name, ()):
            if owner is None or column is None or index.rows[other][column] == owner:
                raise SceneError(place, f'{name} already exists')

    def owner(self, section: str, entry: Entry, place: Place) -> str | None:
        """The id of the project, domain or user that a thing belongs to."""
        kind = REFERABLE[section]
        if kind.owner == 'domain_id':
            domain = entry.get('domain')
            return self.resolve('domains', domain, (*place, 'domain')) if domain else 'default'
        if kind.owner == 'user_id':
            return self.user(entry, place)
        return self.project(entry, place) if kind.owner else None

    def project(self, entry: Entry, place: Place) -> str:
        """That of the entry, or of the document; administrators' things may be nobody's."""
        named = entry.get('project', self.document.get('project', 'admin'))
        return self.resolve('projects', named, (*place, 'project')) if named else ''

    def user(self, entry: Entry, place: Place) -> str:
        """That of the entry, or one who is called like the project, or else the administrator."""
        if entry.get('user'):
            return self.resolve('users', entry['user'], (*place, 'user'))
        project = self.index('projects').rows.get(self.project(entry, place))
        users = self.index('users')
        for name in (project['name'] if project else '', 'admin'):
            if users.named.get(name):
                return users.named[name][0]
        return next(iter(users.rows), '')

    def leave(self, counted: Iterable[str]) -> None:
        """Read what servers may ask of the store, also of the tables that count, and ask it no more."""
        for section in REFERABLE:
            self.index(section)
        for table in counted:
            self._numbers.setdefault(table, bulk.greatest(self.connection, table))
        self.__dict__['image_properties'] = self.image_properties
        # By where schemas are in the memory of this process.
        self._facts.clear()
        del self.connection

    def write(self) -> None:
        """Let the store have all rows that there are so far."""
        bulk.insert(self.connection, self.rows)
        bulk.go_on_counting(self.connection)
        self.rows.clear()
