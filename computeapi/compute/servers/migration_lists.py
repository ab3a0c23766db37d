"""Reading the moves of servers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from computeapi.compute.paging import Page, keyset
from computeapi.db import server_migrations as rows
from computeapi.db.engine import Store
from computeapi.db.server_migrations import Migration
from computeapi.db.tables.compute import migrations
from computeapi.errors import Invalid

NEWEST_FIRST = (('created_at', True), ('id', True))
COLUMNS = {
    'status': 'status',
    'instance_uuid': 'server_id',
    'migration_type': 'migration_type',
    'source_compute': 'source_host',
    'user_id': 'user_id',
    'project_id': 'project_id',
}


class MigrationLists:
    """All moves there were, of servers of any project: the caller's right to see them is asked before."""

    def __init__(self, store: Store):
        self.store = store

    def select(
        self,
        limit: int | None,
        marker: str | None = None,
        *,
        filters: Mapping[str, str] | None = None,
        since: datetime | None = None,
        before: datetime | None = None,
    ) -> list[Migration]:
        """The newest first. Filters: the keys of COLUMNS, and host (it came from or went to it).

        since, before: when it changed last.  marker: the UUID of the last of the page before; Invalid if unknown.
        """
        conditions = _conditions(filters or {}, since, before)
        with self.store.read() as connection:
            last = self._marker(connection, marker)
            page = Page(limit or 0, marker, NEWEST_FIRST)
            after, order = keyset(migrations, page, last, unique='id')
            return rows.select(connection, [*conditions, *after], order, limit)

    def _marker(self, connection: sa.Connection, marker: str | None) -> Migration | None:
        if not marker:
            return None
        found = rows.select(connection, [migrations.c.uuid == marker])
        if not found:
            raise Invalid(f'Marker {marker} could not be found.')
        return found[0]


def _conditions(filters: Mapping[str, Any], since: datetime | None, before: datetime | None) -> list:
    conditions = [migrations.c[COLUMNS[name]] == value for name, value in filters.items() if name in COLUMNS]
    if 'host' in filters:
        host = filters['host']
        conditions.append(sa.or_(migrations.c.source_host == host, migrations.c.dest_host == host))
    if since is not None:
        conditions.append(migrations.c.updated_at >= since)
    if before is not None:
        conditions.append(migrations.c.updated_at <= before)
    return conditions
