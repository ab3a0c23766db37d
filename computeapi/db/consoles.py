"""Console tokens as rows. Only their hashes are stored: reading the database does not give access to consoles."""

from collections.abc import Collection
from datetime import datetime

import sqlalchemy as sa

from computeapi.db.records import Among, Rows
from computeapi.db.tables.servers import ConsoleToken, servers
from computeapi.db.tables.servers import console_tokens as tokens

__all__ = ['ConsoleToken']

TOKENS = Rows(ConsoleToken, tokens)
PLACES = Among(
    sa.select(servers.c.uuid, servers.c.host, servers.c.vm_state).where(servers.c.deleted_at.is_(None)), servers.c.uuid
)


def insert(connection: sa.Connection, token: ConsoleToken) -> None:
    TOKENS.insert(connection, **token._asdict())


def get(connection: sa.Connection, token_hash: str, now: datetime) -> ConsoleToken | None:
    """The token, unless it has expired or its server is deleted or on another host."""
    here = (servers.c.uuid == tokens.c.server_id) & (servers.c.host == tokens.c.host) & servers.c.deleted_at.is_(None)
    valid = (tokens.c.hash == token_hash) & (tokens.c.expires_at > now)
    return TOKENS.first(connection, TOKENS.select.join(servers, here).where(valid))


def delete_expired(connection: sa.Connection, server_id: str, now: datetime) -> None:
    connection.execute(sa.delete(tokens).where(tokens.c.server_id == server_id, tokens.c.expires_at <= now))


def places(connection: sa.Connection, server_ids: Collection[str]) -> list[tuple[str, str | None, str]]:
    """UUID, host and vm_state of those of the servers that still exist."""
    return [(uuid, host, vm_state) for uuid, host, vm_state in PLACES.rows(connection, server_ids)]
