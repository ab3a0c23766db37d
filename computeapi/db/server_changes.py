"""Recently changed servers, for code that pushes updates to clients."""

from datetime import datetime
from typing import NamedTuple

import sqlalchemy as sa

from computeapi.db.index_scans import hinted
from computeapi.db.listing import Clause
from computeapi.db.server_scans import BY, GONE, LIVING, THERE
from computeapi.db.tables.servers import servers


class ChangedServer(NamedTuple):
    """The visible state of a server; clients are notified of a change of any of these."""

    uuid: str
    project_id: str
    name: str
    vm_state: str
    task_state: str | None
    power_state: int
    progress: int
    host: str | None
    locked_by: str | None
    updated_at: datetime | None
    deleted_at: datetime | None


def since(connection: sa.Connection, moment: datetime, limit: int) -> list[ChangedServer]:
    """The servers that were changed, created or deleted since then; if there are more than `limit`, more than that many
    but not all: the newest of each kind."""
    found: dict[str, ChangedServer] = {}
    for where, at, index in (
        (THERE, servers.c.updated_at, BY['updated_at']),
        (THERE, servers.c.created_at, LIVING),
        (~THERE, servers.c.deleted_at, GONE),
    ):
        found |= {each.uuid: each for each in _select(connection, where & (at >= moment), at, index, limit + 1)}
    return list(found.values())


def _select(
    connection: sa.Connection, where: Clause, at: sa.Column[datetime], index: sa.Index, limit: int
) -> list[ChangedServer]:
    columns = (servers.c[name] for name in ChangedServer._fields)
    newest = sa.select(*columns).where(where).order_by(servers.c.deleted_at.desc(), at.desc()).limit(limit)
    statement = hinted(newest, index)
    return [ChangedServer(*row) for row in connection.execute(statement)]
