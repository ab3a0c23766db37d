"""What the managers of the local identity share: a table of records, and a short memory of callers."""

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from computeapi import errors
from computeapi.context import Context
from computeapi.db import identity as queries
from computeapi.db.engine import Store

# A user, project, domain or credential: {'id': ...}, or {'name': ...} with the 'domain' or 'user' it is unique in.
Reference = Mapping[str, Any]

Clock = Callable[[], datetime]


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


class RecordManager(Manager):
    """A noun whose records have an id, a name, and a table of their own."""

    table: sa.Table

    def get(self, record_id: str) -> sa.Row[Any]:
        with self.store.read() as connection:
            return self.require(connection, record_id)

    def list(self, **values: Any) -> Sequence[sa.Row[Any]]:
        with self.store.read() as connection:
            return queries.list_all(connection, self.table, **values)

    def require(self, connection: sa.Connection, record_id: str, *, lock: bool = False) -> sa.Row[Any]:
        record = queries.find(connection, self.table, lock=lock, id=record_id)
        if record is None:
            raise self.missing(record_id)
        return record

    def insert(self, **values: Any) -> sa.Row[Any]:
        record_id = uuid.uuid4().hex
        with self.change() as connection:
            queries.insert(connection, self.table, id=record_id, **values)
            return self.require(connection, record_id)
