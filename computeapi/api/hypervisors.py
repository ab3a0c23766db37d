"""/os-hypervisors: what the compute hosts have and what is taken of it."""

import json

from computeapi.api.controller import ComputeController
from computeapi.api.types import FALSE, INTEGER, LIMIT, LINKS, MARKER, NULLABLE_STRING, OBJECT, STRING, TRUE, UUID
from computeapi.db.hypervisors import SERVERS, USAGE, ComputeNode
from computeapi.db.listing import Page
from computeapi.errors import HypervisorNotFound, Invalid
from computeapi.versions import ABSENT, APIVersionRequest, added, changed, removed
from computeapi.web.contract import ADMIN, Field, Policy, View, attr, closed, query
from computeapi.web.controller import api_version, operation
from computeapi.web.formats import uuid_like
from computeapi.web.paging import limit_of, next_link

# ------------------------------------------------------------------ policies

LIST = Policy('os_compute_api:os-hypervisors:list', ADMIN, 'List the hypervisors')
DETAIL = Policy('os_compute_api:os-hypervisors:list-detail', ADMIN, 'List the hypervisors with their details')
STATISTICS = Policy('os_compute_api:os-hypervisors:statistics', ADMIN, 'Sum up all hypervisors')
SHOW = Policy('os_compute_api:os-hypervisors:show', ADMIN, 'Show a hypervisor')
UPTIME = Policy('os_compute_api:os-hypervisors:uptime', ADMIN, 'Show since when a hypervisor runs')
SEARCH = Policy('os_compute_api:os-hypervisors:search', ADMIN, 'Find hypervisors by their names')
MEMBERS = Policy('os_compute_api:os-hypervisors:servers', ADMIN, 'List the servers on hypervisors')

PAGED = APIVersionRequest.parse('2.33')
BY_UUID = APIVersionRequest.parse('2.53')
EMPTY_SERVERS = APIVersionRequest.parse('2.75')

# ------------------------------------------------------------------ requests

WITH_SERVERS = added('2.53', {'type': ['string', 'boolean'], 'enum': [True, *TRUE, False, *FALSE]})
ONCE = changed({'2.1': False, '2.53': True})
LIST_QUERY = query(
    {
        'limit': added('2.33', LIMIT),
        'marker': added('2.33', MARKER),
        'hypervisor_hostname_pattern': added('2.53', STRING),
        'with_servers': WITH_SERVERS,
    },
    strict='2.53',
    single=ONCE,
)
SHOW_QUERY = query({'with_servers': WITH_SERVERS}, strict='2.53', single=ONCE)

# ------------------------------------------------------------------ views


def members(hypervisor: ComputeNode):
    return [{'uuid': each.uuid, 'name': each.name} for each in hypervisor.servers or ()]


def asked_members(hypervisor: ComputeNode, req):
    """Until 2.75 what has no servers looks as if nobody had asked."""
    shown = hypervisor.servers or (hypervisor.servers is not None and req.version >= EMPTY_SERVERS)
    return members(hypervisor) if shown else ABSENT


def number(name: str) -> Field:
    return Field(INTEGER, attr(name))


def used(get) -> object:
    """A number that is worked out from what is taken of the hypervisor."""
    return removed('2.88', Field(INTEGER, get, needs=(USAGE,)))


NUMBER_OR_UUID = changed({'2.1': number('id'), '2.53': Field(UUID, attr('uuid'))})
MEMBER_LIST = {'type': 'array', 'items': closed({'name': STRING, 'uuid': UUID}, ['name', 'uuid'])}
NAMED = {
    'id': NUMBER_OR_UUID,
    'hypervisor_hostname': Field(STRING, attr('hypervisor_hostname')),
    'state': Field(STRING, lambda hypervisor: 'up' if hypervisor.up else 'down'),
    'status': Field(STRING, lambda hypervisor: 'disabled' if hypervisor.service.disabled else 'enabled'),
}
BRIEF = NAMED | {'servers': added('2.53', Field(MEMBER_LIST, asked_members, request=True, optional=True))}
SERVICE = View(
    {
        'id': NUMBER_OR_UUID,
        'host': Field(STRING, attr('host')),
        'disabled_reason': Field(NULLABLE_STRING, attr('disabled_reason')),
    }
)
SUMMARY = View(BRIEF)
FOUND = View(NAMED)
FOUND_WITH_SERVERS = View(
    NAMED | {'servers': Field(MEMBER_LIST, lambda hypervisor: members(hypervisor) or ABSENT, optional=True)}
)
SINCE = View(BRIEF | {'uptime': Field(STRING, attr('uptime'))})
HYPERVISOR = View(
    BRIEF
    | {
        'hypervisor_type': Field(STRING, attr('hypervisor_type')),
        'hypervisor_version': number('hypervisor_version'),
        'host_ip': Field(STRING, attr('host_ip')),
        'service': Field(SERVICE, lambda hypervisor, req: SERVICE.render(req, hypervisor.service), request=True),
        'uptime': added('2.88', Field(NULLABLE_STRING, attr('uptime'))),
        'cpu_info': changed(
            {
                '2.1': Field(STRING, lambda hypervisor: json.dumps(hypervisor.cpu_info)),
                '2.28': Field(OBJECT, attr('cpu_info')),
                '2.88': ABSENT,
            }
        ),
        'vcpus': removed('2.88', number('vcpus')),
        'memory_mb': removed('2.88', number('memory_mb')),
        'local_gb': removed('2.88', number('local_gb')),
        'vcpus_used': used(attr('usage.vcpus')),
        'memory_mb_used': used(attr('usage.memory_mb')),
        'local_gb_used': used(attr('usage.disk_gb')),
        'free_ram_mb': used(attr('free_memory_mb')),
        'free_disk_gb': used(attr('free_disk_gb')),
        # Disks are not allowed to outgrow their host: what is free now is the least that will be.
        'disk_available_least': removed('2.88', Field({'type': ['integer', 'null']}, attr('free_disk_gb'), (USAGE,))),
        'running_vms': used(attr('usage.servers')),
        'current_workload': used(attr('usage.workload')),
    }
)

SUMMED = {
    'vcpus': attr('vcpus'),
    'memory_mb': attr('memory_mb'),
    'local_gb': attr('local_gb'),
    'vcpus_used': attr('usage.vcpus'),
    'memory_mb_used': attr('usage.memory_mb'),
    'local_gb_used': attr('usage.disk_gb'),
    'free_ram_mb': attr('free_memory_mb'),
    'free_disk_gb': attr('free_disk_gb'),
    'disk_available_least': attr('free_disk_gb'),
    'running_vms': attr('usage.servers'),
    'current_workload': attr('usage.workload'),
}
TOTALS = closed(dict.fromkeys(['count', *SUMMED], INTEGER), ['count', *SUMMED])


def listed(view: View, **more) -> dict:
    return closed({'hypervisors': {'type': 'array', 'items': view}, **more}, ['hypervisors'])


def pages(view: View) -> dict:
    """The answer of a list: hypervisors and, when there may be more, a link to the next page."""
    return listed(view, hypervisors_links=added('2.33', LINKS))


# ------------------------------------------------------------------ controller


class Hypervisors(ComputeController):
    """What the compute hosts have and what is taken of it."""

    path = '/os-hypervisors'

    @operation('GET', policy=LIST, query=LIST_QUERY, response=pages(SUMMARY), errors=(400, 404))
    def index(self, req):
        """List the hypervisors."""
        return self.page(req, SUMMARY, 'os-hypervisors')

    @operation('GET', '/detail', policy=DETAIL, query=LIST_QUERY, response=pages(HYPERVISOR), errors=(400, 404))
    def detail(self, req):
        """List the hypervisors with their details."""
        return self.page(req, HYPERVISOR, 'os-hypervisors/detail')

    def page(self, req, view, collection):
        text, needs = req.parameter('hypervisor_hostname_pattern'), needed(req, view)
        if text is not None:
            if 'limit' in req.query or 'marker' in req.query:
                raise Invalid('limit and marker cannot be given together with hypervisor_hostname_pattern.')
            return {'hypervisors': view.render_all(req, self.cloud.hypervisors.matching(text, needs))}
        limit = limit_of(req, self.cloud.max_limit) if req.version >= PAGED else None
        found = self.cloud.hypervisors.page(Page(limit, req.parameter('marker')), needs)
        body = {'hypervisors': view.render_all(req, found)}
        link = next_link(req, collection, found, limit, identifier(req, found[-1]) if found else '')
        return body | ({'hypervisors_links': link} if link else {})

    @operation('GET', '/statistics', policy=STATISTICS, response={'hypervisor_statistics': TOTALS})
    @api_version('2.1', '2.87')
    def statistics(self, req):
        """Sum up the hypervisors of all hosts that are in use."""
        found = self.cloud.hypervisors.enabled()
        sums = {name: sum(map(get, found)) for name, get in SUMMED.items()}
        return {'hypervisor_statistics': {'count': len(found), **sums}}

    @operation('GET', '/{id}', policy=SHOW, query=SHOW_QUERY, response={'hypervisor': HYPERVISOR}, errors=(400, 404))
    def show(self, req, id):
        """Show a hypervisor."""
        return {'hypervisor': HYPERVISOR.render(req, self.get(req, id, needed(req, HYPERVISOR)))}

    @operation('GET', '/{id}/uptime', policy=UPTIME, response={'hypervisor': SINCE}, errors=(400, 404))
    @api_version('2.1', '2.87')
    def uptime(self, req, id):
        """Show since when a hypervisor runs."""
        found = self.get(req, id)
        if found.uptime is None:
            raise Invalid(f'Compute service of {found.host} is unavailable at this time.')
        return {'hypervisor': SINCE.render(req, found)}

    @operation('GET', '/{id}/search', policy=SEARCH, response=listed(FOUND), errors=(404,))
    @api_version('2.1', '2.52')
    def search(self, req, id):
        """Find the hypervisors that have a text in their hostname."""
        return {'hypervisors': FOUND.render_all(req, self.cloud.hypervisors.matching(id))}

    @operation('GET', '/{id}/servers', policy=MEMBERS, response=listed(FOUND_WITH_SERVERS), errors=(404,))
    @api_version('2.1', '2.52')
    def servers(self, req, id):
        """List the servers on the hypervisors that have a text in their hostname."""
        found = self.cloud.hypervisors.matching(id, [SERVERS])
        return {'hypervisors': FOUND_WITH_SERVERS.render_all(req, found)}

    def get(self, req, id, needs=()):
        """By a number, and from 2.53 by a UUID."""
        if req.version >= BY_UUID and not uuid_like(id):
            raise Invalid(f'Invalid uuid {id}')
        if req.version < BY_UUID and not id.isdecimal():
            raise HypervisorNotFound(id=id)
        return self.cloud.hypervisors.get(id, needs)


def needed(req, view: View) -> set[str]:
    asked = req.parameter('with_servers') in TRUE
    return {*view.needs(req), *([SERVERS] if asked else [])}


def identifier(req, hypervisor: ComputeNode) -> str:
    return hypervisor.uuid if req.version >= BY_UUID else str(hypervisor.id)
