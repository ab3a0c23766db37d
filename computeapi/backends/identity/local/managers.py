"""Base classes of the managers of the local identity, and a short-lived cache of callers."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

import sqlalchemy as sa

from computeapi import errors, randomness
from computeapi.context import Context
from computeapi.db.engine import Store, conflicts
from computeapi.db.records import Rows

Clock = Callable[[], datetime]
R = TypeVar('R')
ADDING = frozenset({'options', 'extra'})


class Recent:
    """Caches callers for a few seconds, so that most requests need no look-up."""

    SIZE = 4096

    def __init__(self, seconds: float, clock: Clock):
        self.seconds = timedelta(seconds=seconds)
        self.clock = clock
        self.entries: dict[str, tuple[datetime, Context]] = {}

    def recall(self, key: str, look_up: Callable[[], tuple[Context, datetime]]) -> Context:
        """The cached caller, or the result of the look-up, which returns the caller and the time when it expires."""
        # A change during the look-up replaces the entries, so that its outdated result is not cached.
        entries = self.entries
        until, context = entries.get(key, (datetime.min, None))
        if context is None or self.clock() >= until:
            context, expires_at = look_up()
            if len(entries) >= self.SIZE:
                entries.clear()
            entries[key] = (min(expires_at, self.clock() + self.seconds), context)
        return context

    def forget(self) -> None:
        self.entries = {}


class Manager:
    """Manages one kind of identity resource. A change takes effect at once, because it clears the cache of callers."""

    noun: str

    def __init__(self, store: Store, recent: Recent):
        self.store = store
        self.recent = recent

    def missing(self, record_id: str) -> errors.NotFound:
        return errors.NotFound(f'Could not find {self.noun}: {record_id}.')

    @contextmanager
    def change(self) -> Iterator[sa.Connection]:
        """A transaction in which a duplicate raises Conflict."""
        problem = f'Conflict occurred attempting to store {self.noun} - Duplicate entry.'
        try:
            with conflicts(problem), self.store.write() as connection:
                yield connection
        finally:
            self.recent.forget()


class RecordManager(Manager, Generic[R]):
    """Manages records that have an ID and a table of their own.

    parts: the columns that refer to records of other kinds.  around: the one of them that refers to the container.
    """

    records: Rows[R]
    parts: Mapping[str, Rows[Any]] = {}
    around: str | None = None

    def get(self, record_id: str) -> R:
        with self.store.read() as connection:
            return self.require(connection, record_id)

    def list(self, **values: Any) -> list[R]:
        with self.store.read() as connection:
            return self.records.named(connection, **values)

    def require(self, connection: sa.Connection, record_id: str, *, lock: bool = False) -> R:
        record = self.records.find(connection, lock=lock, id=record_id)
        if record is None:
            raise self.missing(record_id)
        return record

    def insert(self, connection: sa.Connection, **values: Any) -> R:
        values = {
            'id': randomness.new_hex_id(),
            **values,
            **{name: without_none(values[name]) for name in ADDING & values.keys()},
        }
        self.require_parts(connection, values)
        self.records.insert(connection, **values)
        return self.require(connection, values['id'])

    def change_record(self, connection: sa.Connection, record: R, record_id: str, changes: Mapping[str, Any]) -> R:
        """Update a record; `options` and `extra` are merged with existing ones, and None removes a key."""
        self.require_parts(connection, changes)
        added = {name: without_none(getattr(record, name) | changes[name]) for name in ADDING & changes.keys()}
        self.records.update(connection, {**changes, **added}, id=record_id)
        return self.require(connection, record_id)

    def require_parts(self, connection: sa.Connection, values: Mapping[str, Any]) -> None:
        """Invalid if a record would refer to a missing record; NotFound if its container is missing."""
        for name, records in self.parts.items():
            record_id = values.get(name)
            if record_id and records.find(connection, id=record_id) is None:
                error = errors.NotFound if name == self.around else errors.Invalid
                raise error(f'Invalid input for field/attribute {name}. There is no {record_id}.')

    def require_mutable(self, record_id: str, immutable: bool, changes: Mapping[str, Any] | None = None) -> None:
        """Forbidden for immutable records, except for an update that resets the option itself, to false or null."""
        options = (changes or {}).get('options', {})
        if immutable and options.get('immutable', True):
            raise errors.Forbidden(f'Cannot modify or delete immutable {self.noun} {record_id}.')


class PlainManager(RecordManager[R]):
    """Manages records that are created, changed and deleted without further rules.

    defaults: the values of a new record that are not given.
    """

    defaults: Mapping[str, Any] = {'description': '', 'extra': {}}

    def create(self, **values: Any) -> R:
        with self.change() as connection:
            return self.insert(connection, **{**self.defaults, **values})

    def update(self, record_id: str, **changes: Any) -> R:
        with self.change() as connection:
            record = self.require(connection, record_id, lock=True)
            return self.change_record(connection, record, record_id, changes)

    def delete(self, record_id: str) -> None:
        with self.change() as connection:
            if not self.records.delete(connection, id=record_id):
                raise self.missing(record_id)


def without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    """Without keys whose value is None: Terraform, for one, expects a boolean in every option that is present."""
    return {name: value for name, value in values.items() if value is not None}
