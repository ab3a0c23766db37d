"""/os-simple-tenant-usage: what projects used in a time."""

from datetime import datetime
from urllib.parse import quote

from computeapi.api.controller import ComputeController
from computeapi.api.types import DATETIME, INTEGER, LIMIT, LINKS, MARKER, NULLABLE_DATETIME, STRING, UUID, bare, moment
from computeapi.compute.usage import ProjectUsage
from computeapi.db.listing import Page
from computeapi.errors import Invalid
from computeapi.versions import APIVersionRequest, added
from computeapi.web.contract import ADMIN, READER_OR_ADMIN, Field, Policy, View, attr, closed, query
from computeapi.web.controller import operation
from computeapi.web.paging import limit_of, next_link

# ------------------------------------------------------------------ policies

LIST = Policy('os_compute_api:os-simple-tenant-usage:list', ADMIN, 'List what all projects used')
SHOW = Policy('os_compute_api:os-simple-tenant-usage:show', READER_OR_ADMIN, 'Show what a project used')

PAGED = APIVersionRequest.parse('2.40')

# ------------------------------------------------------------------ requests

FORMATS = ('%Y-%m-%dT%H:%M:%S', '%Y-%m-%dT%H:%M:%S.%f', '%Y-%m-%d %H:%M:%S.%f')
PERIOD = {'start': STRING, 'end': STRING}
PAGING = {'limit': added('2.40', LIMIT), 'marker': added('2.40', MARKER)}
SHOW_QUERY = query(PERIOD | PAGING, strict='2.75')
LIST_QUERY = query(PERIOD | PAGING | {'detailed': STRING}, strict='2.75')

# ------------------------------------------------------------------ views

HOURS = {'type': 'number'}
SERVER = View(
    {
        'instance_id': Field(UUID, attr('server.uuid')),
        'name': Field(STRING, attr('server.name')),
        'tenant_id': Field(STRING, attr('server.project_id')),
        'flavor': Field(STRING, lambda usage: usage.server.flavor['name']),
        'vcpus': Field(INTEGER, attr('server.vcpus')),
        'memory_mb': Field(INTEGER, attr('server.memory_mb')),
        'local_gb': Field(INTEGER, attr('server.disk_gb')),
        'state': Field(STRING, attr('state')),
        'started_at': Field(DATETIME, lambda usage: bare(usage.server.launched_at)),
        'ended_at': Field(NULLABLE_DATETIME, lambda usage: bare(usage.server.terminated_at)),
        'hours': Field(HOURS, attr('hours')),
        'uptime': Field(INTEGER, lambda usage: int(usage.uptime.total_seconds())),
    }
)
SUMMARY = {
    'tenant_id': Field(STRING, attr('project_id')),
    'start': Field(DATETIME, lambda usage: bare(usage.start)),
    'stop': Field(DATETIME, lambda usage: bare(usage.stop)),
    'total_hours': Field(HOURS, attr('hours')),
    'total_vcpus_usage': Field(HOURS, attr('vcpu_hours')),
    'total_memory_mb_usage': Field(HOURS, attr('memory_mb_hours')),
    'total_local_gb_usage': Field(HOURS, attr('disk_gb_hours')),
}
USAGE = View(SUMMARY)
DETAILED = View(
    SUMMARY
    | {
        'server_usages': Field(
            {'type': 'array', 'items': SERVER},
            lambda usage, req: SERVER.render_all(req, usage.servers),
            request=True,
        )
    }
)
LISTED = closed(
    {
        'tenant_usages': {'type': 'array', 'items': {'anyOf': [USAGE, DETAILED]}},
        'tenant_usages_links': added('2.40', LINKS),
    },
    ['tenant_usages'],
)
SHOWN = closed(
    {'tenant_usage': {'anyOf': [DETAILED, closed({})]}, 'tenant_usage_links': added('2.40', LINKS)}, ['tenant_usage']
)

# ------------------------------------------------------------------ controller


class SimpleTenantUsage(ComputeController):
    """What projects used in a time."""

    path = '/os-simple-tenant-usage'

    def target(self, req, parameters):
        """The project in the path, if there is one."""
        return {'project_id': parameters['id']} if 'id' in parameters else None

    @operation('GET', policy=LIST, query=LIST_QUERY, response=LISTED, errors=(400,))
    def index(self, req):
        """List what all projects used: without start and end at this moment, in detail with detailed=1."""
        page = page_of(req, self.cloud.max_limit)
        found = self.cloud.usage.page(moment_of(req, 'start'), moment_of(req, 'end'), page)
        view = DETAILED if req.parameter('detailed') == '1' else USAGE
        link = link_of(req, 'os-simple-tenant-usage', found, page)
        return {'tenant_usages': view.render_all(req, found)} | ({'tenant_usages_links': link} if link else {})

    @operation('GET', '/{id}', policy=SHOW, query=SHOW_QUERY, response=SHOWN, errors=(400,))
    def show(self, req, id):
        """Show what a project and each of its servers used."""
        page = page_of(req, self.cloud.max_limit)
        found = self.cloud.usage.page(moment_of(req, 'start'), moment_of(req, 'end'), page, project_id=id)
        link = link_of(req, f'os-simple-tenant-usage/{quote(id)}', found, page)
        shown = DETAILED.render(req, found[0]) if found else {}
        return {'tenant_usage': shown} | ({'tenant_usage_links': link} if link else {})


def page_of(req, most: int) -> Page:
    """Which servers are counted: before 2.40 the first ones, as many as a page may have."""
    sort = [('project_id', False)]
    if req.version < PAGED:
        return Page(most, sort=sort)
    return Page(limit_of(req, most), req.parameter('marker'), sort)


def link_of(req, collection: str, found: list[ProjectUsage], page: Page) -> list[dict[str, str]]:
    if not found or req.version < PAGED:
        return []
    counted = [server for usage in found for server in usage.servers]
    return next_link(req, collection, counted, page.limit, found[-1].last_server_id)


def moment_of(req, name: str) -> datetime | None:
    """None where the parameter is missing or empty; Invalid when it is in no form that this resource reads."""
    text = req.parameter(name)
    found = moment(text, FORMATS) if text else None
    if text and found is None:
        raise Invalid('Invalid datetime string: Datetime is in invalid format')
    return found
