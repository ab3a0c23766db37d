"""Queries of migrations."""

from collections.abc import Mapping
from datetime import datetime

from computeapi.db import server_migrations
from computeapi.db.engine import Store
from computeapi.db.listing import Page
from computeapi.db.server_migrations import Migration

COLUMNS = {
    'status': 'status',
    'instance_uuid': 'server_id',
    'migration_type': 'migration_type',
    'source_compute': 'source_host',
    'user_id': 'user_id',
    'project_id': 'project_id',
    'host': 'host',
}
"""The filters of migrations and their columns; `host` matches the source or the destination."""


class MigrationLists:
    """The migrations of servers of any project; the caller's right to see them is checked before."""

    def __init__(self, store: Store):
        self.store = store

    def select(
        self,
        page: Page,
        *,
        filters: Mapping[str, str] | None = None,
        since: datetime | None = None,
        before: datetime | None = None,
    ) -> list[Migration]:
        """One page of migrations; its marker is a UUID, Invalid if unknown. Filters: the keys of COLUMNS.

        since, before: the period of the last change.
        """
        chosen = {COLUMNS[name]: value for name, value in (filters or {}).items() if name in COLUMNS}
        return self.store.query(
            server_migrations.page, page._replace(marker=page.marker or None), chosen, since, before
        )
