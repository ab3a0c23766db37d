"""Live migration: to another host while the server runs, and nobody is asked afterwards."""

import contextlib
import logging
from typing import Any, NamedTuple

import sqlalchemy as sa

from computeapi.backends.hypervisor import Capability, Hypervisor, HypervisorError, PowerState
from computeapi.compute.hosts import is_host_up
from computeapi.compute.platform import Platform
from computeapi.compute.scheduler import HostState, NoValidHost
from computeapi.compute.servers import bandwidth, disks, moves, placement, plugging, ports
from computeapi.compute.servers.changes import Changes, locked
from computeapi.compute.tasks.fence import Superseded
from computeapi.compute.tasks.job import Job, fault_of, unchanged
from computeapi.compute.tasks.queue import thawed
from computeapi.compute.tasks.transition import Transition, beside
from computeapi.context import Context
from computeapi.db import allocations, server_migrations
from computeapi.db import servers as rows
from computeapi.db.server_migrations import Migration
from computeapi.db.servers import Server, is_volume_backed
from computeapi.db.tasks import Task
from computeapi.errors import Invalid, MigrationNotFound, NotSupported
from computeapi.states import MigrationStatus, TaskState, VMState

LOG = logging.getLogger(__name__)
KIND, DECISION = 'live-migration', 'conductor_live_migrate_instance'
# What a live migration passes through before it is over: it waits for a worker, for the hosts to agree, and for the
# other one to be ready; then the server is copied.
RUNNING = (MigrationStatus.RUNNING,)
WAITING = (MigrationStatus.ACCEPTED, MigrationStatus.QUEUED, MigrationStatus.PREPARING)
# What its machine is on the host on which it is for good.
RUNS = (PowerState.RUNNING, PowerState.PAUSED)
UNDER_WAY = (*WAITING, *RUNNING, MigrationStatus.CANCELLING, MigrationStatus.FORCING)


def remain(job: Job, error: Exception) -> None:
    """The server goes on where it is; the allocation on the other host is given back. It is on the other one for good
    where it runs there alone, whatever went wrong with telling so."""
    migration = moves.migration_of(job)
    found = migration.dest_host is not None
    if found and job.server.host == migration.dest_host or is_found_there(job.platform, job.server, migration):
        return arrive(job, migration)
    if found:
        disks.stay(job.platform, job.elevated, job.server)
    # Clients are told apart that no host was ready for it and that it did not get there.
    ready = found and migration.status != MigrationStatus.PREPARING
    moves.end(job, MigrationStatus.FAILED if ready else MigrationStatus.ERROR)
    unchanged(job, error)


def settle(platform: Platform, task: Task, server: Server | None) -> None:
    """Nobody goes on with it: the server is where its machine is."""
    migration = platform.store.ask(server_migrations.get, task.arguments['migration_id'])
    if server is not None and migration is not None and is_found_there(platform, server, migration):
        moves.follow(platform, server, migration)
        ready = task.arguments.get(disks.READY_THERE, {})
        disks.follow(platform, thawed(task.context).elevated(), server, ready)
    moves.undo(platform, task, server)


LIVE_MIGRATE = Transition(
    KIND,
    asked='os-migrateLive',
    during=TaskState.MIGRATING,
    allowed={VMState.ACTIVE, VMState.PAUSED},
    capability=Capability.LIVE_MIGRATION,
    shares=False,
    failed=remain,
    undo=settle,
)


class Word(NamedTuple):
    """What others may say while a server moves: as its action and its event are recorded, and as a refusal calls it."""

    name: str
    event: str
    text: str


LEAVE_HOST = beside('leave_host')
CANCEL = Word('live_migration_cancel', 'compute_live_migration_abort', 'abort live migration')
FORCE = Word('live_migration_force_complete', 'compute_live_migration_force_complete', 'force complete')


class LiveMigrations:
    """Errors: those of Changes; Invalid for a host that will not do, MigrationNotFound."""

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
        """To another host while the server runs; force: the scheduler is not asked about the host.

        copies: whether its disks are to be copied, or to be there already; None: as it is.
        check_first: Invalid when no host will do, the server's own among them; else a worker finds that out."""
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
        """Write down that the server is to go; the id of the migration."""
        server = locked(connection, context, server, LIVE_MIGRATE)
        accepted, now = MigrationStatus.ACCEPTED, self.changes.clock()
        migration_id = server_migrations.insert(connection, context, server, KIND, accepted, now)
        arguments = {'migration_id': migration_id, 'host': host, 'force': force, 'copies': copies}
        self.changes.begin_in(connection, context, server, LIVE_MIGRATE, arguments)
        return migration_id

    def _begin_checked(
        self, context: Context, server: Server, host: str | None, force: bool, copies: bool | None
    ) -> None:
        """The same in the transaction that claims an allocation on a host, after that host was asked."""
        devices = self.changes.store.ask(rows.block_devices_of, [server.uuid])
        spec = moves.elsewhere(server, host, forced=force, on_volume=is_volume_backed(server, devices))

        def check(found: HostState) -> None:
            self.platform.hypervisor.check_live_migration(server, found.name)
            check_storage(self.platform.hypervisor, server, found.name, copies)

        def keep(connection: sa.Connection, found: HostState) -> None:
            migration_id = self._begin_in(connection, context, server, host, force, copies)
            server_migrations.change(connection, migration_id, moves.destination(found))

        try:
            moves.check_up(self.platform, server)
            if force and host == server.host:
                raise Invalid(f'Unable to migrate instance ({server.uuid}) to current host ({host}).')
            asking = bandwidth.asked_by(self.platform, context, server)
            bandwidth.allocate(self.platform, server, spec, keep, asking, check)
        except (Invalid, NoValidHost, HypervisorError) as error:
            self._record_failure(context, server, error)
            before = 'Migration pre-check error: ' if isinstance(error, HypervisorError) else ''
            raise Invalid(f'{before}{error}') from error

    def _record_failure(self, context: Context, server: Server, error: Exception) -> None:
        """What came to nothing before the answer is found where later failures are."""
        now = self.changes.clock()
        with self.changes.store.write() as connection:
            server_migrations.insert(connection, context, server, KIND, MigrationStatus.ERROR, now)
            facts = {'event': DECISION, 'host': self.changes.platform.conf.host, 'message': 'Error'}
            self.changes.record(connection, context, server, LIVE_MIGRATE.name, **facts)
            rows.update(connection, server.uuid, {'fault': fault_of(error, now), 'updated_at': now})

    def under_way(self, server: Server) -> list[Migration]:
        """The live migrations of the server that are not over."""
        return self.changes.store.ask(server_migrations.live, server.uuid, UNDER_WAY)

    def find(self, server: Server, migration_id: int) -> Migration:
        """A move of this server, whatever its status; MigrationNotFound."""
        migration = self.changes.store.ask(server_migrations.get, migration_id)
        if migration is None or migration.server_id != server.uuid:
            raise MigrationNotFound(id=migration_id, server_id=server.uuid)
        return migration

    def abort(self, context: Context, server: Server, migration: Migration, *, even_waiting: bool) -> None:
        """Stop a live migration that is running, or (even_waiting) that has not begun to: then it is over at once."""
        if not (even_waiting and self._withdraw(context, server, migration)):
            self._steer(context, server, migration, CANCEL, MigrationStatus.CANCELLING)

    def force_complete(self, context: Context, server: Server, migration: Migration) -> None:
        """Let a running live migration end now, at the cost of a pause."""
        self._steer(context, server, migration, FORCE, MigrationStatus.FORCING)

    def _withdraw(self, context: Context, server: Server, migration: Migration) -> bool:
        """Cancel a live migration for which nothing was done but to get a host ready; whether it was still waiting."""
        values = {'status': MigrationStatus.CANCELLED, 'updated_at': self.changes.clock()}
        with self.changes.store.write() as connection:
            allocations.lock_hosts(connection, server.uuid)
            if not server_migrations.change(connection, migration.id, values, WAITING):
                return False
            self.changes.withdraw(connection, server, LIVE_MIGRATE)
            allocations.release(connection, server.uuid, keep=server.host)
            if migration.dest_host is not None:
                leaving = {'host': migration.dest_host}
                self.changes.tasks.add(connection, LEAVE_HOST, server.uuid, context.elevated(), leaving)
            self.changes.record(connection, context, server, CANCEL.name, event=CANCEL.event, host=server.host)
        self.changes.tasks.wake()
        return True

    def _steer(
        self, context: Context, server: Server, migration: Migration, word: Word, status: MigrationStatus
    ) -> None:
        values = {'status': status, 'updated_at': self.changes.clock()}
        with self.changes.store.write() as connection:
            if not server_migrations.change(connection, migration.id, values, RUNNING):
                raise Invalid(
                    f'Migration {migration.id} state of instance {server.uuid} is {migration.status}. Cannot '
                    f'{word.text} while the migration state is in this state.'
                )
            self.changes.record(connection, context, server, word.name, event=word.event, host=server.host)
            self.changes.tasks.hasten(connection, server.uuid)
        self.changes.tasks.wake()


# ------------------------------------------------------------------ work


@LIVE_MIGRATE.work
def live_migrate(job: Job) -> None:
    """To another host while it runs. Whatever goes wrong before the switch leaves the server where it is."""
    migration = moves.migration_of(job)
    with job.event(DECISION, job.platform.conf.host):
        if migration.dest_host is None:
            moves.check_up(job.platform, job.server)
        migration = moves.find_host(job, migration, moves.spec_elsewhere(job))
    arrived = job.server.host == migration.dest_host or has_arrived(job.platform, job.server, migration)
    if arrived or copy(job, migration):
        return arrive(job, migration)
    disks.stay(job.platform, job.elevated, job.server)
    placement.leave_others(job.platform, job.server)
    finish(job, migration, MigrationStatus.CANCELLED)


def has_arrived(platform: Platform, server: Server, migration: Migration) -> bool:
    """Whether the machine is on the other host and no more on that from which it comes; where that one is down, or has
    lost it, whether it runs there, which it does not before all of it has come."""
    if migration.status in WAITING:
        # What runs there is none that was sent.
        return False
    there = platform.hypervisor.power_state(placement.at(server, migration.dest_host))
    if not is_host_up(platform, server.host):
        return there in RUNS
    here = platform.hypervisor.power_state(server)
    return (there is not None and here is None) or (there in RUNS and here == PowerState.SHUTDOWN)


def is_found_there(platform: Platform, server: Server, migration: Migration) -> bool:
    """The same for whoever gives it up, and does not wait for a host that is down: what was sent there is nowhere else
    if the host from which it comes has it no more."""
    if migration.dest_host is None or migration.status in WAITING:
        return False
    if is_host_up(platform, migration.dest_host):
        return has_arrived(platform, server, migration)
    return is_host_up(platform, server.host) and platform.hypervisor.power_state(server) is None


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


@LEAVE_HOST.work
def leave_host(job: Job) -> None:
    """The server does not go to a host that is ready for it: that one lets go of its ports, volumes and machine."""
    host, platform = job.arguments['host'], job.platform
    # It may be on its way there again.
    if host not in {job.server.host, *platform.store.ask(allocations.hosts_of, job.server.uuid)}:
        try:
            job.driver.destroy(placement.at(job.server, host))
        except HypervisorError as error:
            LOG.warning('Host %s may still be prepared for %s: %s', host, job.server.uuid, error)
        ports.leave_hosts(platform.networks, job.server, {host})
        disks.stay(platform, job.elevated, job.server)
    job.end()


def finish(job: Job, migration: Migration, status: MigrationStatus) -> None:
    with job.store.write() as connection:
        moves.mark(job, connection, migration, status)
        job.conclude(connection)


def copy(job: Job, migration: Migration) -> bool:
    """Let the driver move the server while others may abort it or make it hurry; whether it moved."""
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
    with job.event('compute_pre_live_migration', host):
        told_of = ports.prepare(job, host)
        disks.prepare(job, host)
        facts = job.driver.prepare_live_migration(job.server, host, job.driver.describe(job.server))
        plugging.wait_there(job, told_of)
    advance(job, MigrationStatus.PREPARING, MigrationStatus.RUNNING, progress=progress_of(job, 0))
    with job.event('compute_live_migration'):
        return job.driver.live_migrate(job.server, host, facts, moves.migration_of(job).status)


def check_storage(driver: Hypervisor, server: Server, host: str, copies: bool | None) -> None:
    """HypervisorError where the disks are not to be copied, and must be, or the other way round."""
    if copies is None:
        return
    # The agent of a host may be too old to know.
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
    """From one status to the following, unless it is further already; Superseded when it was aborted."""
    values |= {'status': following, 'updated_at': job.clock()}
    job.store.tell(server_migrations.change, job.arguments['migration_id'], values, (status,))
    if moves.migration_of(job).status == MigrationStatus.CANCELLED:
        raise Superseded()


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
