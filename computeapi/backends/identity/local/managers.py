"""What the managers of the local identity share: a table of records, and a short memory of callers."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

import sqlalchemy as sa

from computeapi import errors
from computeapi.context import Context
from computeapi.db.engine import Store
from computeapi.db.records import Rows

Clock = Callable[[], datetime]
R = TypeVar('R')


class Recent:
    """Callers recognised in the last few seconds, so that most requests need no look-up."""

    SIZE = 4096

    def __init__(self, seconds: float, clock: Clock):
        self.seconds = timedelta(seconds=seconds)
        self.clock = clock
        self.entries: dict[str, tuple[datetime, Context]] = {}

    def recall(self, key: str, look_up: Callable[[], tuple[Context, datetime]]) -> Context:
        """The caller remembered under the key, or else the one looked up and the moment when it expires."""
        # A change during the look-up replaces the entries, so that an answer from before is not kept.
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
    """One noun of identity. A change takes effect at once: after it no caller is recognised from memory."""

    noun: str

    def __init__(self, store: Store, recent: Recent):
        self.store = store
        self.recent = recent

    def missing(self, record_id: str) -> errors.NotFound:
        return errors.NotFound(f'Could not find {self.noun}: {record_id}.')

    @contextmanager
    def change(self) -> Iterator[sa.Connection]:
        """A transaction in which a duplicate is a Conflict."""
        try:
            with self.store.write() as connection:
                yield connection
        except sa.exc.IntegrityError:
            raise errors.Conflict(f'Conflict occurred attempting to store {self.noun} - Duplicate entry.') from None
        finally:
            self.recent.forget()


class RecordManager(Manager, Generic[R]):
    """A noun whose records have an id, a name, and a table of their own."""

    records: Rows[R]

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

    def insert(self, **values: Any) -> R:
        record_id = uuid.uuid4().hex
        with self.change() as connection:
            self.records.insert(connection, id=record_id, **values)
            return self.require(connection, record_id)
