"""Migrations of servers between hosts (or flavors), as rows."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from computeapi import randomness
from computeapi.context import Context
from computeapi.db import index_scans, listing
from computeapi.db.index_scans import IndexScan
from computeapi.db.listing import NO_MARKER, Clause, Page
from computeapi.db.records import Rows, is_among
from computeapi.db.servers import Server
from computeapi.db.tables.servers import Migration, migrations, servers
from computeapi.states import MigrationStatus, MigrationType

__all__ = ['Migration']

# The statuses of migrations that are over, and of those that only wait for a confirmation.
OVER = (
    MigrationStatus.ERROR,
    MigrationStatus.FAILED,
    MigrationStatus.CANCELLED,
    MigrationStatus.COMPLETED,
    MigrationStatus.DONE,
    MigrationStatus.CONFIRMED,
    MigrationStatus.REVERTED,
)
MOVED = (MigrationStatus.FINISHED, MigrationStatus.CONFIRMING)


MIGRATIONS = Rows(Migration, migrations)
BY_AGE = index_scans.index_of(migrations, 'ix_migrations_created_at_id')
OF_EXISTING_SERVERS = sa.exists().where(servers.c.uuid == migrations.c.server_id, servers.c.deleted_at.is_(None))
"""Migrations of deleted servers are not shown."""
LISTED = MIGRATIONS.select.where(OF_EXISTING_SERVERS)


def insert(
    connection: sa.Connection,
    context: Context,
    server: Server,
    migration_type: MigrationType,
    status: MigrationStatus,
    now: datetime,
    new_flavor: Mapping[str, Any] | None = None,
) -> int:
    """Record that the caller has a server moved, to another flavor if one is given; returns the ID of the row."""
    # The API shows no flavors for evacuations; all other types have both, even if they are the same.
    both = server.flavor, dict(new_flavor or server.flavor)
    flavors = (None, None) if migration_type == MigrationType.EVACUATION else both
    values = {
        'uuid': randomness.new_id(),
        'server_id': server.uuid,
        'migration_type': migration_type,
        'status': status,
        'source_host': server.host,
        'source_node': server.node,
        'old_flavor': flavors[0],
        'new_flavor': flavors[1],
        'old_vm_state': server.vm_state,
        'user_id': context.user_id,
        'project_id': context.project_id,
        'created_at': now,
        'updated_at': now,
    }
    return MIGRATIONS.add(connection, **values)


def get(connection: sa.Connection, migration_id: int) -> Migration | None:
    return MIGRATIONS.find(connection, id=migration_id)


def live(connection: sa.Connection, server_id: str, statuses: Collection[str]) -> list[Migration]:
    """The server's live migrations in one of these statuses, newest first."""
    query = _of_server(connection.dialect.name, MigrationType.LIVE)
    return MIGRATIONS.all(connection, query, {'its_server': server_id, 'statuses': list(statuses)})


def note_plugged(connection: sa.Connection, server_id: str, told: Mapping[str, str]) -> None:
    """Record what is reported about the connection of ports, by port, while a host prepares for a live migration."""
    mine = (migrations.c.server_id == server_id) & (migrations.c.migration_type == MigrationType.LIVE)
    getting_ready = mine & (migrations.c.status == MigrationStatus.PREPARING)
    known = sa.select(migrations.c.id, migrations.c.plugged).where(getting_ready).with_for_update()
    for migration_id, plugged in connection.execute(known).all():
        change(connection, migration_id, {'plugged': {**(plugged or {}), **told}})


def latest(connection: sa.Connection, server_id: str, statuses: Collection[str]) -> Migration | None:
    """The server's newest migration in one of these statuses."""
    query = _of_server(connection.dialect.name, limit=1)
    return MIGRATIONS.first(connection, query, {'its_server': server_id, 'statuses': list(statuses)})


def evacuation_of(connection: sa.Connection, server_id: str) -> Migration | None:
    """The newest evacuation of the server that is not over."""
    query = _of_server(connection.dialect.name, MigrationType.EVACUATION, limit=1)
    return MIGRATIONS.first(connection, query, {'its_server': server_id, 'statuses': [MigrationStatus.ACCEPTED]})


@functools.cache
def _of_server(dialect: str, migration_type: MigrationType | None = None, limit: int | None = None) -> sa.Select[Any]:
    """The migrations of a server, of one type or all, in some statuses, newest first."""
    of_server = migrations.c.server_id == sa.bindparam('its_server')
    query = MIGRATIONS.select.where(of_server, is_among(dialect, migrations.c.status, 'statuses'))
    if migration_type is not None:
        query = query.where(migrations.c.migration_type == migration_type)
    return query.order_by(migrations.c.id.desc()).limit(limit)


def are_under_way(connection: sa.Connection, host: str) -> bool:
    """Whether a server is moving from this host or to it, or may still return to it."""
    of_host = sa.or_(migrations.c.source_host == host, migrations.c.dest_host == host)
    going = sa.select(migrations.c.id).where(of_host, migrations.c.status.not_in(OVER)).limit(1)
    return connection.execute(going).first() is not None


def evacuations_from(connection: sa.Connection, hosts: Collection[str]) -> list[Migration]:
    """The completed evacuations from these hosts that the hosts have not been told of yet."""
    done = (migrations.c.migration_type == MigrationType.EVACUATION) & (migrations.c.status == MigrationStatus.DONE)
    return MIGRATIONS.all(connection, MIGRATIONS.select.where(done, migrations.c.source_host.in_(hosts)))


def page(
    connection: sa.Connection,
    page: Page,
    filters: Mapping[str, str],
    since: datetime | None = None,
    before: datetime | None = None,
) -> list[Migration]:
    """One page of the migrations of existing servers, sorted by `created_at`; Invalid for an unknown marker.

    filters: columns, and `host` (the source or destination).  since, before: when it was last updated.
    """
    where = [migrations.c[name] == value for name, value in filters.items() if name != 'host']
    if 'host' in filters:
        host = filters['host']
        where.append(sa.or_(migrations.c.source_host == host, migrations.c.dest_host == host))
    if since is not None:
        where.append(migrations.c.updated_at >= since)
    if before is not None:
        where.append(migrations.c.updated_at <= before)
    few = _few(connection, filters, since)
    if few is not None:
        return _sorted(connection, page, [*where, migrations.c.id.in_(few)])
    scan = IndexScan(BY_AGE, (), len(BY_AGE.columns), page.sort[0][1], where=tuple(where))
    return MIGRATIONS.of(
        index_scans.page(connection, LISTED, scan, page, OF_EXISTING_SERVERS & (migrations.c.uuid == page.marker))
    )


def _few(connection: sa.Connection, filters: Mapping[str, str], since: datetime | None) -> Collection[int] | None:
    """The IDs of migrations that include all wanted ones, if these are few: those of a server, or recent ones."""
    ids = sa.select(migrations.c.id).limit(index_scans.FEW + 1)
    if 'server_id' in filters:
        ids = ids.where(migrations.c.server_id == filters['server_id'])
    elif since is not None:
        ids = ids.where(migrations.c.updated_at >= since)
    else:
        return None
    found = connection.scalars(ids).all()
    return found if len(found) <= index_scans.FEW else None


def _sorted(connection: sa.Connection, page: Page, where: Sequence[Clause]) -> list[Migration]:
    """One page of a few migrations."""
    order, marked = listing.ordered(migrations, page, 'id'), [migrations.c.uuid == page.marker]
    statement = listing.paged(connection, LISTED, order, page, marked=marked, where=where, unknown=NO_MARKER)
    return MIGRATIONS.all(connection, statement)


def change(
    connection: sa.Connection, migration_id: int, values: Mapping[str, Any], statuses: Collection[str] | None = None
) -> bool:
    """Update the migration if it is in one of these statuses (None: any); returns whether it was."""
    statement = sa.update(migrations).where(migrations.c.id == migration_id)
    if statuses is not None:
        statement = statement.where(migrations.c.status.in_(statuses))
    return connection.execute(statement.values(**values)).rowcount == 1


def settle(connection: sa.Connection, server_id: str, now: datetime) -> None:
    """End all migrations of this server: finished ones are confirmed, the others have failed."""
    mine = migrations.c.server_id == server_id
    moved, running = migrations.c.status.in_(MOVED), migrations.c.status.not_in(OVER)
    for status, which in ((MigrationStatus.CONFIRMED, moved), (MigrationStatus.ERROR, running)):
        connection.execute(sa.update(migrations).where(mine, which).values(status=status, updated_at=now))
