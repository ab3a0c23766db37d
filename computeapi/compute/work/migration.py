"""Resize and cold migration, with confirm and revert.

A server that moves holds its place on both hosts until it is settled: the claim on the new one is made
before anything is moved, the one on the old host is given back last. A move that fails leaves the server
on the host on which its machine is, and nothing elsewhere.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from computeapi.compute import states
from computeapi.compute.scheduler import Spec
from computeapi.compute.scheduler.spec import needs_of
from computeapi.compute.work import moves, places
from computeapi.compute.work.job import Job, Superseded, work
from computeapi.compute.work.moves import migration_of
from computeapi.db import allocations, server_migrations
from computeapi.db.server_migrations import Migration

STEPS = ('resize_prep', 'resize_migrating', 'resize_migrated', 'resize_finish')


def fail(job: Job, error: Exception) -> None:
    """Where no host was found the server remains as it was; else it is in ERROR. Either way it counts as it is."""
    migration = moves.end(job, 'error')
    moved = migration.dest_host is not None
    values: dict[str, Any] = {'vm_state': states.ERROR} if moved else {}
    job.fail(error, power_state=job.power(), **values, **sizes(job))


def sizes(job: Job) -> dict[str, int]:
    """What the server counts with when it is not on its way to another flavor."""
    return {name: job.server.flavor[name] for name in ('vcpus', 'memory_mb')}


@work('resize', *STEPS, failed=fail, undo=moves.undo)
def resize(job: Job) -> None:
    """To the flavor of the migration, on another host; the server then waits to be confirmed or reverted."""
    migration = migration_of(job)
    with job.event('compute_prep_resize'):
        migration = prepare(job, migration)
    with job.event('compute_resize_instance'):
        step(job, migration, 'resize_prep', 'resize_migrating', 'migrating')
        if job.server.task_state == 'resize_migrating':
            job.driver.migrate(job.server, migration.dest_host or '')
        step(job, migration, 'resize_migrating', 'resize_migrated', 'post-migrating')
    with job.event('compute_finish_resize', migration.dest_host):
        arrive(job, migration)
    wait(job, migration)


def prepare(job: Job, migration: Migration) -> Migration:
    """Find a host, claim the place, and write it down."""
    flavor = migration.new_flavor or job.server.flavor
    needs = needs_of(flavor, on_volume=job.on_volume)
    same_host = job.cloud.conf.allow_resize_to_same_host and migration.migration_type == 'resize'
    spec = Spec.of(
        job.server,
        on_volume=job.on_volume,
        **needs,
        host=job.arguments.get('host'),
        extra_specs=flavor.get('extra_specs') or {},
        flavor_name=flavor['name'],
        ignored_hosts=frozenset() if same_host else frozenset({job.server.host}),
    )
    return moves.find_place(job, migration, spec)


def step(job: Job, migration: Migration, before: str, after: str, status: str) -> None:
    """From one task_state to the next, once."""
    if job.server.task_state == before:
        with job.store.write() as connection:
            job.write(connection, task_state=after)
            server_migrations.change(connection, migration.id, {'status': status, 'updated_at': job.clock()})


def arrive(job: Job, migration: Migration) -> None:
    """The server is on its new host, with its new flavor."""
    flavor = migration.new_flavor or job.server.flavor
    if job.server.task_state == 'resize_migrated':
        where = places.on(job.cloud, migration.dest_host, migration.dest_node)
        disks = {name: flavor[name] for name in ('root_gb', 'ephemeral_gb')}
        job.save(task_state='resize_finish', flavor=flavor, **where, **disks)
    places.connect(job)
    if migration.old_vm_state == states.ACTIVE:
        job.driver.power_on(job.server)


def wait(job: Job, migration: Migration) -> None:
    """For the owner's word, but not for ever where that is so configured."""
    now, window = job.clock(), job.cloud.conf.resize_confirm_window
    with job.store.write() as connection:
        server_migrations.change(connection, migration.id, {'status': 'finished', 'updated_at': now})
        if window:
            due = now + timedelta(seconds=window)
            wanted = {'migration_id': migration.id}
            job.cloud.tasks.add(connection, 'auto_confirm', job.server.uuid, job.context, wanted, not_before=due)
        running = migration.old_vm_state == states.ACTIVE
        job.conclude(
            connection,
            vm_state=states.RESIZED,
            power_state=states.RUNNING if running else states.SHUTDOWN,
            launched_at=now,
        )


@work('auto_confirm', None, failed=fail)
def auto_confirm(job: Job) -> None:
    """Nobody said anything in time: confirm, unless the move is settled or another one is waiting."""
    migration = migration_of(job)
    confirming = {'status': 'confirming', 'updated_at': job.clock()}
    with job.store.write() as connection:
        waiting = server_migrations.change(connection, migration.id, confirming, server_migrations.MOVED)
    if not waiting:
        raise Superseded()
    confirm(job)


@work('confirm', None, failed=fail, undo=moves.undo)
def confirm(job: Job) -> None:
    """The old place is given up."""
    migration, server = migration_of(job), job.server
    if server.vm_state != states.RESIZED:
        raise Superseded()
    with job.event('compute_confirm_resize', migration.source_host):
        places.leave_others(job.cloud, server)
    running = server.power_state == states.RUNNING
    with job.store.write() as connection:
        job.cloud.tasks.cancel(connection, server.uuid)
        server_migrations.change(connection, migration.id, {'status': 'confirmed', 'updated_at': job.clock()})
        job.conclude(connection, vm_state=states.ACTIVE if running else states.STOPPED, **sizes(job))


@work('revert', 'resize_reverting', failed=fail, undo=moves.undo)
def revert(job: Job) -> None:
    """Back to the old host and the old flavor."""
    migration = migration_of(job)
    running = migration.old_vm_state == states.ACTIVE
    with job.event('compute_revert_resize'):
        if job.server.host != migration.source_host:
            job.driver.destroy(job.server)
        return_home(job, migration)
    with job.event('compute_finish_revert_resize', migration.source_host):
        places.connect(job)
        if running:
            job.driver.power_on(job.server)
    with job.store.write() as connection:
        job.cloud.tasks.cancel(connection, job.server.uuid)
        server_migrations.change(connection, migration.id, {'status': 'reverted', 'updated_at': job.clock()})
        job.conclude(
            connection,
            vm_state=migration.old_vm_state,
            power_state=states.RUNNING if running else states.SHUTDOWN,
        )


def return_home(job: Job, migration: Migration) -> None:
    """From here on the server is what and where it was before it was resized."""
    where = places.on(job.cloud, migration.source_host, migration.source_node)
    flavor = migration.old_flavor or job.server.flavor
    counts = {name: flavor[name] for name in ('vcpus', 'memory_mb', 'root_gb', 'ephemeral_gb')}
    with job.store.write() as connection:
        job.write(connection, flavor=flavor, **where, **counts)
        allocations.release(connection, job.server.uuid, keep=migration.source_host)
        places.shrink(connection, job.server)
