"""Servers that were deleted, out of the way of the others, and what nobody needs any more, removed for good.

A server in the archive is one row, a document with all rows that were its own. Tables of the same shape beside each, as
other services have them, would have to be changed by every revision; and to purge is to delete one row.

Everything goes in batches, each a transaction of its own, so that requests wait for none of them for long.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import orjson
import sqlalchemy as sa

from computeapi.clock import utcnow
from computeapi.db.engine import Store
from computeapi.db.server_migrations import EVACUATION
from computeapi.db.tables.compute import allocations, idempotency_keys, processes
from computeapi.db.tables.identity import tokens
from computeapi.db.tables.servers import (
    archived_servers,
    block_devices,
    console_tokens,
    fences,
    migrations,
    server_action_events,
    server_actions,
    server_shares,
    server_tags,
    servers,
    tasks,
)
from computeapi.db.tables.volume import volume_messages
from computeapi.states import MigrationStatus

OWN = (server_tags, block_devices, server_shares, console_tokens, migrations, server_actions)
"""What hangs on a server; the events of its actions go with them."""
EVENT = server_action_events.columns.keys()
EXPIRING = (
    tokens.c.expires_at,
    console_tokens.c.expires_at,
    volume_messages.c.guaranteed_until,
    processes.c.seen_at,
    idempotency_keys.c.expires_at,
)
"""Until when rows are of any use, or were."""

Clear = Callable[[sa.Connection, datetime, int], Mapping[str, int]]


def archive(store: Store, before: datetime, batch: int) -> dict[str, int]:
    """Archive the servers that were deleted before that moment; how many rows of which table went."""
    return _repeated(store, _archive, before, batch)


def purge(store: Store, before: datetime, batch: int) -> dict[str, int]:
    """Remove what is archived of servers that were deleted before that moment, and what expired before it."""
    counts = _repeated(store, _purge, before, batch)
    for column in EXPIRING:
        counts |= _repeated(store, _expire(column), min(before, utcnow()), batch)
    return counts


def _repeated(store: Store, clear: Clear, before: datetime, batch: int) -> dict[str, int]:
    """Clear batch by batch until there is nothing left."""
    counts: Counter[str] = Counter()
    while cleared := store.tell(clear, before, batch):
        counts.update(cleared)
    return dict(counts)


def _archive(connection: sa.Connection, before: datetime, batch: int) -> Mapping[str, int]:
    gone = connection.execute(_archivable(before, batch)).mappings().all()
    contents: dict[str, dict[str, Any]] = {row['uuid']: {'servers': [dict(row)]} for row in gone}
    ids = list(contents)
    counts = Counter(servers=len(ids))
    for table in OWN:
        for row in connection.execute(sa.select(table).where(table.c.server_id.in_(ids))).mappings():
            contents[row['server_id']].setdefault(table.name, []).append(dict(row))
            counts[table.name] += 1
    for server_id, event in _events(connection, ids):
        contents[server_id].setdefault(server_action_events.name, []).append(event)
        counts[server_action_events.name] += 1
    if not ids:
        return {}
    now = utcnow()
    facts = [{name: row[name] for name in ('uuid', 'project_id', 'deleted_at')} for row in gone]
    documents = ({'archived_at': now, 'contents': _document(contents[each['uuid']])} for each in facts)
    connection.execute(sa.insert(archived_servers), [each | more for each, more in zip(facts, documents, strict=True)])
    for table in OWN:
        connection.execute(sa.delete(table).where(table.c.server_id.in_(ids)))
    connection.execute(sa.delete(servers).where(servers.c.uuid.in_(ids)))
    return counts


def _archivable(before: datetime, batch: int) -> sa.Select[Any]:
    """Some deleted servers that nobody has anything left to do with.

    A host that was evacuated has still to learn that the machine is no longer its own. The newest server stays, for
    SQLite would give its number again.
    """
    of_server = [table.c.server_id == servers.c.uuid for table in (tasks, allocations)]
    unknown = (migrations.c.migration_type == EVACUATION) & (migrations.c.status == MigrationStatus.DONE)
    newest = sa.select(sa.func.max(servers.alias().c.id)).scalar_subquery()
    return (
        sa.select(servers)
        .where(servers.c.deleted_at < before, servers.c.id < newest)
        .where(*(~sa.exists().where(condition) for condition in of_server))
        .where(~sa.exists().where(migrations.c.server_id == servers.c.uuid, unknown))
        .order_by(servers.c.id)
        .limit(batch)
        .with_for_update(of=servers)
    )


def _events(connection: sa.Connection, ids: Sequence[str]) -> list[tuple[str, dict[str, Any]]]:
    """The events of the actions of these servers, each with the server's id."""
    of_action = server_actions.c.id == server_action_events.c.action_id
    query = sa.select(server_actions.c.server_id, *server_action_events.c).join(server_action_events, of_action)
    rows = connection.execute(query.where(server_actions.c.server_id.in_(ids))).mappings()
    return [(row['server_id'], {name: row[name] for name in EVENT}) for row in rows]


def _document(contents: Mapping[str, Any]) -> str:
    # The names of tables and columns are a kind of text of their own.
    return orjson.dumps(contents, option=orjson.OPT_NON_STR_KEYS).decode()


def _purge(connection: sa.Connection, before: datetime, batch: int) -> Mapping[str, int]:
    old = sa.select(archived_servers.c.uuid).where(archived_servers.c.deleted_at < before).limit(batch)
    ids = list(connection.scalars(old))
    if not ids:
        return {}
    # No worker of those days can wake up any more.
    connection.execute(sa.delete(fences).where(fences.c.server_id.in_(ids)))
    removed = connection.execute(sa.delete(archived_servers).where(archived_servers.c.uuid.in_(ids)))
    return {archived_servers.name: removed.rowcount}


def _expire(column: sa.Column[datetime]) -> Clear:
    """Remove rows of the column's table that are of no use since a moment."""
    table = column.table
    [key] = table.primary_key.columns

    def clear(connection: sa.Connection, before: datetime, batch: int) -> Mapping[str, int]:
        # By primary key and in its order: MariaDB locks what it scans, and two deletions could lock each other out.
        keys = sorted(connection.scalars(sa.select(key).where(column < before).limit(batch)))
        if not keys:
            return {}
        return {table.name: connection.execute(sa.delete(table).where(key.in_(keys))).rowcount}

    return clear
