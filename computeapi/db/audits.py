"""Queries over the whole cloud for inconsistent rows that no task is working on."""

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

import sqlalchemy as sa

from computeapi.db.server_migrations import MOVED
from computeapi.db.tables.compute import allocations
from computeapi.db.tables.servers import migrations, server_tags, servers, tasks
from computeapi.db.tables.servers import server_action_events as events
from computeapi.db.tables.servers import server_actions as actions
from computeapi.states import GOING, VMState

UNHELD = ~sa.exists().where(tasks.c.server_id == servers.c.uuid)
ALIVE = servers.c.deleted_at.is_(None)


class StrayClaim(NamedTuple):
    """A server's claim on a host; `alive`: whether the server exists."""

    server_id: str
    host: str
    alive: bool


def stuck(connection: sa.Connection, most: int) -> list[str]:
    """Servers in a transient state that no task will end."""
    passing = servers.c.task_state.is_not(None) | (servers.c.vm_state == VMState.BUILDING)
    there = sa.select(servers.c.uuid).where(ALIVE, passing, UNHELD)
    return list(connection.scalars(there.order_by(servers.c.id).limit(most)))


def stray_claims(connection: sa.Connection, most: int) -> list[StrayClaim]:
    """Claims on hosts that their servers are neither on nor can return to."""
    returning = sa.exists().where(
        migrations.c.server_id == allocations.c.server_id,
        migrations.c.source_host == allocations.c.host,
        migrations.c.status.in_(MOVED),
    )
    elsewhere = servers.c.host.is_distinct_from(allocations.c.host) & ~returning
    held = sa.exists().where(tasks.c.server_id == allocations.c.server_id)
    found = (
        sa.select(allocations.c.server_id, allocations.c.host, servers.c.uuid.is_not(None))
        .outerjoin_from(allocations, servers, (servers.c.uuid == allocations.c.server_id) & ALIVE)
        .where(sa.or_(servers.c.uuid.is_(None), elsewhere), ~held)
    )
    rows = connection.execute(found.order_by(allocations.c.server_id, allocations.c.host).limit(most))
    return [StrayClaim(server_id, host, bool(alive)) for server_id, host, alive in rows]


def ageless_tags(connection: sa.Connection, most: int) -> list[str]:
    """Servers that have tags without a creation time."""
    found = sa.select(server_tags.c.server_id).where(server_tags.c.created_at.is_(None)).distinct()
    return list(connection.scalars(found.order_by(server_tags.c.server_id).limit(most)))


def unheld(connection: sa.Connection, server_ids: Collection[str]) -> dict[str, bool]:
    """Those of these servers that have no task, and whether each is alive; servers that never existed are left out."""
    known = sa.select(servers.c.uuid, servers.c.deleted_at).where(servers.c.uuid.in_(server_ids), UNHELD)
    return {server_id: deleted_at is None for server_id, deleted_at in connection.execute(known)}


def known(connection: sa.Connection, server_ids: Collection[str]) -> set[str]:
    """Those of these servers that have a row, deleted or not."""
    return set(connection.scalars(sa.select(servers.c.uuid).where(servers.c.uuid.in_(server_ids))))


def going(connection: sa.Connection, server_ids: Collection[str]) -> set[str]:
    """Those of these servers that are being deleted."""
    found = sa.select(servers.c.uuid).where(servers.c.uuid.in_(server_ids), servers.c.task_state.in_(GOING), ALIVE)
    return set(connection.scalars(found))


def deleted_since(connection: sa.Connection, moment: datetime, most: int) -> list[str]:
    """The servers that were deleted since then and have no task, latest first."""
    gone = sa.select(servers.c.uuid).where(servers.c.deleted_at >= moment, UNHELD)
    return list(connection.scalars(gone.order_by(servers.c.deleted_at.desc()).limit(most)))


def claims_of(connection: sa.Connection, server_ids: Collection[str]) -> set[tuple[str, str]]:
    """Pairs of these servers with the hosts that they have a claim on."""
    found = sa.select(allocations.c.server_id, allocations.c.host).where(allocations.c.server_id.in_(server_ids))
    return {(server_id, host) for server_id, host in connection.execute(found)}


def places_of(connection: sa.Connection, server_ids: Collection[str]) -> set[tuple[str, str]]:
    """Pairs of these servers with the hosts on which they are, have been, or were to be."""
    acted = sa.select(actions.c.server_id, events.c.host).join(events, events.c.action_id == actions.c.id)
    found = set[tuple[str, str]]()
    for statement in (
        sa.select(servers.c.uuid, servers.c.host).where(servers.c.uuid.in_(server_ids)),
        sa.select(migrations.c.server_id, migrations.c.source_host).where(migrations.c.server_id.in_(server_ids)),
        sa.select(migrations.c.server_id, migrations.c.dest_host).where(migrations.c.server_id.in_(server_ids)),
        acted.where(actions.c.server_id.in_(server_ids)).distinct(),
    ):
        found |= {(server_id, host) for server_id, host in connection.execute(statement)}
    return found


def is_unheld(connection: sa.Connection, server_id: str) -> bool:
    """Whether the server has no task, and will have none before the transaction ends."""
    connection.execute(sa.select(servers.c.id).where(servers.c.uuid == server_id).with_for_update()).all()
    return connection.execute(sa.select(tasks.c.id).where(tasks.c.server_id == server_id).limit(1)).first() is None
