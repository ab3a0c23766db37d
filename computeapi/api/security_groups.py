"""/os-security-groups and /os-security-group-rules, until 2.35; and the representation of security groups."""

from typing import Any

from computeapi.api import pages
from computeapi.api.controller import ComputeController
from computeapi.api.gone import PROXIES
from computeapi.api.types import ANYTHING, NULLABLE_INTEGER, NULLABLE_STRING, STRING, TEXT, UUID, parts
from computeapi.compute.security_groups import Rule
from computeapi.web.contract import MEMBER_OR_ADMIN, READER_OR_ADMIN, Field, Policy, View, attr
from computeapi.web.controller import operation
from computeapi.web.paging import window_of
from computeapi.web.request import Request
from computeapi.web.schemas import array, closed, query

LIST = Policy('os_compute_api:os-security-groups:get', READER_OR_ADMIN, 'List security groups')
SHOW = Policy('os_compute_api:os-security-groups:show', READER_OR_ADMIN, 'Show a security group')
CREATE = Policy('os_compute_api:os-security-groups:create', MEMBER_OR_ADMIN, 'Create a security group')
UPDATE = Policy('os_compute_api:os-security-groups:update', MEMBER_OR_ADMIN, 'Update a security group')
DELETE = Policy('os_compute_api:os-security-groups:delete', MEMBER_OR_ADMIN, 'Delete a security group')
CREATE_RULE = Policy('os_compute_api:os-security-groups:rule:create', MEMBER_OR_ADMIN, 'Create a security group rule')
DELETE_RULE = Policy('os_compute_api:os-security-groups:rule:delete', MEMBER_OR_ADMIN, 'Delete a security group rule')

# ------------------------------------------------------------------ requests


def lenient(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    """An object that accepts any other keys as well, as these always have."""
    return {'type': 'object', 'properties': properties, 'required': required, 'additionalProperties': True}


GROUP_BODY = lenient(
    {'security_group': lenient({'name': TEXT, 'description': TEXT}, ['name', 'description'])}, ['security_group']
)
RULE_BODY = lenient(
    {
        'security_group_rule': lenient(
            {
                'group_id': NULLABLE_STRING | {'format': 'uuid'},
                'parent_group_id': UUID,
                # Validated only after the groups were found, as these were never validated by a schema.
                **dict.fromkeys(('ip_protocol', 'from_port', 'to_port', 'cidr'), ANYTHING),
            },
            ['parent_group_id'],
        )
    },
    ['security_group_rule'],
)
LIST_QUERY = query(pages.WINDOW | {'all_tenants': STRING})

# ------------------------------------------------------------------ views


def source_of(rule: Rule) -> dict[str, str]:
    """The source group of the rule, if it has one."""
    return {'name': rule.source.name, 'tenant_id': rule.source.project_id} if rule.source else {}


RULE = View(
    {
        'id': Field(STRING, attr('id')),
        'parent_group_id': Field(STRING, attr('group_id')),
        'ip_protocol': Field(NULLABLE_STRING, attr('protocol')),
        'from_port': Field(NULLABLE_INTEGER, attr('from_port')),
        'to_port': Field(NULLABLE_INTEGER, attr('to_port')),
        'ip_range': Field(closed({'cidr': STRING}), lambda rule: {'cidr': rule.cidr} if rule.cidr else {}),
        'group': Field(closed({'name': STRING, 'tenant_id': STRING}), source_of),
    }
)
SECURITY_GROUP = View(
    {
        'id': Field(STRING, attr('group.id')),
        'name': Field(STRING, attr('group.name')),
        'description': Field(STRING, attr('group.description')),
        'tenant_id': Field(STRING, attr('group.project_id')),
        'rules': parts(RULE, 'rules'),
    }
)


class SecurityGroups(ComputeController):
    """A proxy to security groups, until 2.35; later clients use the network service."""

    path = '/os-security-groups'
    versions = PROXIES

    @operation('GET', policy=LIST, query=LIST_QUERY, response={'security_groups': array(SECURITY_GROUP)}, errors=(404,))
    def index(self, req: Request) -> dict[str, Any]:
        """List security groups."""
        limit, offset = window_of(req, self.cloud.max_limit)
        everybody = req.context.is_admin and 'all_tenants' in req.query
        found = self.cloud.security_groups.list(req.context, limit, offset, all_projects=everybody)
        return {'security_groups': SECURITY_GROUP.render_all(req, found)}

    @operation('GET', '/{id}', policy=SHOW, response={'security_group': SECURITY_GROUP})
    def show(self, req: Request, id: str) -> dict[str, Any]:
        """Show a security group."""
        return {'security_group': SECURITY_GROUP.render(req, self.cloud.security_groups.get(req.context, id))}

    @operation('POST', policy=CREATE, body=GROUP_BODY, response={'security_group': SECURITY_GROUP})
    def create(self, req: Request, body: Any) -> dict[str, Any]:
        """Create a security group."""
        wanted = body['security_group']
        group = self.cloud.security_groups.create(req.context, wanted['name'], wanted['description'])
        return {'security_group': SECURITY_GROUP.render(req, group)}

    @operation('PUT', '/{id}', policy=UPDATE, body=GROUP_BODY, response={'security_group': SECURITY_GROUP})
    def update(self, req: Request, id: str, body: Any) -> dict[str, Any]:
        """Update the name and description of a security group."""
        wanted = body['security_group']
        group = self.cloud.security_groups.update(req.context, id, wanted['name'], wanted['description'])
        return {'security_group': SECURITY_GROUP.render(req, group)}

    @operation('DELETE', '/{id}', policy=DELETE, status=202)
    def delete(self, req: Request, id: str) -> None:
        """Delete a security group."""
        self.cloud.security_groups.delete(req.context, id)


class SecurityGroupRules(ComputeController):
    """A proxy to the rules of security groups, until 2.35."""

    path = '/os-security-group-rules'
    versions = PROXIES

    @operation('POST', policy=CREATE_RULE, body=RULE_BODY, response={'security_group_rule': RULE}, errors=(404,))
    def create(self, req: Request, body: Any) -> dict[str, Any]:
        """Create a security group rule, which allows incoming traffic from a network or another group."""
        rule = self.cloud.security_groups.add_rule(req.context, body['security_group_rule'])
        return {'security_group_rule': RULE.render(req, rule)}

    @operation('DELETE', '/{id}', policy=DELETE_RULE, status=202, errors=(409,))
    def delete(self, req: Request, id: str) -> None:
        """Delete a security group rule."""
        self.cloud.security_groups.delete_rule(req.context, id)
