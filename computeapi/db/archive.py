"""Moves deleted servers to an archive, and purges the archive and expired rows.

An archived server is one row, a document with all its rows. Shadow tables, as other services have them, would have to
be changed with every revision; and purging a server is deleting one row.

Everything is done in batches, each in a transaction of its own, so that requests never wait for long.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import orjson
import sqlalchemy as sa

from computeapi.clock import utcnow
from computeapi.db.engine import Store
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
from computeapi.db.tables.usage import usage_audits
from computeapi.db.tables.volume import volume_messages
from computeapi.states import MigrationStatus, MigrationType

OWN = (server_tags, block_devices, server_shares, console_tokens, migrations, server_actions)
"""The tables that belong to a server; the events of its actions are archived with them."""
EVENT = server_action_events.columns.keys()
LAST_AUDIT = sa.select(sa.func.max(usage_audits.alias().c.ends_at)).scalar_subquery()
EXPIRING: Mapping[sa.Column[datetime], tuple[sa.ColumnElement[bool], ...]] = {
    tokens.c.expires_at: (),
    console_tokens.c.expires_at: (),
    volume_messages.c.guaranteed_until: (),
    processes.c.seen_at: (),
    idempotency_keys.c.expires_at: (),
    # Without its row, the last audit would be performed again.
    usage_audits.c.ends_at: (usage_audits.c.ends_at < LAST_AUDIT,),
}
"""The columns that say until when rows are, or were, of use, with further conditions for their removal."""

Clear = Callable[[sa.Connection, datetime, int], Mapping[str, int]]


def archive(store: Store, before: datetime, batch: int) -> dict[str, int]:
    """Archive the servers that were deleted before that moment; returns the numbers of rows moved, by table."""
    return _repeated(store, _archive, before, batch)


def purge(store: Store, before: datetime, batch: int) -> dict[str, int]:
    """Remove archived servers that were deleted before that moment, and rows that expired before it."""
    counts = _repeated(store, _purge, before, batch)
    for column, conditions in EXPIRING.items():
        counts |= _repeated(store, _expire(column, conditions), min(before, utcnow()), batch)
    return counts


def _repeated(store: Store, clear: Clear, before: datetime, batch: int) -> dict[str, int]:
    """Clear batch by batch until nothing is left."""
    counts: Counter[str] = Counter()
    while cleared := store.change(clear, before, batch):
        counts.update(cleared)
    return dict(counts)


def _archive(connection: sa.Connection, before: datetime, batch: int) -> Mapping[str, int]:
    gone = connection.execute(_archivable(before, batch)).mappings().all()
    if not gone:
        return {}
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
    now = utcnow()
    facts = [{name: row[name] for name in ('uuid', 'project_id', 'deleted_at')} for row in gone]
    documents = ({'archived_at': now, 'contents': _document(contents[each['uuid']])} for each in facts)
    connection.execute(sa.insert(archived_servers), [each | more for each, more in zip(facts, documents, strict=True)])
    for table in OWN:
        connection.execute(sa.delete(table).where(table.c.server_id.in_(ids)))
    connection.execute(sa.delete(servers).where(servers.c.uuid.in_(ids)))
    return counts


def _archivable(before: datetime, batch: int) -> sa.Select[Any]:
    """Some deleted servers with no work left.

    An evacuated host must still learn that it no longer owns the virtual machine. The newest server stays, because
    SQLite would otherwise reuse its ID.
    """
    of_server = [table.c.server_id == servers.c.uuid for table in (tasks, allocations)]
    unknown = (migrations.c.migration_type == MigrationType.EVACUATION) & (migrations.c.status == MigrationStatus.DONE)
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
    """The events of these servers' actions, each with the server's ID."""
    of_action = server_actions.c.id == server_action_events.c.action_id
    query = sa.select(server_actions.c.server_id, *server_action_events.c).join(server_action_events, of_action)
    rows = connection.execute(query.where(server_actions.c.server_id.in_(ids))).mappings()
    return [(row['server_id'], {name: row[name] for name in EVENT}) for row in rows]


def _document(contents: Mapping[str, Any]) -> str:
    # The names of tables and columns are a subclass of str.
    return orjson.dumps(contents, option=orjson.OPT_NON_STR_KEYS).decode()


def _purge(connection: sa.Connection, before: datetime, batch: int) -> Mapping[str, int]:
    old = sa.select(archived_servers.c.uuid).where(archived_servers.c.deleted_at < before).limit(batch)
    ids = list(connection.scalars(old))
    if not ids:
        return {}
    # No worker from that time can still be running.
    connection.execute(sa.delete(fences).where(fences.c.server_id.in_(ids)))
    removed = connection.execute(sa.delete(archived_servers).where(archived_servers.c.uuid.in_(ids)))
    return {archived_servers.name: removed.rowcount}


def _expire(column: sa.Column[datetime], conditions: Sequence[sa.ColumnElement[bool]]) -> Clear:
    """Removes rows of the column's table that expired before a given moment and meet these conditions."""
    table = column.table
    [key] = table.primary_key.columns

    def clear(connection: sa.Connection, before: datetime, batch: int) -> Mapping[str, int]:
        # By primary key, in order: MariaDB locks the rows that it scans, so two deletions could deadlock.
        keys = sorted(connection.scalars(sa.select(key).where(column < before, *conditions).limit(batch)))
        if not keys:
            return {}
        return {table.name: connection.execute(sa.delete(table).where(key.in_(keys))).rowcount}

    return clear
