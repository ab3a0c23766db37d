"""Live migration: to another host while the server runs, and nobody is asked afterwards."""

from typing import Any

from computeapi.backends.hypervisor import Capability
from computeapi.compute.servers import moves, placement
from computeapi.compute.servers.changes import Changes, locked
from computeapi.compute.tasks.job import Job, unchanged
from computeapi.compute.tasks.transition import Transition
from computeapi.context import Context
from computeapi.db import server_migrations
from computeapi.db.server_migrations import Migration
from computeapi.db.servers import Server
from computeapi.errors import Invalid, MigrationNotFound
from computeapi.states import MigrationStatus, TaskState, VMState

# What a live migration passes through before it is over.
RUNNING = (MigrationStatus.RUNNING,)
WAITING = (MigrationStatus.ACCEPTED, MigrationStatus.QUEUED, MigrationStatus.PREPARING)
UNDER_WAY = (*WAITING, *RUNNING, MigrationStatus.CANCELLING, MigrationStatus.FORCING)


def remain(job: Job, error: Exception) -> None:
    """The server goes on where it is; the allocation on the other host is given back."""
    found = moves.migration_of(job).dest_host is not None
    moves.end(job, MigrationStatus.FAILED if found else MigrationStatus.ERROR)
    unchanged(job, error)


LIVE_MIGRATE = Transition(
    'live-migration',
    during=TaskState.MIGRATING,
    allowed={VMState.ACTIVE, VMState.PAUSED},
    capability=Capability.LIVE_MIGRATION,
    failed=remain,
    undo=moves.undo,
)


class LiveMigrations:
    """Errors: those of Changes; Invalid for a host that will not do, MigrationNotFound."""

    def __init__(self, changes: Changes):
        self.changes, self.platform = changes, changes.platform

    def live_migrate(self, context: Context, server: Server, host: str | None, *, force: bool = False) -> None:
        """To another host while the server runs; force: the scheduler is not asked about the host."""
        self.changes.check(context, server, LIVE_MIGRATE)
        if host is not None:
            moves.check_host(self.platform, host)
            if host == server.host:
                raise Invalid(f'Migration pre-check error: Unable to migrate {server.uuid} to current host ({host}).')
        with self.changes.store.write() as connection:
            server = locked(connection, context, server, LIVE_MIGRATE)
            accepted, now = MigrationStatus.ACCEPTED, self.changes.clock()
            migration_id = server_migrations.insert(connection, context, server, 'live-migration', accepted, now)
            arguments = {'migration_id': migration_id, 'host': host, 'force': force}
            self.changes.begin_in(connection, context, server, LIVE_MIGRATE, arguments)
        self.changes.tasks.wake()

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
        """Stop a live migration that is running, or (even_waiting) that has not begun to."""
        self._steer(context, server, migration, 'live_migration_abort', MigrationStatus.CANCELLING, even_waiting)

    def force_complete(self, context: Context, server: Server, migration: Migration) -> None:
        """Let a running live migration end now, at the cost of a pause."""
        self._steer(context, server, migration, 'live_migration_force_complete', MigrationStatus.FORCING, False)

    def _steer(
        self,
        context: Context,
        server: Server,
        migration: Migration,
        action: str,
        status: MigrationStatus,
        even_waiting: bool,
    ) -> None:
        allowed = (*WAITING, *RUNNING) if even_waiting else RUNNING
        values = {'status': status, 'updated_at': self.changes.clock()}
        with self.changes.store.write() as connection:
            if not server_migrations.change(connection, migration.id, values, allowed):
                raise Invalid(
                    f'Migration {migration.id} state of instance {server.uuid} is {migration.status}. Cannot '
                    f'{action} while the migration state is in this state.'
                )
            self.changes.record(connection, context, server, action)


# ------------------------------------------------------------------ work


@LIVE_MIGRATE.work
def live_migrate(job: Job) -> None:
    """To another host while it runs. Whatever goes wrong before the switch leaves the server where it is."""
    migration = moves.migration_of(job)
    with job.event('conductor_live_migrate_instance'):
        migration = moves.find_host(job, migration, moves.spec_elsewhere(job))
    arrived = job.server.host == migration.dest_host or moves.has_moved(job.platform, job.server, migration)
    if not arrived and not copy(job, migration):
        moves.end(job, MigrationStatus.CANCELLED)
        job.finish()
        return
    with job.event('compute_post_live_migration_at_destination', migration.dest_host):
        if job.server.host != migration.dest_host:
            moves.follow(job.platform, job.server, migration)
        placement.connect(job)
        placement.leave_others(job.platform, job.server)
    with job.store.write() as connection:
        moves.mark(job, connection, migration, MigrationStatus.COMPLETED)
        job.conclude(connection)


def copy(job: Job, migration: Migration) -> bool:
    """Let the driver move the server while others may abort it or make it hurry; whether it moved."""
    host = migration.dest_host or ''
    with (
        job.event('compute_check_can_live_migrate_destination', host),
        job.event('compute_check_can_live_migrate_source'),
    ):
        job.driver.check_live_migration(job.server, host)
    with job.event('compute_pre_live_migration', host):
        advance(job, migration, MigrationStatus.PREPARING, (MigrationStatus.ACCEPTED, MigrationStatus.QUEUED))
    with job.event('compute_live_migration'):
        advance(job, migration, MigrationStatus.RUNNING, (MigrationStatus.PREPARING,), progress=progress_of(job, 0))
        if moves.migration_of(job).status not in (MigrationStatus.RUNNING, MigrationStatus.FORCING):
            return False
        return job.driver.live_migrate(job.server, host, lambda: moves.migration_of(job).status)


def advance(
    job: Job, migration: Migration, status: MigrationStatus, before: tuple[MigrationStatus, ...], **values: Any
) -> None:
    """On to the next status, unless somebody aborted the migration, or it is further already."""
    values |= {'status': status, 'updated_at': job.clock()}
    job.store.tell(server_migrations.change, migration.id, values, before)


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
