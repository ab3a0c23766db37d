"""What all moves of a server have in common: a row that says how far it is, and a way back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from computeapi.clock import utcnow
from computeapi.compute.scheduler import HostState, Spec
from computeapi.compute.tasks import Task, thawed
from computeapi.compute.work import places
from computeapi.compute.work.job import Job, Superseded
from computeapi.db import server_migrations
from computeapi.db import servers as rows
from computeapi.db.server_migrations import Migration
from computeapi.db.servers import Server

if TYPE_CHECKING:
    from computeapi.compute.cloud import Cloud


def migration_of(job: Job) -> Migration:
    with job.store.read() as connection:
        migration = server_migrations.get(connection, job.arguments['migration_id'])
    if migration is None:
        raise Superseded()
    return migration


def find_place(job: Job, migration: Migration, spec: Spec) -> Migration:
    """Claim a place on another host, unless that is done; the migration as it is then. NoValidHost."""
    if migration.dest_host is not None:
        return migration
    found: dict[str, Any] = {}

    def keep(connection: sa.Connection, host: HostState) -> None:
        # The server may have been deleted meanwhile, and nobody would give back what is claimed now.
        job.write(connection)
        found.update(dest_host=host.name, dest_node=host.node, dest_ip=host.host_ip, updated_at=job.clock())
        server_migrations.change(connection, migration.id, found)

    job.cloud.scheduler.place(spec, keep)
    return migration._replace(**found)


def end(job: Job, status: str) -> Migration:
    """The move came to nothing: the server has its host, and no other."""
    migration = migration_of(job)
    with job.store.write() as connection:
        server_migrations.change(connection, migration.id, {'status': status, 'updated_at': job.clock()})
    places.leave_others(job.cloud, job.server)
    return migration


def undo(cloud: Cloud, task: Task, server: Server | None) -> None:
    """Nobody goes on with the move. Deleting a server settles everything by itself."""
    with cloud.store.read() as connection:
        migration = server_migrations.get(connection, task.arguments['migration_id'])
    if server is None or migration is None:
        return
    if has_moved(cloud, server, migration):
        follow(cloud, server, migration)
    places.leave_others(cloud, server)
    places.bind(cloud, thawed(task.context).elevated(), server, server.host)
    if migration.status not in server_migrations.OVER:
        with cloud.store.write() as connection:
            server_migrations.change(connection, migration.id, {'status': 'error', 'updated_at': utcnow()})


def has_moved(cloud: Cloud, server: Server, migration: Migration) -> bool:
    """Whether the machine is on the new host and no more on that which the server is said to be on."""
    if migration.dest_host in (None, server.host):
        return False
    there = cloud.hypervisor.power_state(places.at(server, migration.dest_host))
    return there is not None and cloud.hypervisor.power_state(server) is None


def follow(cloud: Cloud, server: Server, migration: Migration) -> None:
    """Write down where the machine is, which is so whatever becomes of the server."""
    where = places.on(cloud, migration.dest_host, migration.dest_node)
    with cloud.store.write() as connection:
        rows.update(connection, server.uuid, where | {'updated_at': utcnow()})
    for name, value in where.items():
        setattr(server, name, value)
