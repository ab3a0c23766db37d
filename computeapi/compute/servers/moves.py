"""The common parts of all migrations of a server: the migration's row, checks of the host, and the way back."""

from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from computeapi.compute.hosts import is_host_up
from computeapi.compute.platform import Platform
from computeapi.compute.scheduler import HostState, Spec
from computeapi.compute.servers import disks, placement, provider_resources
from computeapi.compute.servers.changes import not_ready
from computeapi.compute.tasks.fence import Superseded
from computeapi.compute.tasks.job import Job
from computeapi.compute.tasks.queue import thawed
from computeapi.db import allocations, server_migrations, servers, services
from computeapi.db.server_migrations import Migration
from computeapi.db.servers import Server
from computeapi.db.tasks import Task
from computeapi.errors import Conflict, Invalid
from computeapi.states import MigrationStatus

# The columns that count against quotas.
SIZES = ('vcpus', 'memory_mb')


def sizes(server: Server) -> dict[str, int]:
    """The sizes that count for a server that is not being resized."""
    return {name: server.flavor[name] for name in SIZES}


# ------------------------------------------------------------------ requests


def check_host(platform: Platform, host: str) -> None:
    """Invalid for a compute host that does not exist."""
    if platform.store.query(services.of_compute_host, host) is None:
        raise Invalid(f'Compute host {host} could not be found.')


def check_other_host(platform: Platform, server: Server, host: str | None) -> None:
    """Invalid for a host that does not exist, or that the server is on."""
    if host is not None:
        check_host(platform, host)
        if host == server.host:
            raise Invalid('Cannot migrate to the host where the server exists.')


def check_down(platform: Platform, server: Server) -> None:
    """Invalid while the server's host is up."""
    if is_host_up(platform, server.host):
        raise Invalid(f'Compute service of {server.host} is still in use.')


def check_up(platform: Platform, server: Server) -> None:
    """Invalid while the server's host is down, because it cannot hand over anything; AgentsSilent."""
    if not is_host_up(platform, server.host):
        platform.scheduler.agent_silence.check()
        raise Invalid(f'Compute service of {server.host} is unavailable at this time.')


def check_reachable(platform: Platform, server: Server, host: str | None) -> None:
    """Conflict for a server on no host, or on one that is down; owners need not know which host it is."""
    if host is None:
        raise not_ready(server)
    if not is_host_up(platform, host):
        raise Conflict('Service is unavailable at this time.')


# ------------------------------------------------------------------ work


def migration_of(job: Job) -> Migration:
    """The migration of the task, as it is now."""
    migration = job.store.query(server_migrations.get, job.arguments['migration_id'])
    if migration is None:
        raise Superseded()
    return migration


def yield_to_evacuation(job: Job, migration_id: int = 0) -> None:
    """Superseded if the server is being evacuated by a later migration, which starts with the same task_state."""
    later = job.store.query(server_migrations.evacuation_of, job.server.uuid)
    if later is not None and later.id > migration_id:
        raise Superseded()


def mark(job: Job, connection: sa.Connection, migration: Migration, status: MigrationStatus) -> None:
    """Record the status of the migration."""
    server_migrations.change(connection, migration.id, {'status': status, 'updated_at': job.clock()})


def spec_elsewhere(job: Job) -> Spec:
    """The requirements of the server for another host: the one that the request names, if any."""
    host, forced = job.arguments.get('host'), bool(job.arguments.get('force'))
    return elsewhere(job.server, host, forced=forced, on_volume=job.on_volume)


def elsewhere(server: Server, host: str | None, *, forced: bool, on_volume: bool) -> Spec:
    ignored = frozenset({server.host})
    return Spec.of(server, on_volume=on_volume, host=host, forced=forced, ignored_hosts=ignored)


def find_host(job: Job, migration: Migration, spec: Spec) -> Migration:
    """Claim an allocation on another host, and the resources of the server's ports there, unless that is done; returns
    the updated migration. NoValidHost."""
    refusing: set[str] = set()
    while True:
        if migration.dest_host is None:
            migration = claim(job, migration, replace(spec, ignored_hosts=spec.ignored_hosts | refusing))
        host = migration.dest_host or ''
        if host == job.server.host or provider_resources.is_accepted(job.platform, job.server, host):
            return migration
        refusing.add(host)
        migration = give_back(job, migration, host)


def claim(job: Job, migration: Migration, spec: Spec) -> Migration:
    """Find a host and claim an allocation there; returns the updated migration."""
    found: dict[str, Any] = {}

    def record(connection: sa.Connection, host: HostState) -> None:
        # If the server was deleted meanwhile, nobody would release what is claimed now.
        job.write(connection)
        found.update(destination(host), updated_at=job.clock())
        server_migrations.change(connection, migration.id, found)

    requesting = provider_resources.requesting_ports(job.platform, job.elevated, job.server)
    provider_resources.allocate(job.platform, job.server, spec, record, requesting)
    return migration._replace(**found)


def give_back(job: Job, migration: Migration, host: str) -> Migration:
    """Release the claim on that host, because Placement refused it; returns the updated migration."""
    nowhere: dict[str, Any] = dict.fromkeys(('dest_host', 'dest_node', 'dest_ip'))
    with job.store.write() as connection:
        allocations.leave(connection, job.server.uuid, [host])
        job.write(connection)
        server_migrations.change(connection, migration.id, {**nowhere, 'updated_at': job.clock()})
    return migration._replace(**nowhere)


def destination(host: HostState) -> dict[str, Any]:
    """The columns of a migration for its destination."""
    return {'dest_host': host.name, 'dest_node': host.node, 'dest_ip': host.host_ip}


def end(job: Job, status: MigrationStatus) -> Migration:
    """Handle a failed migration: the server keeps its host, and holds no other."""
    migration = migration_of(job)
    with job.store.write() as connection:
        mark(job, connection, migration, status)
    placement.leave_others(job.platform, job.server)
    return migration


def undo(platform: Platform, task: Task, server: Server | None) -> None:
    """Undo a migration that will not be continued. The deletion of a server cleans up everything by itself."""
    migration = platform.store.query(server_migrations.get, task.arguments['migration_id'])
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
    """Record the location of the machine, which is true whatever happens to the server."""
    where = placement.on(platform, migration.dest_host, migration.dest_node)
    platform.store.change(servers.update, server.uuid, where | {'updated_at': platform.clock()})
    for name, value in where.items():
        setattr(server, name, value)
