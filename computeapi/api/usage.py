"""/os-simple-tenant-usage: the usage of projects in a period; /os-instance_usage_audit_log: its audits by hosts."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from computeapi.api import pages
from computeapi.api.controller import ComputeController
from computeapi.api.types import DATETIME, INTEGER, LINKS, STRING, UUID, exact_date, moment, parts
from computeapi.compute.usage import ProjectUsage
from computeapi.compute.usage_audits import Audit
from computeapi.db.listing import Page
from computeapi.errors import Invalid
from computeapi.versions import added
from computeapi.web.contract import ADMIN, READER_OR_ADMIN, Field, Policy, View, attr
from computeapi.web.controller import operation
from computeapi.web.paging import next_link
from computeapi.web.request import Request
from computeapi.web.schemas import array, closed, one_of, query

LIST = Policy('os_compute_api:os-simple-tenant-usage:list', ADMIN, 'List the usage of all projects')
SHOW = Policy('os_compute_api:os-simple-tenant-usage:show', READER_OR_ADMIN, 'Show the usage of a project')

PAGED, STRICT = '2.40', '2.75'

# ------------------------------------------------------------------ requests

FORMATS = ('%Y-%m-%dT%H:%M:%S', '%Y-%m-%dT%H:%M:%S.%f', '%Y-%m-%d %H:%M:%S.%f')
PERIOD = {'start': STRING, 'end': STRING}
PAGING = pages.parameters(PAGED)
SHOW_QUERY = query(PERIOD | PAGING, strict=STRICT)
LIST_QUERY = query(PERIOD | PAGING | {'detailed': STRING}, strict=STRICT)

# ------------------------------------------------------------------ views

HOURS = {'type': 'number'}
SERVER_USAGE = View(
    {
        'instance_id': Field(UUID, attr('server.uuid')),
        'name': Field(STRING, attr('server.name')),
        'tenant_id': Field(STRING, attr('server.project_id')),
        'flavor': Field(STRING, lambda usage: usage.server.flavor['name']),
        'vcpus': Field(INTEGER, attr('server.vcpus')),
        'memory_mb': Field(INTEGER, attr('server.memory_mb')),
        'local_gb': Field(INTEGER, attr('server.disk_gb')),
        'state': Field(STRING, attr('state')),
        'started_at': exact_date('server.launched_at', DATETIME),
        'ended_at': exact_date('server.terminated_at'),
        'hours': Field(HOURS, attr('hours')),
        'uptime': Field(INTEGER, lambda usage: int(usage.uptime.total_seconds())),
    }
)
SUMMARY = {
    'tenant_id': Field(STRING, attr('project_id')),
    'start': exact_date('start', DATETIME),
    'stop': exact_date('stop', DATETIME),
    'total_hours': Field(HOURS, attr('hours')),
    'total_vcpus_usage': Field(HOURS, attr('vcpu_hours')),
    'total_memory_mb_usage': Field(HOURS, attr('memory_mb_hours')),
    'total_local_gb_usage': Field(HOURS, attr('disk_gb_hours')),
}
USAGE = View(SUMMARY)
DETAILED = View(SUMMARY | {'server_usages': parts(SERVER_USAGE, 'servers')})
LINKED = added(PAGED, LINKS)
LISTED = pages.schema('tenant_usages', {'anyOf': [USAGE, DETAILED]}, LINKED)
SHOWN = closed({'tenant_usage': {'anyOf': [DETAILED, closed({})]}, 'tenant_usage_links': LINKED}, ['tenant_usage'])


class SimpleTenantUsage(ComputeController):
    """The usage of projects in a period."""

    path = '/os-simple-tenant-usage'
    any_name = True

    def target(self, req: Request, parameters: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The project in the path, if there is one."""
        return {'project_id': parameters['id']} if 'id' in parameters else None

    @operation('GET', policy=LIST, query=LIST_QUERY, response=LISTED)
    def index(self, req: Request) -> dict[str, Any]:
        """List the usage of all projects: without start and end at this moment, with detailed=1 in detail."""
        found, links = self.usage(req)
        view = DETAILED if req.first_parameter('detailed') == '1' else USAGE
        return {'tenant_usages': view.render_all(req, found)} | ({'tenant_usages_links': links} if links else {})

    @operation('GET', '/{id}', policy=SHOW, query=SHOW_QUERY, response=SHOWN)
    def show(self, req: Request, id: str) -> dict[str, Any]:
        """Show the usage of a project and of each of its servers."""
        found, links = self.usage(req, id=id)
        shown = DETAILED.render(req, found[0]) if found else {}
        return {'tenant_usage': shown} | ({'tenant_usage_links': links} if links else {})

    def usage(self, req: Request, **project: str) -> tuple[list[ProjectUsage], list[dict[str, str]]]:
        """The usage of the servers on a page, and the link to the next page.

        At versions without pages, only the first servers are counted, as many as fit on a page.
        """
        max_limit = self.cloud.max_limit
        page = pages.requested_page(req, max_limit)
        counted = Page(max_limit if page.limit is None else page.limit, page.marker)
        start, end = moment_of(req, 'start'), moment_of(req, 'end')
        found = self.cloud.usage.page(start, end, counted, project_id=project.get('id'))
        servers = [server for usage in found for server in usage.servers]
        last = found[-1].last_server_id if found else ''
        return found, next_link(req, servers, page.limit, last, **project)


def moment_of(req: Request, name: str) -> datetime | None:
    """None if the parameter is missing or empty; Invalid if it has none of the formats that this resource accepts."""
    text = req.first_parameter(name)
    found = moment(text, FORMATS) if text else None
    if text and found is None:
        raise Invalid('Invalid datetime string: Datetime is in invalid format')
    return found


# ------------------------------------------------------------------ audits

LAST_AUDIT = Policy('os_compute_api:os-instance-usage-audit-log:list', ADMIN, 'Show the usage audit of the last month')
AUDIT_BEFORE = Policy(
    'os_compute_api:os-instance-usage-audit-log:show', ADMIN, 'Show the usage audit of an earlier month'
)

AUDIT_FORMATS = ('%Y-%m-%d %H:%M:%S', '%Y-%m-%d %H:%M:%S.%f')


def done(audit: Audit) -> int:
    return len(audit.counts) if audit.is_done else 0


def overall(audit: Audit) -> str:
    all_done = not audit.hosts_not_run and done(audit) == len(audit.counts)
    return f'{"ALL" if all_done else f"{done(audit)} of {len(audit.hosts)}"} hosts done. 0 errors.'


def log(audit: Audit) -> dict[str, dict[str, Any]]:
    """What is known of each host."""
    state = 'DONE' if audit.is_done else 'RUNNING'
    return {
        host: {'state': state, 'instances': count, 'errors': 0, 'message': f'{count} instances were used.'}
        for host, count in audit.counts.items()
    }


HOST_LOG = closed({'state': one_of('DONE', 'RUNNING'), 'instances': INTEGER, 'errors': INTEGER, 'message': STRING})
AUDIT = View(
    {
        'period_beginning': Field(STRING, lambda audit: str(audit.period.begin)),
        'period_ending': Field(STRING, lambda audit: str(audit.period.end)),
        'num_hosts': Field(INTEGER, lambda audit: len(audit.hosts)),
        'num_hosts_done': Field(INTEGER, done),
        'num_hosts_running': Field(INTEGER, lambda audit: len(audit.counts) - done(audit)),
        'num_hosts_not_run': Field(INTEGER, lambda audit: len(audit.hosts_not_run)),
        'hosts_not_run': Field(array(STRING), attr('hosts_not_run')),
        'total_instances': Field(INTEGER, lambda audit: sum(audit.counts.values())),
        # A failure rolls back the step of the audit, which is repeated.
        'total_errors': Field({'const': 0}, lambda audit: 0),
        'overall_status': Field(STRING, overall),
        'log': Field({'type': 'object', 'additionalProperties': HOST_LOG}, log),
    }
)


class InstanceUsageAuditLog(ComputeController):
    """Usage audits: how many servers of each host were used in a period."""

    path = '/os-instance_usage_audit_log'
    any_name = True

    @operation('GET', policy=LAST_AUDIT, response={'instance_usage_audit_logs': AUDIT})
    def index(self, req: Request) -> dict[str, Any]:
        """Show the usage audit of the last period, by default a month."""
        return {'instance_usage_audit_logs': AUDIT.render(req, self.cloud.usage_audits.last())}

    @operation('GET', '/{id}', policy=AUDIT_BEFORE, response={'instance_usage_audit_log': AUDIT})
    def show(self, req: Request, id: str) -> dict[str, Any]:
        """Show the usage audit of the last period before a given time."""
        before = moment(id, AUDIT_FORMATS)
        if before is None:
            raise Invalid(f'Invalid timestamp for date {id}')
        return {'instance_usage_audit_log': AUDIT.render(req, self.cloud.usage_audits.last(before))}
