"""Evacuation: a server whose host is down is booted on another one."""

import logging
import time
from collections.abc import Collection

from computeapi.backends.hypervisor import HypervisorError, NotYet, Outdated, PowerState
from computeapi.compute.hosts import is_host_up
from computeapi.compute.platform import Platform
from computeapi.compute.servers import config_drive, disks, moves, placement, plugging, signatures
from computeapi.compute.servers.changes import Changes, check, locked
from computeapi.compute.tasks.job import Job
from computeapi.compute.tasks.transition import Transition, beside
from computeapi.context import Context
from computeapi.db import allocations, hypervisors, server_migrations
from computeapi.db.server_migrations import Migration
from computeapi.db.servers import Server
from computeapi.errors import Conflict, Error, Invalid, NotFound
from computeapi.states import GOING, REBUILD_STEPS, MigrationStatus, MigrationType, TaskState, VMState

LOG = logging.getLogger(__name__)
# Seconds after which a host that is up and did not answer is called again.
AGAIN_SECONDS = 2.0


class HostLeft(Error):
    text = 'Instance {id} had already left host {host}.'


def strand(job: Job, error: Exception) -> None:
    """Leave the server in ERROR on the host that is down, from which it can be evacuated again.

    A server that was forced to a host without room keeps its state, and so does one that was not on that host any more.
    """
    migration = moves.migration_of(job)
    moves.yield_to_evacuation(job, migration.id)
    found = migration.dest_host is not None
    moves.end(job, MigrationStatus.FAILED if found else MigrationStatus.ERROR)
    placement.bind(job.platform, job.elevated, job.server, job.server.host)
    if found:
        disks.reconnect(job.platform, job.elevated, job.server, job.server.host)
    forced = job.arguments['force'] and job.arguments['host'] is not None
    spared = not found and (forced or has_left(job, migration))
    job.fail(error, vm_state=job.server.vm_state if spared else VMState.ERROR, power_state=job.power())


# Work that waits for a host that is down does not keep a server from leaving it. A deletion needs no host, though, and
# a server whose disk has reached another host is about to leave by itself.
LEAVABLE = frozenset({None, *TaskState}) - GOING - {TaskState.RESIZE_MIGRATED}
EVACUATE = Transition(
    'evacuate',
    during=TaskState.REBUILDING,
    steps=REBUILD_STEPS,
    allowed={VMState.ACTIVE, VMState.STOPPED, VMState.ERROR},
    while_doing=LEAVABLE,
    lockable=False,
    shares=False,
    failed=strand,
    undo=moves.undo,
)
ABANDON = beside('abandon_host')


class Evacuations:
    """Errors: those of Changes; NotFound, Invalid for an unusable host, or while the server's own is up."""

    def __init__(self, changes: Changes):
        self.changes, self.platform = changes, changes.platform

    def evacuate(
        self,
        context: Context,
        server: Server,
        host: str | None,
        *,
        force: bool = False,
        start: bool = False,
        admin_pass: str | None = None,
    ) -> None:
        """Rebuild a server whose host is down on another one; start: it runs there if it was not stopped before."""
        self._check_host(server, host)
        check(context, server, EVACUATE)
        moves.check_down(self.platform, server)
        with self.changes.tasks.adding() as connection:
            current = locked(connection, context, server, EVACUATE)
            if current.host != server.host:
                raise Conflict(f'Instance {server.uuid} has just left host {server.host}.')
            accepted, now = MigrationStatus.ACCEPTED, self.changes.clock()
            migration_id = server_migrations.insert(
                connection, context, current, MigrationType.EVACUATION, accepted, now
            )
            arguments = {'migration_id': migration_id, 'host': host, 'force': force, 'start': start}
            arguments = config_drive.with_password(self.platform, arguments, admin_pass)
            self.changes.begin_in(connection, context, current, EVACUATE, arguments, **moves.sizes(current))
            self.changes.notify(connection, context, current, 'api_evacuate')

    def _check_host(self, server: Server, host: str | None) -> None:
        if host is None:
            return
        if not self.changes.store.query(hypervisors.exists, host, None):
            raise NotFound(f'Compute host {host} not found.')
        if host == server.host:
            raise Invalid("The target host can't be the same one.")


# ------------------------------------------------------------------ work


@EVACUATE.work
def evacuate(job: Job) -> None:
    """Boot a server whose host is down on another one."""
    migration = moves.migration_of(job)
    moves.yield_to_evacuation(job, migration.id)
    runs = bool(job.arguments.get('start')) and migration.old_vm_state != VMState.STOPPED
    with job.event('rebuild_server', job.platform.conf.host):
        if migration.dest_host is None:
            take_over(job, migration)
        migration = moves.find_host(job, migration, moves.spec_elsewhere(job))
    with job.event('compute_rebuild_instance', migration.dest_host):
        prepare(job, migration.dest_host)
        boot(job, migration, runs)
    where = placement.on(job.platform, migration.dest_host, migration.dest_node)
    with job.store.write() as connection:
        allocations.release(connection, job.server.uuid, keep=migration.dest_host)
        moves.mark(job, connection, migration, MigrationStatus.DONE)
        # Clients that see the new host may act on the server.
        job.conclude(
            connection,
            vm_state=VMState.ACTIVE if runs else VMState.STOPPED,
            power_state=PowerState.RUNNING if runs else PowerState.SHUTDOWN,
            launched_at=job.clock(),
            fault=None,
            **where,
        )
        if migration.source_host is not None:
            leaving = {'host': migration.source_host}
            job.platform.tasks.add(connection, ABANDON, job.server.uuid, job.elevated, leaving)


def take_over(job: Job, migration: Migration) -> None:
    """Go on from what overtaken work has left, which has ended by now. HostLeft if it moved the server."""
    if has_left(job, migration):
        raise HostLeft(id=job.server.uuid, host=migration.source_host)
    if job.server.task_state != EVACUATE.during:
        job.save(task_state=EVACUATE.during)


def has_left(job: Job, migration: Migration) -> bool:
    """Whether the server was not on the host that it was to be evacuated from."""
    return job.server.host != migration.source_host


def prepare(job: Job, host: str | None) -> None:
    """Let the new host use the ports and volumes of the server, unless that is done."""
    if job.server.task_state == TaskState.REBUILD_SPAWNING:
        return
    placement.clear(job, host)
    signatures.check_own(job)
    placement.connect(job, host)
    disks.reconnect(job.platform, job.elevated, job.server, host)
    job.save(task_state=TaskState.REBUILD_SPAWNING)


def boot(job: Job, migration: Migration, runs: bool) -> None:
    """Create the machine on the new host, unless that is done."""
    there = placement.at(job.server, migration.dest_host)
    job.driver.spawn(there, job.devices(), config_drive.of(job, there), migration.source_host)
    if runs:
        plugging.wait(job)
    else:
        with job.event('compute_stop_instance', migration.dest_host):
            job.driver.power_off(there)


@ABANDON.work
def abandon(job: Job) -> None:
    """Destroy the machine on the old host, too, if that can be reached; else it is destroyed once the host is back."""
    placement.leave_behind(job, job.arguments['host'])
    job.end()


def return_hosts(platform: Platform, names: Collection[str]) -> None:
    """Handle hosts that are back: remove the servers that were evacuated from them while they were down. A server that
    a task holds, which may bring it there again, is left to that task and to the next call."""
    for migration in platform.store.query(server_migrations.evacuations_from, names):
        try:
            placement.remove_stray(platform, migration.server_id, migration.source_host or '')
        except NotYet:
            continue
        except Outdated:
            # It may have moved back in another way.
            pass
        values = {'status': MigrationStatus.COMPLETED, 'updated_at': platform.clock()}
        platform.store.change(server_migrations.change, migration.id, values, [MigrationStatus.DONE])


def return_agent(platform: Platform, host: str) -> None:
    """The same for a host whose agent has started. Retry until the host answers, or is down again: tasks that waited
    for the host may delay the answer for a moment."""
    while is_host_up(platform, host):
        try:
            return return_hosts(platform, [host])
        except HypervisorError as error:
            LOG.warning('Servers that were evacuated from host %s are still there: %s', host, error)
        time.sleep(AGAIN_SECONDS)
