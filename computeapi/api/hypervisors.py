"""/os-hypervisors: the resources of compute hosts, and their usage."""

import json
from typing import Any

from computeapi.api import pages
from computeapi.api.controller import ComputeController
from computeapi.api.types import (
    HOST,
    INTEGER,
    LENIENT_BOOLEAN,
    LINKS,
    NULLABLE_INTEGER,
    NULLABLE_STRING,
    OBJECT,
    STRING,
    UUID,
    uuid_id,
)
from computeapi.booleans import TRUE
from computeapi.db.hypervisors import SERVERS, USAGE, ComputeNode
from computeapi.errors import HypervisorNotFound, Invalid
from computeapi.versions import ABSENT, Versioned, added, before, changed, removed
from computeapi.web.contract import ADMIN, Field, Policy, Reader, View, attr
from computeapi.web.controller import api_version, operation
from computeapi.web.request import Request
from computeapi.web.schemas import array, closed, query, whole

LIST = Policy('os_compute_api:os-hypervisors:list', ADMIN, 'List the hypervisors')
DETAIL = Policy('os_compute_api:os-hypervisors:list-detail', ADMIN, 'List the hypervisors with their details')
STATISTICS = Policy('os_compute_api:os-hypervisors:statistics', ADMIN, 'Show statistics over all hypervisors')
SHOW = Policy('os_compute_api:os-hypervisors:show', ADMIN, 'Show a hypervisor')
UPTIME = Policy('os_compute_api:os-hypervisors:uptime', ADMIN, 'Show the uptime of a hypervisor')
SEARCH = Policy('os_compute_api:os-hypervisors:search', ADMIN, 'Search for hypervisors by name')
MEMBERS = Policy('os_compute_api:os-hypervisors:servers', ADMIN, 'List the servers on hypervisors')

PAGED, BY_UUID, NO_USAGE = '2.33', '2.53', '2.88'

# ------------------------------------------------------------------ requests

WITH_SERVERS = added(BY_UUID, LENIENT_BOOLEAN)
ONCE = changed({'2.1': False, BY_UUID: True})
LIST_QUERY = query(
    pages.parameters(PAGED) | {'hypervisor_hostname_pattern': added(BY_UUID, HOST), 'with_servers': WITH_SERVERS},
    strict=BY_UUID,
    single=ONCE,
)
SHOW_QUERY = query({'with_servers': WITH_SERVERS}, strict=BY_UUID, single=ONCE)

# ------------------------------------------------------------------ views


def members(hypervisor: ComputeNode) -> Any:
    """The servers, if they were requested."""
    if hypervisor.servers is None:
        return ABSENT
    return [{'uuid': each.uuid, 'name': each.domain_name} for each in hypervisor.servers]


def some_members(hypervisor: ComputeNode) -> Any:
    """The servers, if there are any: an empty list is omitted, as if they were not requested."""
    return members(hypervisor) or ABSENT


def used(name: str, schema: Any = INTEGER) -> Versioned:
    """A number that is shown until the version that removes usage."""
    return removed(NO_USAGE, Field(schema, attr(name), needs=(USAGE,)))


NUMBER_OR_UUID = changed({'2.1': Field(INTEGER, attr('id')), BY_UUID: Field(UUID, attr('uuid'))})
MEMBER_LIST = array(whole({'name': STRING, 'uuid': UUID}))
SOME_MEMBERS = Field(MEMBER_LIST, some_members, optional=True)
NAMED = {
    'id': NUMBER_OR_UUID,
    'hypervisor_hostname': Field(STRING, attr('hypervisor_hostname')),
    'state': Field(STRING, lambda hypervisor: 'up' if hypervisor.up else 'down'),
    'status': Field(STRING, lambda hypervisor: 'disabled' if hypervisor.service.disabled else 'enabled'),
}
BRIEF = NAMED | {'servers': changed({BY_UUID: SOME_MEMBERS, '2.75': Field(MEMBER_LIST, members, optional=True)})}
SERVICE_BRIEF = View(
    {
        'id': NUMBER_OR_UUID,
        'host': Field(STRING, attr('host')),
        'disabled_reason': Field(NULLABLE_STRING, attr('disabled_reason')),
    }
)


def service(req: Request) -> Reader:
    render = SERVICE_BRIEF.renderer(req)
    return lambda hypervisor: render(hypervisor.service)


SUMMARY = View(BRIEF)
FOUND = View(NAMED)
FOUND_WITH_SERVERS = View(NAMED | {'servers': SOME_MEMBERS})
SINCE = View(BRIEF | {'uptime': Field(STRING, attr('uptime'))})
AMOUNTS = {
    'vcpus': 'vcpus',
    'memory_mb': 'memory_mb',
    'local_gb': 'local_gb',
    'vcpus_used': 'usage.vcpus',
    'memory_mb_used': 'usage.memory_mb',
    'local_gb_used': 'usage.disk_gb',
    'free_ram_mb': 'free_memory_mb',
    'free_disk_gb': 'free_disk_gb',
    'disk_available_least': 'free_disk_gb',
    'running_vms': 'usage.servers',
    'current_workload': 'usage.workload',
}
"""The names of resources and their usage in the API, with their attributes in the record."""
HYPERVISOR = View(
    BRIEF
    | {
        'hypervisor_type': Field(STRING, attr('hypervisor_type')),
        'hypervisor_version': Field(INTEGER, attr('hypervisor_version')),
        'host_ip': Field(STRING, attr('host_ip')),
        'service': Field(SERVICE_BRIEF, service, request=True),
        'uptime': added(NO_USAGE, Field(NULLABLE_STRING, attr('uptime'))),
        'cpu_info': changed(
            {
                '2.1': Field(STRING, lambda hypervisor: json.dumps(hypervisor.cpu_info)),
                '2.28': Field(OBJECT, attr('cpu_info')),
                NO_USAGE: ABSENT,
            }
        ),
    }
    | {name: used(source) for name, source in AMOUNTS.items()}
    # Disks cannot outgrow their host, so the least available space is what is free now.
    | {'disk_available_least': used('free_disk_gb', NULLABLE_INTEGER)}
)
TOTALS = closed(dict.fromkeys(['count', *AMOUNTS], INTEGER), ['count', *AMOUNTS])


def listed(view: View) -> dict[str, Any]:
    return pages.schema('hypervisors', view, added(PAGED, LINKS))


class Hypervisors(ComputeController):
    """Hypervisors: the resources of compute hosts and their usage."""

    path = '/os-hypervisors'

    @operation('GET', policy=LIST, query=LIST_QUERY, response=listed(SUMMARY), errors=(404,))
    def index(self, req: Request) -> dict[str, Any]:
        """List the hypervisors."""
        return self.page(req, SUMMARY)

    @operation('GET', '/detail', policy=DETAIL, query=LIST_QUERY, response=listed(HYPERVISOR), errors=(404,))
    def detail(self, req: Request) -> dict[str, Any]:
        """List the hypervisors with their details."""
        return self.page(req, HYPERVISOR)

    def page(self, req: Request, view: View) -> dict[str, Any]:
        text, needs = req.parameter('hypervisor_hostname_pattern'), needed(req, view)
        if text is not None:
            if 'limit' in req.query or 'marker' in req.query:
                raise Invalid()
            return {'hypervisors': view.render_all(req, self.cloud.hypervisors.matching(text, needs))}
        page = pages.requested_page(req, self.cloud.max_limit)
        shown = view.render_all(req, self.cloud.hypervisors.page(page, needs))
        return pages.page_response(req, 'hypervisors', shown, page.limit)

    @operation('GET', '/statistics', policy=STATISTICS, response={'hypervisor_statistics': TOTALS})
    @api_version('2.1', before(NO_USAGE))
    def statistics(self, req: Request) -> dict[str, Any]:
        """Show statistics over the hypervisors of all enabled hosts."""
        found = self.cloud.hypervisors.enabled()
        sums = {name: sum(map(attr(source), found)) for name, source in AMOUNTS.items()}
        return {'hypervisor_statistics': {'count': len(found), **sums}}

    @operation('GET', '/{id}', policy=SHOW, query=SHOW_QUERY, response={'hypervisor': HYPERVISOR})
    def show(self, req: Request, id: str) -> dict[str, Any]:
        """Show a hypervisor by its number."""
        return self.shown(req, numbered(id))

    @api_version(BY_UUID)
    def show(self, req: Request, id: str) -> dict[str, Any]:
        """Show a hypervisor by its UUID."""
        return self.shown(req, uuid_id(id))

    def shown(self, req: Request, id: str) -> dict[str, Any]:
        found = self.cloud.hypervisors.get(id, needed(req, HYPERVISOR))
        return {'hypervisor': HYPERVISOR.render(req, found)}

    @operation('GET', '/{id}/uptime', policy=UPTIME, response={'hypervisor': SINCE})
    def uptime(self, req: Request, id: str) -> dict[str, Any]:
        """Show the uptime of a hypervisor, by its number."""
        return self.since(req, numbered(id))

    @api_version(BY_UUID, before(NO_USAGE))
    def uptime(self, req: Request, id: str) -> dict[str, Any]:
        """Show the uptime of a hypervisor, by its UUID."""
        return self.since(req, uuid_id(id))

    def since(self, req: Request, id: str) -> dict[str, Any]:
        found = self.cloud.hypervisors.get(id)
        if found.uptime is None:
            raise Invalid(f'Compute service of {found.host} is unavailable at this time.')
        return {'hypervisor': SINCE.render(req, found)}

    @operation('GET', '/{id}/search', policy=SEARCH, response={'hypervisors': array(FOUND)})
    @api_version('2.1', before(BY_UUID))
    def search(self, req: Request, id: str) -> dict[str, Any]:
        """Search for hypervisors by a part of their hostname."""
        return {'hypervisors': FOUND.render_all(req, self.cloud.hypervisors.matching(id))}

    @operation('GET', '/{id}/servers', policy=MEMBERS, response={'hypervisors': array(FOUND_WITH_SERVERS)})
    @api_version('2.1', before(BY_UUID))
    def servers(self, req: Request, id: str) -> dict[str, Any]:
        """List the servers on hypervisors, found by a part of their hostname."""
        found = self.cloud.hypervisors.matching(id, [SERVERS])
        return {'hypervisors': FOUND_WITH_SERVERS.render_all(req, found)}


def needed(req: Request, view: View) -> set[str]:
    requested = req.parameter('with_servers') in TRUE
    return {*view.needs(req), *([SERVERS] if requested else [])}


def numbered(id: str) -> str:
    """The ID, which must be a number."""
    if not id.isdecimal():
        raise HypervisorNotFound(id=id)
    return id
