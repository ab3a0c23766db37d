"""What the volume service keeps besides volumes: things of one kind, in rows of their own."""

import builtins
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, TypeVar

from computeapi.context import Context
from computeapi.db.engine import Store
from computeapi.db.facts import FactTable
from computeapi.db.listing import bounded

NEWEST_FIRST = (('created_at', 'desc'),)

Record = TypeVar('Record')


class Kept(Generic[Record]):
    """Records of one table, of which a caller sees those of its project, or all if they belong to none."""

    table: FactTable
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
        """`all_projects` is for administrators; for others it means nothing."""
        where, page = self.table.listed(context, filters, all_projects), bounded(limit, marker)
        with self.store.read() as connection:
            found = self.table.page(connection, context, *where, sort=sort, page=page, offset=offset)
        return [self.record(**facts) for facts in found]

    def change(self, context: Context, thing_id: str, change: Callable[[Record], Mapping[str, Any]]) -> Record:
        """Change facts that depend on the thing as it is: nothing comes between reading and writing."""
        with self.store.write() as connection:
            found = self.record(**self.table.get(connection, context, thing_id, lock=True))
            facts = dict(change(found))
            if 'updated_at' in self.table.columns:
                facts['updated_at'] = self.clock()
            self.table.update(connection, thing_id, facts)
        return self.get(context, thing_id)
