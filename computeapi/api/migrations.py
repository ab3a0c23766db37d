"""/os-migrations: the migrations of servers."""

from collections.abc import Callable
from typing import Any

from computeapi.api import pages
from computeapi.api.controller import ComputeController
from computeapi.api.types import DATETIME, INTEGER, LINKS, NULLABLE_INTEGER, NULLABLE_STRING, STRING, bare
from computeapi.booleans import is_true
from computeapi.compute.servers.live_migration import UNDER_WAY
from computeapi.db.server_migrations import Migration
from computeapi.states import MigrationType
from computeapi.versions import ABSENT, added
from computeapi.web.contract import ADMIN, MANAGER_OR_ADMIN, Field, Policy, Reader, View, attr
from computeapi.web.controller import operation
from computeapi.web.paging import period_of
from computeapi.web.request import Request
from computeapi.web.schemas import query

INDEX = Policy('os_compute_api:os-migrations:index', MANAGER_OR_ADMIN, 'List the migrations of servers')
ALL_PROJECTS = Policy('os_compute_api:os-migrations:index:all_projects', ADMIN, 'List the migrations of all projects')
INDEX_HOST = Policy('os_compute_api:os-migrations:index:host', ADMIN, 'Show the hosts in a list of migrations')
SERVER_HOST = Policy(
    'os_compute_api:servers:migrations:index:host', ADMIN, "Show the hosts in a list of a server's live migrations"
)
TYPES, PAGES, OWNERS = '2.23', '2.59', '2.80'

# ------------------------------------------------------------------ requests

OWNER = ('user_id', 'project_id')
FILTERS = ('host', 'status', 'instance_uuid', 'source_compute', 'migration_type', *OWNER)
LIST_QUERY = query(
    {
        **dict.fromkeys(FILTERS, STRING),
        **dict.fromkeys(OWNER, added(OWNERS, STRING)),
        **pages.parameters(PAGES),
        'hidden': STRING,
        'changes-since': added(PAGES, DATETIME),
        'changes-before': added('2.66', DATETIME),
    },
    strict=PAGES,
    single=['changes-since', 'changes-before', *OWNER, *pages.PARAMETERS],
)

# ------------------------------------------------------------------ views


def hosted(get: Callable[[Migration], Any], policy: Policy | None) -> Field:
    """A field with a host: null for callers that may not see hosts; without a policy everybody may."""
    if policy is None:
        return Field(NULLABLE_STRING, get)
    return Field(NULLABLE_STRING, lambda req: get if req.allows(policy) else (lambda move: None), request=True)


def written(name: str) -> Field:
    get = attr(name)
    return Field(STRING, lambda move: bare(get(move)))


def flavor_number(name: str) -> Field:
    get = attr(name)
    return Field(NULLABLE_INTEGER, lambda move: (get(move) or {}).get('id'))


def address(move: Migration) -> str | None:
    """The destination address of a cold migration; a live migration needs none."""
    return move.dest_ip if move.migration_type != MigrationType.LIVE else None


def live_links(req: Request) -> Reader:
    """A link exists only while a live migration is in progress."""

    def read(move: Migration) -> Any:
        if move.migration_type != MigrationType.LIVE or move.status not in UNDER_WAY:
            return ABSENT
        return req.links(f'servers/{move.server_id}/migrations', str(move.id))

    return read


def places(policy: Policy | None) -> dict[str, Field]:
    return {
        'source_compute': hosted(attr('source_host'), policy),
        'source_node': hosted(attr('source_node'), policy),
        'dest_compute': hosted(attr('dest_host'), policy),
        'dest_node': hosted(attr('dest_node'), policy),
        'dest_host': hosted(address, policy),
    }


COMMON_FIELDS = {
    'id': Field(INTEGER, attr('id')),
    'uuid': added(PAGES, Field(STRING, attr('uuid'))),
    'status': Field(STRING, attr('status')),
    'created_at': written('created_at'),
    'updated_at': written('updated_at'),
    'user_id': added(OWNERS, Field(NULLABLE_STRING, attr('user_id'))),
    'project_id': added(OWNERS, Field(NULLABLE_STRING, attr('project_id'))),
}
MIGRATION = View(
    COMMON_FIELDS
    | places(INDEX_HOST)
    | {
        'instance_uuid': Field(STRING, attr('server_id')),
        'old_instance_type_id': flavor_number('old_flavor'),
        'new_instance_type_id': flavor_number('new_flavor'),
        'migration_type': added(TYPES, Field(STRING, attr('migration_type'))),
        'links': added(TYPES, Field(LINKS, live_links, request=True, optional=True)),
    }
)


def progress(name: str) -> Field:
    return Field(INTEGER, lambda move: (move.progress or {}).get(name, 0))


PROGRESS = {
    f'{kind}_{what}_bytes': progress(f'{kind}_{what}_bytes')
    for kind in ('memory', 'disk')
    for what in ('total', 'processed', 'remaining')
}
LIVE = COMMON_FIELDS | PROGRESS | {'server_uuid': Field(STRING, attr('server_id'))}
LISTED_LIVE_MIGRATION, LIVE_MIGRATION = View(LIVE | places(SERVER_HOST)), View(LIVE | places(None))
LIST = pages.schema('migrations', MIGRATION, added(PAGES, LINKS))


class Migrations(ComputeController):
    """Migrations of servers."""

    path = '/os-migrations'

    @operation(
        'GET',
        policy=INDEX,
        also=(ALL_PROJECTS, INDEX_HOST),
        query=LIST_QUERY,
        response=LIST,
        behaviour={'newest_first': added(PAGES, True)},
    )
    def index(self, req: Request) -> dict[str, Any]:
        """List the migrations of servers."""
        filters = {name: req.parameter(name) for name in FILTERS if name in req.query}
        if filters.get('project_id') != req.context.project_id:
            req.check(ALL_PROJECTS)
        if is_true(req.parameter('hidden')):
            # Hidden migrations are those that were cleaned up, which are not kept here.
            return {'migrations': []}
        since, before = period_of(req)
        newest_first = bool(req.behaviour.newest_first)
        page = pages.requested_page(req, self.cloud.max_limit)._replace(sort=[('created_at', newest_first)])
        found = self.cloud.migration_lists.select(page, filters=filters, since=since, before=before)
        return pages.page_response(req, 'migrations', MIGRATION.render_all(req, found), page.limit, marker='uuid')
