"""/os-migrations and /servers/{id}/migrations: the moves of servers from host to host."""

from computeapi.api.controller import ComputeController
from computeapi.api.servers.subject import ServerController
from computeapi.api.types import INTEGER, LIMIT, LINKS, MARKER, NOTHING, NULLABLE_STRING, STRING, bare
from computeapi.booleans import spoken
from computeapi.clock import parsed
from computeapi.compute.servers.migration import UNDER_WAY
from computeapi.errors import Conflict, Invalid, NotFound
from computeapi.versions import ABSENT, APIVersionRequest, added
from computeapi.web.contract import ADMIN, MANAGER_OR_ADMIN, Field, Policy, View, attr, closed, query
from computeapi.web.controller import action, api_version, operation
from computeapi.web.paging import limit_of, next_link

# ------------------------------------------------------------------ policies

INDEX = Policy('os_compute_api:os-migrations:index', MANAGER_OR_ADMIN, 'List the migrations of servers')
ALL_PROJECTS = Policy('os_compute_api:os-migrations:index:all_projects', ADMIN, 'List the migrations of all projects')
INDEX_HOST = Policy('os_compute_api:os-migrations:index:host', ADMIN, 'See the hosts in a list of migrations')
SERVER_INDEX = Policy(
    'os_compute_api:servers:migrations:index', MANAGER_OR_ADMIN, 'List the running live migrations of a server'
)
SERVER_HOST = Policy(
    'os_compute_api:servers:migrations:index:host', ADMIN, "See the hosts in a list of a server's live migrations"
)
SERVER_SHOW = Policy('os_compute_api:servers:migrations:show', ADMIN, 'Show a running live migration of a server')
FORCE = Policy(
    'os_compute_api:servers:migrations:force_complete', MANAGER_OR_ADMIN, 'Let a live migration complete at once'
)
ABORT = Policy('os_compute_api:servers:migrations:delete', MANAGER_OR_ADMIN, 'Abort a live migration')

PAGES = APIVersionRequest.parse('2.59')
CHANGES_BEFORE = APIVersionRequest.parse('2.66')
OWNERS = APIVersionRequest.parse('2.80')
WAITING_CAN_BE_ABORTED = APIVersionRequest.parse('2.65')

# ------------------------------------------------------------------ requests

FILTERS = ('host', 'status', 'instance_uuid', 'source_compute', 'migration_type')
LIST_QUERY = query(
    {
        **dict.fromkeys(FILTERS, STRING),
        'hidden': STRING,
        'limit': added('2.59', LIMIT),
        'marker': added('2.59', MARKER),
        'changes-since': added('2.59', {'type': 'string', 'format': 'date-time'}),
        'changes-before': added('2.66', {'type': 'string', 'format': 'date-time'}),
        'user_id': added('2.80', STRING),
        'project_id': added('2.80', STRING),
    },
    strict='2.59',
)

# ------------------------------------------------------------------ views


def hosted(name, policy):
    """A field that names a host: null for those who may not see hosts."""
    get = attr(name)
    return Field(NULLABLE_STRING, lambda move, req: get(move) if req.allows(policy) else None, request=True)


def written(name):
    get = attr(name)
    return Field(STRING, lambda move: bare(get(move)))


def flavor_number(name):
    get = attr(name)
    return Field(INTEGER, lambda move: (get(move) or {}).get('id'))


def address(move, req, policy):
    """Where a cold migration went, as an address; a live one needs none."""
    return move.dest_ip if move.migration_type != 'live-migration' and req.allows(policy) else None


def live_links(move, req):
    """Only a live migration that is not over can be looked at."""
    if move.migration_type != 'live-migration' or move.status not in UNDER_WAY:
        return ABSENT
    return req.links(f'servers/{move.server_id}/migrations', str(move.id))


def places(policy):
    return {
        'source_compute': hosted('source_host', policy),
        'source_node': hosted('source_node', policy),
        'dest_compute': hosted('dest_host', policy),
        'dest_node': hosted('dest_node', policy),
        'dest_host': Field(NULLABLE_STRING, lambda move, req: address(move, req, policy), request=True),
    }


SHARED = {
    'id': Field(INTEGER, attr('id')),
    'uuid': added('2.59', Field(STRING, attr('uuid'))),
    'status': Field(STRING, attr('status')),
    'created_at': written('created_at'),
    'updated_at': written('updated_at'),
    'user_id': added('2.80', Field(NULLABLE_STRING, attr('user_id'))),
    'project_id': added('2.80', Field(NULLABLE_STRING, attr('project_id'))),
}
MIGRATION = View(
    SHARED
    | places(INDEX_HOST)
    | {
        'instance_uuid': Field(STRING, attr('server_id')),
        'old_instance_type_id': flavor_number('old_flavor'),
        'new_instance_type_id': flavor_number('new_flavor'),
        'migration_type': added('2.23', Field(STRING, attr('migration_type'))),
        'links': added('2.23', Field(LINKS, live_links, request=True, optional=True)),
    }
)


def progress(name):
    return Field(INTEGER, lambda move: (move.progress or {}).get(name, 0))


PROGRESS = {
    f'{kind}_{what}_bytes': progress(f'{kind}_{what}_bytes')
    for kind in ('memory', 'disk')
    for what in ('total', 'processed', 'remaining')
}
LIVE_MIGRATION = View(SHARED | places(SERVER_HOST) | PROGRESS | {'server_uuid': Field(STRING, attr('server_id'))})
LIST = closed(
    {'migrations': {'type': 'array', 'items': MIGRATION}, 'migrations_links': added('2.59', LINKS)}, ['migrations']
)

LIVE_LIST = closed({'migrations': {'type': 'array', 'items': LIVE_MIGRATION}}, ['migrations'])

# ------------------------------------------------------------------ controllers


class Migrations(ComputeController):
    """The moves of servers."""

    path = '/os-migrations'

    @operation('GET', policy=INDEX, also=(ALL_PROJECTS, INDEX_HOST), query=LIST_QUERY, response=LIST, errors=(400,))
    def index(self, req):
        """List the migrations of servers."""
        filters = {name: req.parameter(name) for name in FILTERS if name in req.query}
        if req.version >= OWNERS:
            filters |= {name: req.parameter(name) for name in ('user_id', 'project_id') if name in req.query}
        if filters.get('project_id') != req.context.project_id:
            req.check(ALL_PROJECTS)
        if spoken(req.parameter('hidden')):
            # What has been cleaned up after is not kept here, so none is hidden.
            return {'migrations': []}
        since, before = self.period(req)
        paged = req.version >= PAGES
        limit = limit_of(req, self.cloud.max_limit) if paged else None
        marker = req.parameter('marker') if paged else None
        found = self.cloud.migration_lists.select(limit, marker, filters=filters, since=since, before=before)
        body = {'migrations': MIGRATION.render_all(req, found)}
        link = next_link(req, found, limit, found[-1].uuid) if paged and found else []
        return body | ({'migrations_links': link} if link else {})

    def period(self, req):
        since = moment(req, 'changes-since') if req.version >= PAGES else None
        before = moment(req, 'changes-before') if req.version >= CHANGES_BEFORE else None
        if since and before and since > before:
            raise Invalid('The value of changes-since must be less than or equal to changes-before.')
        return since, before


class ServerMigrations(ServerController):
    """The live migrations of a server that are not over."""

    path = '/servers/{server_id}/migrations'

    @operation(
        'GET',
        policy=SERVER_INDEX,
        also=(SERVER_HOST,),
        response=LIVE_LIST,
        errors=(404,),
    )
    @api_version('2.23')
    def index(self, req, server):
        """List the running live migrations of a server."""
        return {'migrations': LIVE_MIGRATION.render_all(req, self.cloud.moves.under_way(server))}

    @operation('GET', '/{id}', policy=SERVER_SHOW, response={'migration': LIVE_MIGRATION}, errors=(404,))
    @api_version('2.23')
    def show(self, req, server, id):
        """Show a running live migration of a server."""
        missing = NotFound(f'In-progress live migration {id} is not found for server {server.uuid}.')
        move = self.cloud.moves.find(server, number(id, missing))
        if move.migration_type != 'live-migration' or move.status not in UNDER_WAY:
            raise missing
        return {'migration': LIVE_MIGRATION.render(req, move)}

    @operation('DELETE', '/{id}', policy=ABORT, status=202, errors=(400, 404, 409))
    @api_version('2.24')
    def abort(self, req, server, id):
        """Abort a live migration."""
        self.check_migrating(server, 'abort live migration')
        move = self.cloud.moves.find(server, number(id, NotFound()))
        even_waiting = req.version >= WAITING_CAN_BE_ABORTED
        self.cloud.moves.abort(req.context, server, move, even_waiting=even_waiting)

    @action(
        'force_complete',
        path='/{id}/action',
        policy=FORCE,
        body=closed({'force_complete': NOTHING}, ['force_complete']),
        errors=(400, 403, 404, 409),
    )
    @api_version('2.22')
    def force_complete(self, req, server, id, body):
        """Let a live migration complete at once."""
        self.check_migrating(server, 'force_complete')
        self.cloud.moves.force_complete(req.context, server, self.cloud.moves.find(server, number(id, NotFound())))

    def check_migrating(self, server, what):
        if server.task_state != 'migrating':
            raise Conflict(f"Instance {server.uuid} is in an invalid state for '{what}'")


def moment(req, name):
    """The moment that a parameter names, if it is there; its form was checked."""
    text = req.parameter(name)
    return parsed(text) if text else None


def number(text, missing):
    """The integer id in a path; *missing* when it is none."""
    if not text.isdecimal() or len(text) > 18:
        raise missing
    return int(text)
