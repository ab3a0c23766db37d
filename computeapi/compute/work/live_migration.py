"""Live migration and evacuation: to another host with the same flavor, and nobody is asked afterwards."""

from __future__ import annotations

import logging
from typing import Any

from computeapi.backends.hypervisor import HypervisorError
from computeapi.compute import states
from computeapi.compute.scheduler import Spec
from computeapi.compute.work import moves, places
from computeapi.compute.work.job import Job, unchanged, work
from computeapi.compute.work.moves import migration_of
from computeapi.db import allocations, server_migrations
from computeapi.db.server_migrations import Migration

LOG = logging.getLogger(__name__)
REBUILDING = ('rebuilding', 'rebuild_block_device_mapping', 'rebuild_spawning')


def remain(job: Job, error: Exception) -> None:
    """The server goes on where it is; the place on the other host is given back."""
    found = migration_of(job).dest_host is not None
    moves.end(job, 'failed' if found else 'error')
    unchanged(job, error)


@work('live_migrate', 'migrating', failed=remain, undo=moves.undo)
def live_migrate(job: Job) -> None:
    """To another host while it runs. Whatever goes wrong before the switch leaves the server where it is."""
    migration = migration_of(job)
    with job.event('conductor_live_migrate_instance'):
        migration = prepare(job, migration)
    arrived = job.server.host == migration.dest_host or moves.has_moved(job.cloud, job.server, migration)
    if not arrived and not copy(job, migration):
        moves.end(job, 'cancelled')
        job.finish()
        return
    with job.event('compute_post_live_migration_at_destination', migration.dest_host):
        if job.server.host != migration.dest_host:
            moves.follow(job.cloud, job.server, migration)
        places.connect(job)
        places.leave_others(job.cloud, job.server)
    with job.store.write() as connection:
        server_migrations.change(connection, migration.id, {'status': 'completed', 'updated_at': job.clock()})
        job.conclude(connection)


def prepare(job: Job, migration: Migration) -> Migration:
    spec = Spec.of(
        job.server,
        on_volume=job.on_volume,
        host=job.arguments.get('host'),
        forced=bool(job.arguments.get('force')),
        ignored_hosts=frozenset({job.server.host}),
    )
    return moves.find_place(job, migration, spec)


def copy(job: Job, migration: Migration) -> bool:
    """Let the driver move the server while others may abort it or make it hurry; whether it moved."""
    host = migration.dest_host or ''
    with (
        job.event('compute_check_can_live_migrate_destination', host),
        job.event('compute_check_can_live_migrate_source'),
    ):
        job.driver.check_live_migration(job.server, host)
    with job.event('compute_pre_live_migration', host):
        advance(job, migration, 'preparing', ('accepted', 'queued'))
    with job.event('compute_live_migration'):
        advance(job, migration, 'running', ('preparing',), progress=progress_of(job, 0))
        if migration_of(job).status not in ('running', 'forcing'):
            return False
        return job.driver.live_migrate(job.server, host, lambda: migration_of(job).status)


def advance(job: Job, migration: Migration, status: str, before: tuple[str, ...], **values: Any) -> None:
    """On to the next status, unless somebody aborted the migration, or it is further already."""
    values |= {'status': status, 'updated_at': job.clock()}
    with job.store.write() as connection:
        server_migrations.change(connection, migration.id, values, before)


def progress_of(job: Job, done: int) -> dict[str, int]:
    """What clients read of a running live migration, in bytes; *done* of the server's memory is copied."""
    memory = job.server.memory_mb * 2**20
    disk = job.server.root_gb * 2**30
    return {
        'memory_total_bytes': memory,
        'memory_processed_bytes': done,
        'memory_remaining_bytes': memory - done,
        'disk_total_bytes': disk,
        'disk_processed_bytes': 0,
        'disk_remaining_bytes': disk,
    }


def strand(job: Job, error: Exception) -> None:
    """The server is in ERROR on the host that is down, from where it can be evacuated again."""
    found = migration_of(job).dest_host is not None
    moves.end(job, 'failed' if found else 'error')
    places.bind(job.cloud, job.elevated, job.server, job.server.host)
    job.fail(error, vm_state=states.ERROR, power_state=job.power())


@work('evacuate', *REBUILDING, failed=strand, undo=moves.undo)
def evacuate(job: Job) -> None:
    """Boot the server of a host that is down on another one."""
    migration = migration_of(job)
    runs = bool(job.arguments.get('start')) and migration.old_vm_state != states.STOPPED
    with job.event('conductor_rebuild_instance'):
        migration = prepare(job, migration)
    with job.event('compute_rebuild_instance', migration.dest_host):
        if job.server.host != migration.dest_host:
            boot(job, migration, runs)
        places.connect(job)
        abandon(job, migration)
    with job.store.write() as connection:
        allocations.release(connection, job.server.uuid, keep=job.server.host)
        server_migrations.change(connection, migration.id, {'status': 'done', 'updated_at': job.clock()})
        job.conclude(
            connection,
            vm_state=states.ACTIVE if runs else states.STOPPED,
            power_state=states.RUNNING if runs else states.SHUTDOWN,
            launched_at=job.clock(),
            fault=None,
        )


def boot(job: Job, migration: Migration, runs: bool) -> None:
    """Make the machine on the new host; only then the server is there."""
    if job.server.task_state != 'rebuild_spawning':
        job.save(task_state='rebuild_spawning')
    there = places.at(job.server, migration.dest_host)
    job.driver.spawn(there, job.devices())
    if not runs:
        job.driver.power_off(there)
    job.save(**places.on(job.cloud, migration.dest_host, migration.dest_node))


def abandon(job: Job, migration: Migration) -> None:
    """The machine on the old host goes, too, if somebody there can be told."""
    try:
        job.driver.destroy(places.at(job.server, migration.source_host))
    except HypervisorError:
        LOG.warning('Host %s still has the machine of %s', migration.source_host, job.server.uuid, exc_info=True)
