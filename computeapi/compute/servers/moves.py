"""What all moves of a server have in common: a row that says how far it is, checks of the host, and a way back."""

from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from computeapi.compute.hosts import is_host_up
from computeapi.compute.platform import Platform
from computeapi.compute.scheduler import HostState, Spec
from computeapi.compute.servers import bandwidth, disks, placement
from computeapi.compute.servers.changes import not_ready
from computeapi.compute.tasks.fence import Superseded
from computeapi.compute.tasks.job import Job
from computeapi.compute.tasks.queue import thawed
from computeapi.db import allocations, server_migrations, services
from computeapi.db import servers as rows
from computeapi.db.server_migrations import Migration
from computeapi.db.servers import Server
from computeapi.db.tasks import Task
from computeapi.errors import Conflict, Invalid
from computeapi.states import MigrationStatus

# ------------------------------------------------------------------ requests


def check_host(platform: Platform, host: str) -> None:
    """Invalid for a compute host that does not exist."""
    with platform.store.read() as connection:
        if services.of_compute_host(connection, host) is None:
            raise Invalid(f'Compute host {host} could not be found.')


def check_other_host(platform: Platform, server: Server, host: str | None) -> None:
    """Invalid for one that does not exist, or that the server is on."""
    if host is not None:
        check_host(platform, host)
        if host == server.host:
            raise Invalid('Cannot migrate to the host where the server exists.')


def check_down(platform: Platform, server: Server) -> None:
    """Invalid while the server's host is up."""
    if is_host_up(platform, server.host):
        raise Invalid(f'Compute service of {server.host} is still in use.')


def check_up(platform: Platform, server: Server) -> None:
    """Invalid while the server's host is down, and can hand over nothing; HostsUnheard."""
    if not is_host_up(platform, server.host):
        platform.scheduler.hearing.check()
        raise Invalid(f'Compute service of {server.host} is unavailable at this time.')


def check_reachable(platform: Platform, server: Server, host: str | None) -> None:
    """Conflict for a server on no host, or one whose host is down; who has it need not know which that is."""
    if host is None:
        raise not_ready(server)
    if not is_host_up(platform, host):
        raise Conflict('Service is unavailable at this time.')


# ------------------------------------------------------------------ work


def migration_of(job: Job) -> Migration:
    """The move that the task is about, as it is now."""
    migration = job.store.ask(server_migrations.get, job.arguments['migration_id'])
    if migration is None:
        raise Superseded()
    return migration


def mark(job: Job, connection: sa.Connection, migration: Migration, status: MigrationStatus) -> None:
    """Write down how far the move is."""
    server_migrations.change(connection, migration.id, {'status': status, 'updated_at': job.clock()})


def spec_elsewhere(job: Job) -> Spec:
    """What the server asks of another host: the one that the request names, if it does."""
    host, forced = job.arguments.get('host'), bool(job.arguments.get('force'))
    return elsewhere(job.server, host, forced=forced, on_volume=job.on_volume)


def elsewhere(server: Server, host: str | None, *, forced: bool, on_volume: bool) -> Spec:
    ignored = frozenset({server.host})
    return Spec.of(server, on_volume=on_volume, host=host, forced=forced, ignored_hosts=ignored)


def find_host(job: Job, migration: Migration, spec: Spec) -> Migration:
    """Claim an allocation on another host, and there what the server's ports ask for, unless that is done; the
    migration as it is then. NoValidHost."""
    refusing: set[str] = set()
    while True:
        if migration.dest_host is None:
            migration = claim(job, migration, replace(spec, ignored_hosts=spec.ignored_hosts | refusing))
        host = migration.dest_host or ''
        if host == job.server.host or bandwidth.is_told(job.platform, job.server, host):
            return migration
        refusing.add(host)
        migration = give_back(job, migration, host)


def claim(job: Job, migration: Migration, spec: Spec) -> Migration:
    """Find a host and claim an allocation there; the migration with it."""
    found: dict[str, Any] = {}

    def keep(connection: sa.Connection, host: HostState) -> None:
        # The server may have been deleted meanwhile, and nobody would give back what is claimed now.
        job.write(connection)
        found.update(destination(host), updated_at=job.clock())
        server_migrations.change(connection, migration.id, found)

    asking = bandwidth.asked_by(job.platform, job.elevated, job.server)
    bandwidth.allocate(job.platform, job.server, spec, keep, asking)
    return migration._replace(**found)


def give_back(job: Job, migration: Migration, host: str) -> Migration:
    """Placement did not take the claim on that host; the migration without it."""
    nowhere: dict[str, Any] = dict.fromkeys(('dest_host', 'dest_node', 'dest_ip'))
    with job.store.write() as connection:
        allocations.leave(connection, job.server.uuid, [host])
        job.write(connection)
        server_migrations.change(connection, migration.id, {**nowhere, 'updated_at': job.clock()})
    return migration._replace(**nowhere)


def destination(host: HostState) -> dict[str, Any]:
    """The columns of a move that say where it goes."""
    return {'dest_host': host.name, 'dest_node': host.node, 'dest_ip': host.host_ip}


def end(job: Job, status: MigrationStatus) -> Migration:
    """The move came to nothing: the server has its host, and no other."""
    migration = migration_of(job)
    with job.store.write() as connection:
        mark(job, connection, migration, status)
    placement.leave_others(job.platform, job.server)
    return migration


def undo(platform: Platform, task: Task, server: Server | None) -> None:
    """Nobody goes on with the move. Deleting a server settles everything by itself."""
    migration = platform.store.ask(server_migrations.get, task.arguments['migration_id'])
    if server is None or migration is None:
        return
    context = thawed(task.context).elevated()
    placement.leave_others(platform, server)
    placement.bind(platform, context, server, server.host)
    disks.stay(platform, context, server)
    disks.reconnect(platform, context, server, server.host)
    if migration.status not in server_migrations.OVER:
        with platform.store.write() as connection:
            values = {'status': MigrationStatus.ERROR, 'updated_at': platform.clock()}
            server_migrations.change(connection, migration.id, values)


def follow(platform: Platform, server: Server, migration: Migration) -> None:
    """Write down where the machine is, which is so whatever becomes of the server."""
    where = placement.on(platform, migration.dest_host, migration.dest_node)
    platform.store.tell(rows.update, server.uuid, where | {'updated_at': platform.clock()})
    for name, value in where.items():
        setattr(server, name, value)
