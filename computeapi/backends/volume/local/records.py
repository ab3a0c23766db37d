"""The records of the volume service: volumes and related resources, one table for each kind."""

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import sqlalchemy as sa

from computeapi import errors
from computeapi.backends.rights import check_writer
from computeapi.context import Context
from computeapi.db.engine import Store
from computeapi.db.listing import NEWEST_FIRST, bounded
from computeapi.db.resource_table import ResourceTable

MAX_METADATA = 128
MAX_IMAGE_METADATA = 256
"""Enough for all properties of an image, and for further ones set on the volume."""


class Identified(Protocol):
    """A dataclass with an `id`."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def id(self) -> str: ...


Record = TypeVar('Record', bound=Identified)


class Records(Generic[Record]):
    """Records of one table; a caller sees those of its project, or all if they do not belong to projects."""

    table: ResourceTable
    record: Callable[..., Record]

    def __init__(self, store: Store, clock: Callable[[], datetime]):
        self.store, self.clock = store, clock

    def get(self, context: Context, thing_id: str) -> Record:
        with self.store.read() as connection:
            return self.record(**self.table.get(connection, context, thing_id))

    def list(
        self,
        context: Context,
        *,
        filters: Mapping[str, Any] | None = None,
        sort: Sequence[tuple[str, str]] = NEWEST_FIRST,
        limit: int | None = None,
        offset: int | None = None,
        marker: str | None = None,
        all_projects: bool = False,
    ) -> builtins.list[Record]:
        """`all_projects` is for administrators; ignored for others."""
        where, page = self.table.listed(context, filters, all_projects), bounded(limit, marker)
        with self.store.read() as connection:
            found = self.table.page(connection, context, *where, sort=sort, page=page, offset=offset)
        return [self.record(**facts) for facts in found]

    def change(self, context: Context, thing_id: str, change: Callable[[Record], Mapping[str, Any]]) -> Record:
        """Apply changes computed from the current record, which stays locked between reading and writing."""
        with self._locked(context, thing_id) as (connection, found):
            return self._write(connection, found, change(found))

    @contextmanager
    def _locked(self, context: Context, thing_id: str) -> Iterator[tuple[sa.Connection, Record]]:
        """A transaction that locks the record."""
        with self.store.write() as connection:
            yield connection, self._lock(connection, context, thing_id)

    def _lock(self, connection: sa.Connection, context: Context, thing_id: str) -> Record:
        """The record, locked to change it or to create another one from it; raises Forbidden if the caller may only
        read."""
        check_writer(context)
        return self.record(**self.table.get(connection, context, thing_id, lock=True))

    def _write(self, connection: sa.Connection, found: Record, facts: Mapping[str, Any]) -> Record:
        check_metadata(facts)
        facts = dict(facts)
        if 'updated_at' in self.table.columns:
            facts['updated_at'] = self.clock()
        self.table.update(connection, found.id, facts)
        return replace(found, **facts)


class SizedRecords(Records[Record]):
    """Records with a size."""

    def totals(
        self, context: Context, *, filters: Mapping[str, Any] | None = None, all_projects: bool = False
    ) -> tuple[int, int]:
        """The number of records that a list without a limit has, and their total size."""
        with self.store.read() as connection:
            return self.table.count(connection, *self.table.listed(context, filters, all_projects))

    def count(self, context: Context, **asked: Any) -> int:
        """The first of the totals."""
        return self.totals(context, **asked)[0]


def check_metadata(facts: Mapping[str, Any]) -> None:
    for name, most in (('metadata', MAX_METADATA), ('image_metadata', MAX_IMAGE_METADATA)):
        if len(facts.get(name, ())) > most:
            raise errors.Invalid(f'{name} must not have more than {most} items.')
