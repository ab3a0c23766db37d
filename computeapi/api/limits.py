"""/limits: what a project may have and has, in the words of its clients."""

from typing import Any

from computeapi.api.controller import ComputeController
from computeapi.api.types import INTEGER, STRING
from computeapi.versions import removed
from computeapi.web.contract import ADMIN, ANYONE, Field, Policy, View, closed, query
from computeapi.web.controller import operation
from computeapi.web.request import Request

SHOW = Policy('os_compute_api:limits', ANYONE, 'Show the limits of the own project')
OTHER_PROJECT = Policy('os_compute_api:limits:other_project', ADMIN, 'Show the limits of another project')


def limit(resource: str) -> Field:
    return Field(INTEGER, lambda project: project.limits[resource])


def used(resource: str) -> Field:
    return Field(INTEGER, lambda project: project.used[resource])


NO_NETWORKS, NO_PERSONALITY = '2.36', '2.57'
ABSOLUTE = View(
    {
        'maxTotalInstances': limit('instances'),
        'maxTotalCores': limit('cores'),
        'maxTotalRAMSize': limit('ram'),
        'maxTotalKeypairs': limit('key_pairs'),
        'maxServerMeta': limit('metadata_items'),
        'maxServerGroups': limit('server_groups'),
        'maxServerGroupMembers': limit('server_group_members'),
        'maxTotalFloatingIps': removed(NO_NETWORKS, limit('floating_ips')),
        'maxSecurityGroups': removed(NO_NETWORKS, limit('security_groups')),
        'maxSecurityGroupRules': removed(NO_NETWORKS, limit('security_group_rules')),
        'maxImageMeta': removed('2.39', limit('metadata_items')),
        'maxPersonality': removed(NO_PERSONALITY, limit('injected_files')),
        'maxPersonalitySize': removed(NO_PERSONALITY, limit('injected_file_content_bytes')),
        'totalInstancesUsed': used('instances'),
        'totalCoresUsed': used('cores'),
        'totalRAMUsed': used('ram'),
        'totalServerGroupsUsed': used('server_groups'),
        'totalFloatingIpsUsed': removed(NO_NETWORKS, used('floating_ips')),
        'totalSecurityGroupsUsed': removed(NO_NETWORKS, used('security_groups')),
    }
)
# How often clients may ask is not limited here, and the list of such limits is empty.
LIMITS = closed(
    {'absolute': ABSOLUTE, 'rate': {'type': 'array', 'maxItems': 0}},
    required=['absolute', 'rate'],
)


class Limits(ComputeController):
    """What a project may have and has."""

    @operation(
        'GET',
        '/limits',
        policy=SHOW,
        also=(OTHER_PROJECT,),
        query=query({'tenant_id': STRING}, strict='2.75', legacy=False),
        response={'limits': LIMITS},
    )
    def index(self, req: Request) -> dict[str, Any]:
        """Show the limits of the own project or, for administrators, of another."""
        project_id = req.parameter('tenant_id')
        if project_id:
            req.check(OTHER_PROJECT)
        usage = self.cloud.quotas.usage(project_id or req.context.project_id or '')
        return {'limits': {'absolute': ABSOLUTE.render(req, usage), 'rate': []}}
