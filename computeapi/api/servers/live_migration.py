"""POST /servers/{id}/action {os-migrateLive}, and /servers/{id}/migrations: live migrations in progress."""

from typing import Any

from computeapi.api.migrations import LISTED_LIVE_MIGRATION, LIVE_MIGRATION, SERVER_HOST
from computeapi.api.servers.controller import ServerController, action
from computeapi.api.servers.schemas import HOST_OR_NULL
from computeapi.api.types import LENIENT_BOOLEAN, NOTHING, is_forced
from computeapi.booleans import FALSE, TRUE, is_true
from computeapi.compute.servers.changes import check
from computeapi.compute.servers.live_migration import CANCEL, FORCE_COMPLETE, UNDER_WAY
from computeapi.db.listing import MAX_DIGITS
from computeapi.db.server_migrations import Migration
from computeapi.db.servers import Server
from computeapi.errors import Invalid, MigrationNotFound, NotFound
from computeapi.states import MigrationType
from computeapi.versions import ABSENT, added, changed, removed
from computeapi.web.contract import ADMIN, MANAGER_OR_ADMIN, Policy
from computeapi.web.controller import action as any_action
from computeapi.web.controller import api_version, operation
from computeapi.web.request import Request, target_of
from computeapi.web.schemas import array, closed

LIVE = Policy('os_compute_api:os-migrate-server:migrate_live', MANAGER_OR_ADMIN, 'Live migrate a server')
LIVE_TO = Policy(
    'os_compute_api:os-migrate-server:migrate_live:host', ADMIN, 'Live migrate a server to a specified host'
)
INDEX = Policy(
    'os_compute_api:servers:migrations:index', MANAGER_OR_ADMIN, 'List the running live migrations of a server'
)
SHOW = Policy('os_compute_api:servers:migrations:show', ADMIN, 'Show a running live migration of a server')
FORCE = Policy(
    'os_compute_api:servers:migrations:force_complete', MANAGER_OR_ADMIN, 'Force a live migration to complete'
)
ABORT = Policy('os_compute_api:servers:migrations:delete', MANAGER_OR_ADMIN, 'Abort a live migration')

# ------------------------------------------------------------------ requests

HOST_IS_CHECKED = '2.30'
DISKS_ARE_FOUND_OUT = '2.25'
BLOCK_OR_AUTO = {'type': ['boolean', 'string'], 'enum': [True, *TRUE, False, *FALSE, 'auto']}
FACTS = closed(
    {
        'block_migration': changed({'2.1': LENIENT_BOOLEAN, DISKS_ARE_FOUND_OUT: BLOCK_OR_AUTO}),
        'disk_over_commit': removed(DISKS_ARE_FOUND_OUT, LENIENT_BOOLEAN),
        'host': HOST_OR_NULL,
        'force': changed({HOST_IS_CHECKED: LENIENT_BOOLEAN, '2.68': ABSENT}),
    },
    required=['block_migration', removed(DISKS_ARE_FOUND_OUT, 'disk_over_commit'), 'host'],
)


class ServerLiveMigration(ServerController):
    """Live migration of servers."""

    @action(
        'os-migrateLive',
        policy=None,
        also=(LIVE, LIVE_TO),
        takes=FACTS,
        errors=(403, 409, 501),
        behaviour={'host_is_checked': added(HOST_IS_CHECKED, True), 'checks_follow_the_answer': added('2.34', True)},
    )
    def live_migrate(self, req: Request, server: Server, body: Any) -> None:
        """Live-migrate a server to another host."""
        wanted = body['os-migrateLive']
        host = wanted.get('host')
        req.check(LIVE_TO if host else LIVE, target_of(server))
        force = is_forced(wanted, host_is_checked=bool(req.behaviour.host_is_checked))
        check_first = not req.behaviour.checks_follow_the_answer
        copies = None if wanted['block_migration'] == 'auto' else is_true(wanted['block_migration'])
        self.cloud.live_migrations.live_migrate(
            req.context, server, host, force=force, check_first=check_first, copies=copies
        )


class ServerMigrations(ServerController):
    """The live migrations of a server that are in progress."""

    path = '/servers/{server_id}/migrations'

    @operation('GET', policy=INDEX, also=(SERVER_HOST,), response={'migrations': array(LISTED_LIVE_MIGRATION)})
    @api_version('2.23')
    def index(self, req: Request, server: Server) -> dict[str, Any]:
        """List the running live migrations of a server."""
        return {'migrations': LISTED_LIVE_MIGRATION.render_all(req, self.cloud.live_migrations.under_way(server))}

    @operation('GET', '/{id}', policy=SHOW, response={'migration': LIVE_MIGRATION})
    @api_version('2.23')
    def show(self, req: Request, server: Server, id: str) -> dict[str, Any]:
        """Show a running live migration of a server."""
        try:
            move = self.migration(server, id)
        except MigrationNotFound:
            raise NotFound(f'In-progress live migration {id} is not found for server {server.uuid}.') from None
        if move.migration_type != MigrationType.LIVE:
            raise NotFound(f'Migration {id} for server {server.uuid} is not live-migration.')
        if move.status not in UNDER_WAY:
            raise NotFound(f'Live migration {id} for server {server.uuid} is not in progress.')
        return {'migration': LIVE_MIGRATION.render(req, move)}

    @operation(
        'DELETE', '/{id}', policy=ABORT, status=202, errors=(409,), behaviour={'even_waiting': added('2.65', True)}
    )
    @api_version('2.24')
    def abort(self, req: Request, server: Server, id: str) -> None:
        """Abort a live migration."""
        check(req.context, server, CANCEL.requirement)
        move = self.migration(server, id)
        self.cloud.live_migrations.abort(req.context, server, move, even_waiting=bool(req.behaviour.even_waiting))

    @any_action('force_complete', policy=FORCE, takes=NOTHING, errors=(403, 409))
    @api_version('2.22')
    def force_complete(self, req: Request, server: Server, id: str, body: Any) -> None:
        """Force a live migration to complete."""
        check(req.context, server, FORCE_COMPLETE.requirement)
        try:
            move = self.migration(server, id)
        except MigrationNotFound as error:
            # Only this operation refuses it as invalid, as in Nova.
            raise Invalid(str(error)) from None
        self.cloud.live_migrations.force_complete(req.context, server, move)

    def migration(self, server: Server, id: str) -> Migration:
        """A migration of the server; MigrationNotFound."""
        if not id.isdecimal() or len(id) > MAX_DIGITS:
            raise MigrationNotFound(id=id, server_id=server.uuid)
        return self.cloud.live_migrations.find(server, int(id))
