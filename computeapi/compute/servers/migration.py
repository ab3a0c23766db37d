"""Moving a server to another host or another flavor: the requests; workers do the moving."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from oslo_config import cfg

from computeapi.compute.hosts import is_up
from computeapi.compute.quotas import Quotas
from computeapi.compute.servers.life import Life, check, locked
from computeapi.compute.states import ACTIVE, ERROR, PAUSED, RESIZED, STOPPED, Change
from computeapi.context import Context
from computeapi.db import flavors, server_migrations, services
from computeapi.db.flavors import Flavor
from computeapi.db.server_migrations import Migration
from computeapi.db.servers import Server
from computeapi.errors import Conflict, Invalid, MigrationNotFound, NotFound

RESIZE = Change('resize', 'resize', 'resize_prep', frozenset({ACTIVE, STOPPED}))
MIGRATE = Change('migrate', 'resize', 'resize_prep', frozenset({ACTIVE, STOPPED}))
CONFIRM = Change('confirmResize', 'confirm', None, frozenset({RESIZED}))
REVERT = Change('revertResize', 'revert', 'resize_reverting', frozenset({RESIZED}))
LIVE_MIGRATE = Change('live-migration', 'live_migrate', 'migrating', frozenset({ACTIVE, PAUSED}))
EVACUATE = Change('evacuate', 'evacuate', 'rebuilding', frozenset({ACTIVE, STOPPED, ERROR}))

# What a live migration passes through before it is over.
RUNNING = ('running',)
WAITING = ('accepted', 'queued', 'preparing')
UNDER_WAY = (*WAITING, *RUNNING, 'cancelling', 'forcing')


class Moves:
    """Resizes, migrations, live migrations and evacuations. Errors: as Life's, OverQuota, Invalid for a bad host."""

    def __init__(self, life: Life, quotas: Quotas, conf: cfg.ConfigOpts):
        self.life, self.quotas, self.conf = life, quotas, conf
        self.store, self.clock = life.store, life.clock

    # ------------------------------------------------------------ resize and cold migration

    def resize(self, context: Context, server: Server, flavor: Flavor, disk_config: str | None = None) -> None:
        """To another flavor, on a host with room for it."""
        check(context, server, RESIZE)
        if flavor.disabled or flavor.flavorid == server.flavor['flavorid']:
            raise Invalid('When resizing, instances must change flavor!')
        if server.image_id and flavor.root_gb == 0 and server.root_gb != 0:
            raise Invalid('Resize to zero disk flavor is not allowed.')
        new = flavors.snapshot(flavor)
        values = {'disk_config': disk_config} if disk_config else {}
        self._begin(context, server, RESIZE, 'resize', new, values=values)

    def migrate(self, context: Context, server: Server, host: str | None) -> None:
        """To another host, the named one if any."""
        check(context, server, MIGRATE)
        if host is not None:
            self.check_host(host)
            if host == server.host:
                raise Invalid(f'The target host can not be the same one: {host}')
        self._begin(context, server, MIGRATE, 'migration', server.flavor, host=host)

    def _begin(
        self,
        context: Context,
        server: Server,
        change: Change,
        kind: str,
        new: Mapping[str, Any],
        *,
        host: str | None = None,
        values: Mapping[str, Any] | None = None,
    ) -> None:
        with self.store.write() as connection:
            server = locked(connection, context, server, change)
            # Until the move is confirmed the server counts with the larger of both sizes.
            more_cores = max(0, new['vcpus'] - server.vcpus)
            more_ram = max(0, new['memory_mb'] - server.memory_mb)
            held = {'vcpus': server.vcpus + more_cores, 'memory_mb': server.memory_mb + more_ram}
            if more_cores or more_ram:
                self.quotas.reserve(connection, server.project_id, server.user_id, cores=more_cores, ram=more_ram)
            arguments = {'migration_id': self._write(connection, context, server, kind, new=new), 'host': host}
            self.life.begin_in(connection, context, server, change, arguments, **held, **(values or {}))
        self.life.tasks.wake()

    def confirm(self, context: Context, server: Server) -> None:
        """The server stays where and what it is now."""
        check(context, server, CONFIRM)
        with self.store.write() as connection:
            migration = self._finished(connection, server)
            self._mark(connection, migration, 'confirming')
            self.life.begin_in(connection, context, server, CONFIRM, {'migration_id': migration.id})
        self.life.tasks.wake()

    def revert(self, context: Context, server: Server) -> None:
        """The server goes back to what it was."""
        check(context, server, REVERT)
        with self.store.write() as connection:
            migration = self._finished(connection, server)
            self._mark(connection, migration, 'reverting')
            self.life.begin_in(connection, context, server, REVERT, {'migration_id': migration.id})
        self.life.tasks.wake()

    def _finished(self, connection: sa.Connection, server: Server) -> Migration:
        migration = server_migrations.latest(connection, server.uuid, ('finished',))
        if migration is None:
            raise Invalid('Instance has not been resized.')
        return migration

    def _mark(self, connection: sa.Connection, migration: Migration, status: str) -> None:
        values = {'status': status, 'updated_at': self.clock()}
        if not server_migrations.change(connection, migration.id, values, (migration.status,)):
            raise Conflict(f'The migration of instance {migration.server_id} is being confirmed or reverted.')

    # ------------------------------------------------------------ live migration

    def live_migrate(self, context: Context, server: Server, host: str | None, *, force: bool = False) -> None:
        """To another host while the server runs; force: the scheduler is not asked about the host."""
        check(context, server, LIVE_MIGRATE)
        if host is not None:
            self.check_host(host)
            if host == server.host:
                raise Invalid(f'Migration pre-check error: Unable to migrate {server.uuid} to current host ({host}).')
        with self.store.write() as connection:
            server = locked(connection, context, server, LIVE_MIGRATE)
            migration_id = self._write(connection, context, server, 'live-migration', status='accepted')
            arguments = {'migration_id': migration_id, 'host': host, 'force': force}
            self.life.begin_in(connection, context, server, LIVE_MIGRATE, arguments)
        self.life.tasks.wake()

    def under_way(self, server: Server) -> list[Migration]:
        """The live migrations of the server that are not over."""
        with self.store.read() as connection:
            return server_migrations.live(connection, server.uuid, UNDER_WAY)

    def find(self, server: Server, migration_id: int) -> Migration:
        """A move of this server, whatever its status; MigrationNotFound."""
        with self.store.read() as connection:
            migration = server_migrations.get(connection, migration_id)
        if migration is None or migration.server_id != server.uuid:
            raise MigrationNotFound(id=migration_id, server_id=server.uuid)
        return migration

    def abort(self, context: Context, server: Server, migration: Migration, *, even_waiting: bool) -> None:
        """Stop a live migration that is running, or (even_waiting) that has not begun to."""
        self._steer(context, server, migration, 'live_migration_abort', 'cancelling', even_waiting)

    def force_complete(self, context: Context, server: Server, migration: Migration) -> None:
        """Let a running live migration end now, at the cost of a pause."""
        self._steer(context, server, migration, 'live_migration_force_complete', 'forcing', False)

    def _steer(
        self, context: Context, server: Server, migration: Migration, action: str, status: str, even_waiting: bool
    ) -> None:
        allowed = (*WAITING, *RUNNING) if even_waiting else RUNNING
        values = {'status': status, 'updated_at': self.clock()}
        with self.store.write() as connection:
            if not server_migrations.change(connection, migration.id, values, allowed):
                raise Invalid(
                    f'Migration {migration.id} state of instance {server.uuid} is {migration.status}. Cannot '
                    f'{action} while the migration state is in this state.'
                )
            self.life.record(connection, context, server, action)

    # ------------------------------------------------------------ evacuation

    def evacuate(
        self, context: Context, server: Server, host: str | None, *, force: bool = False, start: bool = False
    ) -> None:
        """Rebuild the server of a host that is down on another; start: it runs there if it ran before."""
        check(context, server, EVACUATE)
        if host is not None:
            self.check_host(host)
            if host == server.host:
                raise Invalid(f'The target host can not be the same one: {host}')
        self.check_down(server)
        with self.store.write() as connection:
            server = locked(connection, context, server, EVACUATE)
            migration_id = self._write(connection, context, server, 'evacuation', status='accepted')
            arguments = {'migration_id': migration_id, 'host': host, 'force': force, 'start': start}
            self.life.begin_in(connection, context, server, EVACUATE, arguments)
        self.life.tasks.wake()

    # ------------------------------------------------------------ hosts

    def check_host(self, host: str) -> None:
        """Invalid for a compute host that does not exist."""
        with self.store.read() as connection:
            if services.of_compute_host(connection, host) is None:
                raise Invalid(f'Compute host {host} could not be found.')

    def check_down(self, server: Server) -> None:
        """Invalid while the server's host is up."""
        with self.store.read() as connection:
            service = services.of_compute_host(connection, server.host)
        if service is None:
            raise NotFound(f'Compute host {server.host} could not be found.')
        if is_up(service, self.clock(), self.conf.service_down_time):
            raise Invalid(f'Compute service of {server.host} is still in use.')

    def _write(
        self,
        connection: sa.Connection,
        context: Context,
        server: Server,
        kind: str,
        *,
        status: str = 'pre-migrating',
        new: Mapping[str, Any] | None = None,
    ) -> int:
        return server_migrations.insert(
            connection,
            {
                'uuid': str(uuid.uuid4()),
                'server_id': server.uuid,
                'migration_type': kind,
                'status': status,
                'source_host': server.host,
                'source_node': server.node,
                'old_flavor': server.flavor,
                'new_flavor': dict(new or server.flavor),
                'old_vm_state': server.vm_state,
                'user_id': context.user_id,
                'project_id': context.project_id,
                'created_at': self.clock(),
                'updated_at': self.clock(),
            },
        )
