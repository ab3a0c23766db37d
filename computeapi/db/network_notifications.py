"""Changes in the network service that others have not been notified of yet, by the servers affected."""

from collections.abc import Iterable

import sqlalchemy as sa

from computeapi.db.records import grouped
from computeapi.db.tables.network import notices


def insert(connection: sa.Connection, notice_id: str, server_ids: Iterable[str]) -> None:
    rows = [{'notice_id': notice_id, 'server_id': server_id} for server_id in server_ids]
    if rows:
        connection.execute(sa.insert(notices), rows)


def find(connection: sa.Connection) -> dict[str, list[str]]:
    """The servers of each notification, by its ID."""
    rows = connection.execute(sa.select(notices.c.notice_id, notices.c.server_id))
    return grouped((notice_id, server_id) for notice_id, server_id in rows)


def delete(connection: sa.Connection, notice_id: str) -> None:
    connection.execute(sa.delete(notices).where(notices.c.notice_id == notice_id))
