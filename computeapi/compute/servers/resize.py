"""Resize and cold migration, with confirm and revert.

A server that moves has allocations on both hosts until the migration is confirmed or reverted: the one on the new host
is claimed before anything moves, the one on the old host is released last. A migration that fails leaves the server on
the host of its machine, and nothing elsewhere.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from computeapi.backends.hypervisor import PowerState
from computeapi.compute.flavors import FlavorManager
from computeapi.compute.quotas import Quotas
from computeapi.compute.scheduler import Spec
from computeapi.compute.scheduler.spec import needs_of
from computeapi.compute.servers import disks, moves, placement, plugging
from computeapi.compute.servers.changes import Changes, check, locked
from computeapi.compute.servers.creation import boot
from computeapi.compute.tasks.fence import Superseded
from computeapi.compute.tasks.job import Job
from computeapi.compute.tasks.transition import Transition
from computeapi.context import Context
from computeapi.db import allocations, flavors, server_migrations
from computeapi.db.flavors import Flavor
from computeapi.db.server_migrations import Migration
from computeapi.db.servers import Server
from computeapi.errors import Conflict, FlavorNotFound, Invalid
from computeapi.states import RESIZE_STEPS, MigrationStatus, MigrationType, TaskState, VMState


def fail(job: Job, error: Exception) -> None:
    """If no host was found, the server keeps its state; else it is in ERROR. Its usage is that of its flavor again."""
    migration = moves.end(job, MigrationStatus.ERROR)
    moved = migration.dest_host is not None
    if moved:
        disks.restore_connections(job.platform, job.elevated, job.server)
    values: dict[str, Any] = {'vm_state': VMState.ERROR} if moved else {}
    job.fail(error, power_state=job.power(), **values, **moves.sizes(job.server))


AWAY: dict[str, Any] = {
    'during': TaskState.RESIZE_PREP,
    'steps': RESIZE_STEPS,
    'allowed': {VMState.ACTIVE, VMState.STOPPED},
    'shares': False,
    'failed': fail,
    'undo': moves.undo,
}
RESIZE = Transition('resize', **AWAY)
MIGRATE = Transition('migrate', **AWAY)
CONFIRM = Transition('confirmResize', allowed={VMState.RESIZED}, failed=fail, undo=moves.undo)
AUTO_CONFIRM = Transition('auto_confirm', failed=fail)
REVERT = Transition(
    'revertResize',
    during=TaskState.RESIZE_REVERTING,
    allowed={VMState.RESIZED},
    failed=fail,
    undo=moves.undo,
)


class Resizes:
    """Errors: those of Changes; OverQuota; Invalid for an unusable flavor or host."""

    def __init__(self, changes: Changes, quotas: Quotas, flavors: FlavorManager):
        self.changes, self.quotas, self.flavors, self.platform = changes, quotas, flavors, changes.platform

    def resize(self, context: Context, server: Server, flavor_id: str, disk_config: str | None = None) -> None:
        """Resize to another flavor, on a host with room for it."""
        check(context, server, RESIZE)
        moves.check_reachable(self.platform, server, server.host)
        boot.check_disk_config(server.image_properties, server.image_id, disk_config)
        try:
            flavor = self.flavors.get(context, flavor_id)
        except FlavorNotFound as error:
            raise Invalid(str(error)) from None
        if flavor.disabled or flavor.flavorid == server.flavor['flavorid']:
            raise Invalid('When resizing, instances must change flavor!')
        self._check_flavor(server, flavor)
        new = flavors.snapshot(flavor)
        self._begin(context, server, RESIZE, MigrationType.RESIZE, new, disk_config=disk_config)

    def _check_flavor(self, server: Server, flavor: Flavor) -> None:
        """Invalid for a flavor that is too small for what the server was created from."""
        on_volume = disks.is_root_on_volume(self.platform, server)
        if not on_volume and flavor.root_gb == 0 and server.root_gb != 0:
            raise Invalid('Server disk was unable to be resized because: Resize to zero disk flavor is not allowed.')
        boot.check_new_flavor(server.image_properties, flavor, on_volume=on_volume)

    def migrate(self, context: Context, server: Server, host: str | None) -> None:
        """Migrate to another host, the named one if any."""
        check(context, server, MIGRATE)
        moves.check_reachable(self.platform, server, server.host)
        moves.check_other_host(self.platform, server, host)
        self._begin(context, server, MIGRATE, MigrationType.MIGRATION, server.flavor, host=host)

    def _begin(
        self,
        context: Context,
        server: Server,
        transition: Transition,
        kind: MigrationType,
        new: Mapping[str, Any],
        *,
        host: str | None = None,
        disk_config: str | None = None,
    ) -> None:
        """disk_config: AUTO has to be requested each time, as in Nova."""
        with self.changes.tasks.adding() as connection:
            server = locked(connection, context, server, transition)
            held = self._hold(connection, server, new)
            status = MigrationStatus.PRE_MIGRATING
            now = self.changes.clock()
            migration_id = server_migrations.insert(connection, context, server, kind, status, now, new)
            arguments = {'migration_id': migration_id, 'host': host}
            values = {**held, 'disk_config': disk_config or boot.MANUAL}
            self.changes.begin_in(connection, context, server, transition, arguments, **values)

    def _hold(self, connection: sa.Connection, server: Server, flavor: Mapping[str, Any]) -> dict[str, int]:
        """During a resize, a server counts with the larger of both sizes; returns these columns. OverQuota."""
        current = {name: getattr(server, name) for name in moves.SIZES}
        more = {name: max(0, flavor[name] - size) for name, size in current.items()}
        if any(more.values()):
            cores, ram = (more[name] for name in moves.SIZES)
            self.quotas.reserve(connection, server.project_id, server.user_id, cores=cores, ram=ram)
        return {name: size + more[name] for name, size in current.items()}

    def confirm(self, context: Context, server: Server) -> None:
        """Keep the server as it is now."""
        check(context, server, CONFIRM)
        migration = self.changes.store.query(self._finished, server)
        moves.check_reachable(self.platform, server, migration.source_host)
        with self.changes.tasks.adding() as connection:
            server = locked(connection, context, server, CONFIRM)
            self._mark(connection, migration, MigrationStatus.CONFIRMING)
            self.changes.begin_in(connection, context, server, CONFIRM, {'migration_id': migration.id})

    def revert(self, context: Context, server: Server) -> None:
        """Return the server to what it was, if there is still quota for that."""
        check(context, server, REVERT)
        with self.changes.tasks.adding() as connection:
            server = locked(connection, context, server, REVERT)
            migration = self._finished(connection, server)
            held = self._hold(connection, server, migration.old_flavor or server.flavor)
            self._mark(connection, migration, MigrationStatus.REVERTING)
            self.changes.begin_in(connection, context, server, REVERT, {'migration_id': migration.id}, **held)

    def _finished(self, connection: sa.Connection, server: Server) -> Migration:
        migration = server_migrations.latest(connection, server.uuid, (MigrationStatus.FINISHED,))
        if migration is None:
            raise Invalid('Instance has not been resized.')
        return migration

    def _mark(self, connection: sa.Connection, migration: Migration, status: MigrationStatus) -> None:
        values = {'status': status, 'updated_at': self.changes.clock()}
        if not server_migrations.change(connection, migration.id, values, (migration.status,)):
            raise Conflict(f'The migration of instance {migration.server_id} is being confirmed or reverted.')


# ------------------------------------------------------------------ work


@RESIZE.work
@MIGRATE.work
def resize(job: Job) -> None:
    """Move to the flavor of the migration, on another host; the server then waits to be confirmed or reverted."""
    migration = moves.migration_of(job)
    if migration.dest_host is None:
        here = job.platform.conf.host
        with job.event('conductor_migrate_server', here), job.event('cold_migrate', here):
            migration = prepare(job, migration)
    with job.event('compute_prep_resize', migration.dest_host):
        if job.server.task_state == TaskState.RESIZE_PREP and migration.dest_host != job.server.host:
            placement.clear(job, migration.dest_host)
        step(job, migration, TaskState.RESIZE_PREP, TaskState.RESIZE_MIGRATING, MigrationStatus.MIGRATING)
    with job.event('compute_resize_instance'):
        if job.server.task_state == TaskState.RESIZE_MIGRATING:
            host = migration.dest_host or ''
            facts = job.driver.prepare_migration(job.server, host, job.driver.describe(job.server))
            job.driver.migrate(job.server, host, facts)
            disks.disconnect(job.platform, job.elevated, job.server)
        step(job, migration, TaskState.RESIZE_MIGRATING, TaskState.RESIZE_MIGRATED, MigrationStatus.POST_MIGRATING)
    with job.event('compute_finish_resize', migration.dest_host):
        arrive(job, migration)
    wait(job, migration)


def prepare(job: Job, migration: Migration) -> Migration:
    """Find a host, claim an allocation there, and record it."""
    flavor = migration.new_flavor or job.server.flavor
    needs = needs_of(flavor, on_volume=job.on_volume)
    same_host = job.platform.conf.allow_resize_to_same_host and migration.migration_type == MigrationType.RESIZE
    spec = Spec.of(
        job.server,
        on_volume=job.on_volume,
        **needs,
        host=job.arguments.get('host'),
        extra_specs=flavor.get('extra_specs') or {},
        flavor_id=flavor['flavorid'],
        flavor_name=flavor['name'],
        ignored_hosts=frozenset() if same_host else frozenset({job.server.host}),
    )
    return moves.find_host(job, migration, spec)


def step(job: Job, migration: Migration, before: TaskState, after: TaskState, status: MigrationStatus) -> None:
    """Go from one task_state to the next, once."""
    if job.server.task_state == before:
        with job.store.write() as connection:
            job.write(connection, task_state=after)
            moves.mark(job, connection, migration, status)


def arrive(job: Job, migration: Migration) -> None:
    """The server is on its new host, with its new flavor."""
    flavor = migration.new_flavor or job.server.flavor
    if job.server.task_state == TaskState.RESIZE_MIGRATED:
        where = placement.on(job.platform, migration.dest_host, migration.dest_node)
        local_disks = {name: flavor[name] for name in ('root_gb', 'ephemeral_gb')}
        job.save(task_state=TaskState.RESIZE_FINISH, flavor=flavor, **where, **local_disks)
    placement.connect(job)
    disks.connect(job.platform, job.elevated, job.server, job.server.host)
    if migration.old_vm_state == VMState.ACTIVE:
        job.driver.power_on(job.server)
        plugging.wait(job)


def wait(job: Job, migration: Migration) -> None:
    """Wait for the owner to confirm or revert, with a time limit if one is configured."""
    now, window = job.clock(), job.platform.conf.resize_confirm_window
    with job.store.write() as connection:
        moves.mark(job, connection, migration, MigrationStatus.FINISHED)
        if window:
            due = now + timedelta(seconds=window)
            wanted = {'migration_id': migration.id}
            job.platform.tasks.add(connection, AUTO_CONFIRM, job.server.uuid, job.context, wanted, not_before=due)
        running = migration.old_vm_state == VMState.ACTIVE
        job.conclude(
            connection,
            vm_state=VMState.RESIZED,
            power_state=PowerState.RUNNING if running else PowerState.SHUTDOWN,
            launched_at=now,
            **moves.sizes(job.server),
        )


@AUTO_CONFIRM.work
def auto_confirm(job: Job) -> None:
    """Confirm after the time limit, unless the migration is settled or another one is waiting."""
    migration = moves.migration_of(job)
    confirming = {'status': MigrationStatus.CONFIRMING, 'updated_at': job.clock()}
    waiting = job.store.change(server_migrations.change, migration.id, confirming, server_migrations.MOVED)
    if not waiting:
        raise Superseded()
    confirm(job)


@CONFIRM.work
def confirm(job: Job) -> None:
    """Release the allocation on the old host."""
    migration, server = moves.migration_of(job), job.server
    if server.vm_state != VMState.RESIZED:
        raise Superseded()
    with job.event('compute_confirm_resize', migration.source_host):
        placement.leave_others(job.platform, server)
    running = server.power_state == PowerState.RUNNING
    with job.store.write() as connection:
        job.platform.tasks.cancel(connection, server.uuid)
        moves.mark(job, connection, migration, MigrationStatus.CONFIRMED)
        job.conclude(connection, vm_state=VMState.ACTIVE if running else VMState.STOPPED)


@REVERT.work
def revert(job: Job) -> None:
    """Return to the old host and the old flavor."""
    migration = moves.migration_of(job)
    running = migration.old_vm_state == VMState.ACTIVE
    with job.event('compute_revert_resize'):
        return_home(job, migration)
        leave_new_host(job)
    with job.event('compute_finish_revert_resize', migration.source_host):
        placement.connect(job)
        disks.connect(job.platform, job.elevated, job.server, job.server.host)
        if running:
            job.driver.power_on(job.server)
            plugging.wait(job)
    with job.store.write() as connection:
        job.platform.tasks.cancel(connection, job.server.uuid)
        moves.mark(job, connection, migration, MigrationStatus.REVERTED)
        job.conclude(
            connection,
            vm_state=migration.old_vm_state,
            power_state=PowerState.RUNNING if running else PowerState.SHUTDOWN,
        )


def return_home(job: Job, migration: Migration) -> None:
    """Restore the location and the size; from here on, the server is as before the resize. The new machine is removed
    afterwards, because the clean-up after a failure or a reset removes the machine on any other host."""
    where = placement.on(job.platform, migration.source_host, migration.source_node)
    flavor = migration.old_flavor or job.server.flavor
    counts = {name: flavor[name] for name in (*moves.SIZES, 'root_gb', 'ephemeral_gb')}
    with job.store.write() as connection:
        job.write(connection, flavor=flavor, **where, **counts)


def leave_new_host(job: Job) -> None:
    """Remove the new machine, and release its allocation once the volumes are disconnected from its host."""
    server = job.server
    if job.store.query(allocations.hosts_of, server.uuid) - {server.host}:
        placement.remove_machines(job.platform, server, keep=server.host)
        disks.disconnect(job.platform, job.elevated, server)
    with job.store.write() as connection:
        allocations.release(connection, server.uuid, keep=server.host)
        placement.shrink(connection, server)
