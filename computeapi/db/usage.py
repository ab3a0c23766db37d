"""The time spans in which servers ran, as rows."""

from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from computeapi.db import index_scans
from computeapi.db.index_scans import IndexScan
from computeapi.db.listing import Page
from computeapi.db.records import Rows
from computeapi.db.server_scans import OF_PROJECT
from computeapi.db.tables.servers import servers


class Span(NamedTuple):
    """The lifetime of a server and its size; memory in MiB, disk in GiB."""

    id: int
    uuid: str
    project_id: str
    name: str
    flavor: dict[str, Any]
    vcpus: int
    memory_mb: int
    root_gb: int
    ephemeral_gb: int
    vm_state: str
    launched_at: datetime
    terminated_at: datetime | None

    @property
    def disk_gb(self) -> int:
        return self.root_gb + self.ephemeral_gb


SPANS = Rows(Span, servers)


def page(
    connection: sa.Connection, start: datetime, stop: datetime, page: Page, project_id: str | None = None
) -> list[Span]:
    """One page of the servers that ran at any time between `start` and `stop`, including deleted ones.

    They belong to one project, or to all, and are then sorted by project. Invalid for an unknown marker.
    """
    ended = sa.or_(servers.c.terminated_at.is_(None), servers.c.terminated_at > start)
    fixed = () if project_id is None else (project_id,)
    scan = IndexScan(
        OF_PROJECT, fixed, len(OF_PROJECT.columns) - len(fixed), False, where=(servers.c.launched_at < stop, ended)
    )
    return SPANS.of(index_scans.page(connection, SPANS.select, scan, page, servers.c.uuid == page.marker))
