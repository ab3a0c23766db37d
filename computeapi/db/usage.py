"""From when until when servers ran, as rows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from computeapi.db.tables.compute import servers


class Span(NamedTuple):
    """The life of a server and its size; memory in MiB, disk in GiB. The fields are columns, in this order."""

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


COLUMNS = [servers.c[name] for name in Span._fields]


def running(start: datetime, stop: datetime, project_id: str | None) -> list[sa.ColumnElement[bool]]:
    """The servers that ran at some moment from `start` to `stop`, whether or not they are deleted by now."""
    conditions = [
        servers.c.launched_at < stop,
        sa.or_(servers.c.terminated_at.is_(None), servers.c.terminated_at > start),
    ]
    return conditions if project_id is None else [servers.c.project_id == project_id, *conditions]


def select(
    connection: sa.Connection,
    conditions: Sequence[sa.ColumnElement[bool]],
    order: Sequence[sa.ColumnElement[Any]],
    limit: int | None,
) -> list[Span]:
    statement = sa.select(*COLUMNS).where(*conditions).order_by(*order).limit(limit)
    return [Span(*row) for row in connection.execute(statement)]


def get(connection: sa.Connection, server_id: str, project_id: str | None) -> Span | None:
    """A server of that project, or of any."""
    conditions = [servers.c.uuid == server_id, *([] if project_id is None else [servers.c.project_id == project_id])]
    return next(iter(select(connection, conditions, [], 1)), None)
