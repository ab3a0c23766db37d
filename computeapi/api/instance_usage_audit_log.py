"""/os-instance_usage_audit_log: which hosts have audited what their servers used in a month."""

from typing import Any

from computeapi.api.controller import ComputeController
from computeapi.api.types import INTEGER, OBJECT, STRING, moment
from computeapi.compute.usage_audits import Audit
from computeapi.errors import Invalid
from computeapi.web.contract import ADMIN, Field, Policy, View, array, attr
from computeapi.web.controller import operation
from computeapi.web.request import Request

LIST = Policy('os_compute_api:os-instance-usage-audit-log:list', ADMIN, 'Show the audit of the last month')
SHOW = Policy('os_compute_api:os-instance-usage-audit-log:show', ADMIN, 'Show the audit of an earlier month')

FORMATS = ('%Y-%m-%d %H:%M:%S', '%Y-%m-%d %H:%M:%S.%f')


def hosts(audit: Audit) -> int:
    return len(audit.hosts_not_run)


def overall(audit: Audit) -> str:
    return f'0 of {hosts(audit)} hosts done. 0 errors.' if hosts(audit) else 'ALL hosts done. 0 errors.'


# Of hosts that have audited, and of what they found, there is nothing to tell: see compute.usage_audits.
NONE = Field({'const': 0}, lambda audit: 0)
AUDIT = View(
    {
        'period_beginning': Field(STRING, lambda audit: str(audit.begin)),
        'period_ending': Field(STRING, lambda audit: str(audit.end)),
        'num_hosts': Field(INTEGER, hosts),
        'num_hosts_done': NONE,
        'num_hosts_running': NONE,
        'num_hosts_not_run': Field(INTEGER, hosts),
        'hosts_not_run': Field(array(STRING), attr('hosts_not_run')),
        'total_instances': NONE,
        'total_errors': NONE,
        'overall_status': Field(STRING, overall),
        'log': Field(OBJECT | {'maxProperties': 0}, lambda audit: {}),
    }
)


class InstanceUsageAuditLog(ComputeController):
    """Which hosts have audited what their servers used in a month."""

    path = '/os-instance_usage_audit_log'

    @operation('GET', policy=LIST, response={'instance_usage_audit_logs': AUDIT})
    def index(self, req: Request) -> dict[str, Any]:
        """Show the audit of the last month."""
        return {'instance_usage_audit_logs': AUDIT.render(req, self.cloud.usage_audits.last())}

    @operation('GET', '/{id}', policy=SHOW, response={'instance_usage_audit_log': AUDIT})
    def show(self, req: Request, id: str) -> dict[str, Any]:
        """Show the audit of the last month before a moment."""
        before = moment(id, FORMATS)
        if before is None:
            raise Invalid(f'Invalid timestamp for date {id}')
        return {'instance_usage_audit_log': AUDIT.render(req, self.cloud.usage_audits.last(before))}
