"""Live migration: moves a running server to another host, without a confirmation afterwards."""

import contextlib
from typing import Any, NamedTuple

import sqlalchemy as sa

from computeapi.backends.hypervisor import Capability, Hypervisor, HypervisorError, NotYet, PowerState
from computeapi.compute.hosts import is_host_up
from computeapi.compute.platform import Platform
from computeapi.compute.scheduler import HostState, NoValidHost
from computeapi.compute.servers import disks, moves, placement, plugging, ports, provider_resources
from computeapi.compute.servers.changes import Changes, locked
from computeapi.compute.tasks.fence import Superseded
from computeapi.compute.tasks.job import Job, fault_of, unchanged
from computeapi.compute.tasks.queue import thawed
from computeapi.compute.tasks.transition import Requirement, Transition, beside
from computeapi.context import Context
from computeapi.db import allocations, server_migrations, servers
from computeapi.db.server_migrations import Migration
from computeapi.db.servers import Server
from computeapi.db.tasks import Task
from computeapi.errors import Invalid, MigrationNotFound, NotSupported
from computeapi.states import GOING, MigrationStatus, MigrationType, TaskState, VMState

DECISION = 'conductor_live_migrate_instance'
ROLLBACK = 'compute_rollback_live_migration'
# The statuses of a live migration that is not over: it waits for a worker, for the checks of the hosts, and for the
# destination to be ready; then the server is copied.
RUNNING = (MigrationStatus.RUNNING,)
WAITING = (MigrationStatus.ACCEPTED, MigrationStatus.QUEUED, MigrationStatus.PREPARING)
# The power states of a machine that is on its host for good.
RUNS = (PowerState.RUNNING, PowerState.PAUSED)
# The server does without its machine: it is being deleted, evacuated or rebuilt.
WITHOUT_MACHINE = GOING | {TaskState.REBUILDING}
UNDER_WAY = (*WAITING, *RUNNING, MigrationStatus.CANCELLING, MigrationStatus.FORCING)


def remain(job: Job, error: Exception) -> None:
    """Leave the server on its host and release the allocation on the other one. But if it already runs on the other
    host only, it stays there, whatever error occurred in reporting that."""
    migration = moves.migration_of(job)
    found = migration.dest_host is not None
    if found and job.server.host == migration.dest_host or is_found_there(job.platform, job.server, migration):
        return arrive(job, migration)
    if found:
        roll_back(job, migration)
    # Clients can distinguish that no host was ready (ERROR) from a failed transfer (FAILED).
    ready = found and migration.status != MigrationStatus.PREPARING
    moves.end(job, MigrationStatus.FAILED if ready else MigrationStatus.ERROR)
    unchanged(job, error)


def settle(platform: Platform, task: Task, server: Server | None) -> None:
    """Settle a migration that will not be continued: the server is where its machine is."""
    migration = platform.store.query(server_migrations.get, task.arguments['migration_id'])
    if server is not None and migration is not None and is_found_there(platform, server, migration):
        moves.follow(platform, server, migration)
        ready = task.arguments.get(disks.READY_THERE, {})
        disks.follow(platform, thawed(task.context).elevated(), server, ready)
    moves.undo(platform, task, server)


LIVE_MIGRATE = Transition(
    MigrationType.LIVE,
    api_name='os-migrateLive',
    during=TaskState.MIGRATING,
    allowed={VMState.ACTIVE, VMState.PAUSED},
    capability=Capability.LIVE_MIGRATION,
    shares=False,
    failed=remain,
    undo=settle,
)


class MigrationOperation(NamedTuple):
    """An operation on a live migration in progress: its recorded action and event, its name in refusals, and when."""

    name: str
    event: str
    text: str
    requirement: Requirement


LEAVE_HOST = beside('leave_host')
CANCEL = MigrationOperation(
    'live_migration_cancel',
    'compute_live_migration_abort',
    'abort live migration',
    Requirement('abort live migration', while_doing={TaskState.MIGRATING}),
)
FORCE_COMPLETE = MigrationOperation(
    'live_migration_force_complete',
    'compute_live_migration_force_complete',
    'force complete',
    Requirement('force_complete', allowed={VMState.ACTIVE}, while_doing={TaskState.MIGRATING}),
)


class LiveMigrations:
    """Errors: those of Changes; Invalid for an unusable host, MigrationNotFound."""

    def __init__(self, changes: Changes):
        self.changes, self.platform = changes, changes.platform

    def live_migrate(
        self,
        context: Context,
        server: Server,
        host: str | None,
        *,
        force: bool = False,
        check_first: bool = False,
        copies: bool | None = None,
    ) -> None:
        """Migrate to another host while the server runs; force: skip the scheduler's checks of the host.

        copies: whether the disks are to be copied (True) or must be shared (False); None: as the hosts have them.
        check_first: Invalid if no host is suitable, or the server's own is down; else a worker finds out."""
        self.changes.check(context, server, LIVE_MIGRATE)
        if host is not None:
            moves.check_host(self.platform, host)
        if check_first:
            self._begin_checked(context, server, host, force, copies)
        else:
            with self.changes.store.write() as connection:
                self._begin_in(connection, context, server, host, force, copies)
        self.changes.tasks.wake()

    def _begin_in(
        self,
        connection: sa.Connection,
        context: Context,
        server: Server,
        host: str | None,
        force: bool,
        copies: bool | None,
    ) -> int:
        """Record that the server is to move; returns the ID of the migration."""
        server = locked(connection, context, server, LIVE_MIGRATE)
        accepted, now = MigrationStatus.ACCEPTED, self.changes.clock()
        migration_id = server_migrations.insert(connection, context, server, MigrationType.LIVE, accepted, now)
        arguments = {'migration_id': migration_id, 'host': host, 'force': force, 'copies': copies}
        self.changes.begin_in(connection, context, server, LIVE_MIGRATE, arguments)
        return migration_id

    def _begin_checked(
        self, context: Context, server: Server, host: str | None, force: bool, copies: bool | None
    ) -> None:
        """The same, in the transaction that claims an allocation on a host, after that host was checked."""
        on_volume = disks.is_root_on_volume(self.platform, server)
        spec = moves.elsewhere(server, host, forced=force, on_volume=on_volume)

        def check(found: HostState) -> None:
            self.platform.hypervisor.check_live_migration(server, found.name)
            check_storage(self.platform.hypervisor, server, found.name, copies)

        def record(connection: sa.Connection, found: HostState) -> None:
            migration_id = self._begin_in(connection, context, server, host, force, copies)
            server_migrations.change(connection, migration_id, moves.destination(found))

        try:
            moves.check_up(self.platform, server)
            if force and host == server.host:
                raise Invalid(f'Unable to migrate instance ({server.uuid}) to current host ({host}).')
            requesting = provider_resources.requesting_ports(self.platform, context, server)
            provider_resources.allocate(self.platform, server, spec, record, requesting, check)
        except (Invalid, NoValidHost, HypervisorError) as error:
            self._record_failure(context, server, error)
            before = 'Migration pre-check error: ' if isinstance(error, HypervisorError) else ''
            raise Invalid(f'{before}{error}') from error

    def _record_failure(self, context: Context, server: Server, error: Exception) -> None:
        """Record a failure before the answer in the same places as later failures."""
        now = self.changes.clock()
        with self.changes.store.write() as connection:
            server_migrations.insert(connection, context, server, MigrationType.LIVE, MigrationStatus.ERROR, now)
            facts = {'event': DECISION, 'host': self.changes.platform.conf.host, 'message': 'Error'}
            self.changes.record(connection, context, server, LIVE_MIGRATE.name, **facts)
            servers.update(connection, server.uuid, {'fault': fault_of(error, now), 'updated_at': now})

    def under_way(self, server: Server) -> list[Migration]:
        """The live migrations of the server that are not over."""
        return self.changes.store.query(server_migrations.live, server.uuid, UNDER_WAY)

    def find(self, server: Server, migration_id: int) -> Migration:
        """A migration of this server, whatever its status; MigrationNotFound."""
        migration = self.changes.store.query(server_migrations.get, migration_id)
        if migration is None or migration.server_id != server.uuid:
            raise MigrationNotFound(id=migration_id, server_id=server.uuid)
        return migration

    def abort(self, context: Context, server: Server, migration: Migration, *, even_waiting: bool) -> None:
        """Abort a live migration that is running or, with even_waiting, that still waits; then it ends at once."""
        if not (even_waiting and self._withdraw(context, server, migration)):
            self._steer(context, server, migration, CANCEL, MigrationStatus.CANCELLING)

    def force_complete(self, context: Context, server: Server, migration: Migration) -> None:
        """Force a running live migration to complete now, at the cost of a pause."""
        self._steer(context, server, migration, FORCE_COMPLETE, MigrationStatus.FORCING)

    def _withdraw(self, context: Context, server: Server, migration: Migration) -> bool:
        """Cancel a live migration that has at most prepared a host; returns whether it was still waiting."""
        values = {'status': MigrationStatus.CANCELLED, 'updated_at': self.changes.clock()}
        with self.changes.tasks.adding() as connection:
            allocations.lock_hosts(connection, server.uuid)
            if not server_migrations.change(connection, migration.id, values, WAITING):
                return False
            self.changes.withdraw(connection, context, server, LIVE_MIGRATE)
            allocations.release(connection, server.uuid, keep=server.host)
            if migration.dest_host is not None:
                leaving = {'host': migration.dest_host}
                self.changes.tasks.add(connection, LEAVE_HOST, server.uuid, context.elevated(), leaving)
            self.changes.record(connection, context, server, CANCEL.name, event=CANCEL.event, host=server.host)
        return True

    def _steer(
        self,
        context: Context,
        server: Server,
        migration: Migration,
        operation: MigrationOperation,
        status: MigrationStatus,
    ) -> None:
        values = {'status': status, 'updated_at': self.changes.clock()}
        with self.changes.tasks.adding() as connection:
            if not server_migrations.change(connection, migration.id, values, RUNNING):
                raise Invalid(
                    f'Migration {migration.id} state of instance {server.uuid} is {migration.status}. Cannot '
                    f'{operation.text} while the migration state is in this state.'
                )
            self.changes.record(connection, context, server, operation.name, event=operation.event, host=server.host)
            self.changes.tasks.hasten(connection, server.uuid)


# ------------------------------------------------------------------ work


@LIVE_MIGRATE.work
def live_migrate(job: Job) -> None:
    """Move to another host while running. Any error before the switch leaves the server where it is."""
    migration = moves.migration_of(job)
    with job.event(DECISION, job.platform.conf.host):
        if migration.dest_host is None:
            moves.check_up(job.platform, job.server)
        migration = moves.find_host(job, migration, moves.spec_elsewhere(job))
    arrived = job.server.host == migration.dest_host or has_arrived(job.platform, job.server, migration)
    if arrived or copy(job, migration):
        return arrive(job, migration)
    roll_back(job, migration)
    finish(job, migration, MigrationStatus.CANCELLED)


def has_arrived(platform: Platform, server: Server, migration: Migration) -> bool:
    """Whether the machine is on the destination and no longer on the source. If the source is down or has lost it:
    whether it runs on the destination, which it does not before the transfer is complete."""
    if migration.status in WAITING:
        # A machine that runs there now was not sent by this migration.
        return False
    there = platform.hypervisor.power_state(placement.at(server, migration.dest_host))
    if not is_host_up(platform, server.host):
        return there in RUNS
    here = platform.hypervisor.power_state(server)
    return (there is not None and here is None) or (there in RUNS and here == PowerState.SHUTDOWN)


def is_found_there(platform: Platform, server: Server, migration: Migration) -> bool:
    """The same when the migration is given up, as soon as one of the hosts is up: if the source no longer has the
    machine, it can only be on the destination. NotYet while both are down: a guess could destroy the only machine."""
    if migration.dest_host is None or migration.status in WAITING:
        return False
    if is_host_up(platform, migration.dest_host):
        return has_arrived(platform, server, migration)
    if is_host_up(platform, server.host):
        return platform.hypervisor.power_state(server) is None
    if server.task_state in WITHOUT_MACHINE:
        return False
    raise NotYet(placement.AGAIN_SECONDS)


def arrive(job: Job, migration: Migration) -> None:
    """The server is on the other host from now on."""
    with job.event('compute_post_live_migration_at_destination', migration.dest_host):
        if job.server.host != migration.dest_host:
            moves.follow(job.platform, job.server, migration)
        ports.switch(job, migration.dest_host or '')
        placement.connect(job)
        disks.follow(job.platform, job.elevated, job.server, job.arguments.get(disks.READY_THERE, {}))
        placement.leave_others(job.platform, job.server)
    finish(job, migration, MigrationStatus.COMPLETED)


def roll_back(job: Job, migration: Migration) -> None:
    """The server remains on its host, and holds no other."""
    with job.event(ROLLBACK, migration.dest_host, listed=False):
        disks.stay(job.platform, job.elevated, job.server)
        placement.leave_others(job.platform, job.server)


@LEAVE_HOST.work
def leave_host(job: Job) -> None:
    """Release ports, volumes and machine on a host that was prepared for the server, which does not move there."""
    host, platform = job.arguments['host'], job.platform
    with job.event(ROLLBACK, host, listed=False):
        if placement.leave_behind(job, host):
            ports.leave_hosts(platform.networks, job.server, {host})
            disks.stay(platform, job.elevated, job.server)
    job.end()


def finish(job: Job, migration: Migration, status: MigrationStatus) -> None:
    with job.store.write() as connection:
        moves.mark(job, connection, migration, status)
        job.conclude(connection)


def copy(job: Job, migration: Migration) -> bool:
    """Let the driver move the server, which can be aborted or forced meanwhile; returns whether it moved."""
    host = migration.dest_host or ''
    advance(job, MigrationStatus.ACCEPTED, MigrationStatus.QUEUED)
    with (
        job.event('compute_check_can_live_migrate_destination', host),
        job.event('compute_check_can_live_migrate_source'),
    ):
        job.driver.check_live_migration(job.server, host)
        if moves.migration_of(job).status in WAITING:
            check_storage(job.driver, job.server, host, job.arguments.get('copies'))
    if moves.migration_of(job).status == MigrationStatus.QUEUED:
        placement.clear(job, host)
    advance(job, MigrationStatus.QUEUED, MigrationStatus.PREPARING)
    with job.event('compute_live_migration'):
        with job.event('compute_pre_live_migration', host):
            awaited_ports = ports.prepare(job, host)
            disks.prepare(job, host)
            facts = job.driver.prepare_live_migration(job.server, host, job.driver.describe(job.server))
            plugging.wait_at_destination(job, awaited_ports)
        advance(job, MigrationStatus.PREPARING, MigrationStatus.RUNNING, progress=no_progress(job))
        return job.driver.live_migrate(job.server, host, facts, moves.migration_of(job).status)


def check_storage(driver: Hypervisor, server: Server, host: str, copies: bool | None) -> None:
    """HypervisorError if the disks are not to be copied but have to be, or the other way round."""
    if copies is None:
        return
    # The agent of a host may be too old for this call.
    with contextlib.suppress(NotSupported):
        shared = driver.sees_disks(server, host, driver.describe(server))
        if shared and copies:
            raise HypervisorError(
                f'{server.host} is not on local storage: Block migration can not be used with shared storage.'
            )
        if shared is False and not copies:
            raise HypervisorError(
                f'{server.host} is not on shared storage: Shared storage live-migration requires either shared '
                'storage or boot-from-volume with no local disks.'
            )


def advance(job: Job, status: MigrationStatus, following: MigrationStatus, **values: Any) -> None:
    """Go from one status to the next, unless it is further already; Superseded if it was aborted."""
    values |= {'status': following, 'updated_at': job.clock()}
    job.store.change(server_migrations.change, job.arguments['migration_id'], values, (status,))
    if moves.migration_of(job).status == MigrationStatus.CANCELLED:
        raise Superseded()


def no_progress(job: Job) -> dict[str, int]:
    """The progress of a live migration that has just begun, for clients, in bytes."""
    memory = job.server.memory_mb * 2**20
    disk = job.server.root_gb * 2**30
    return {
        'memory_total_bytes': memory,
        'memory_processed_bytes': 0,
        'memory_remaining_bytes': memory,
        'disk_total_bytes': disk,
        'disk_processed_bytes': 0,
        'disk_remaining_bytes': disk,
    }
