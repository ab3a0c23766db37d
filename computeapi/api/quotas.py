"""/os-quota-sets, /os-quota-class-sets and /limits: the quotas of projects, and of users in them."""

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any

from computeapi.api.controller import ComputeController
from computeapi.api.types import INTEGER, LENIENT_BOOLEAN, MAX_INTEGER, STRING, TEXT
from computeapi.booleans import is_true
from computeapi.compute.quotas import NETWORK
from computeapi.errors import Invalid
from computeapi.versions import added, removed
from computeapi.web.contract import ADMIN, ANYONE, READER_OR_ADMIN, Field, Policy, View
from computeapi.web.controller import operation
from computeapi.web.request import Request
from computeapi.web.schemas import closed, lone, query, whole

SHOW = Policy('os_compute_api:os-quota-sets:show', READER_OR_ADMIN, 'Show the quotas of a project')
DETAIL = Policy('os_compute_api:os-quota-sets:detail', READER_OR_ADMIN, 'Show the quotas of a project and their usage')
DEFAULTS = Policy('os_compute_api:os-quota-sets:defaults', ANYONE, 'Show the default quotas of a project')
UPDATE = Policy('os_compute_api:os-quota-sets:update', ADMIN, 'Change the quotas of a project')
DELETE = Policy('os_compute_api:os-quota-sets:delete', ADMIN, 'Reset the quotas of a project to the defaults')
SHOW_CLASS = Policy('os_compute_api:os-quota-class-sets:show', ADMIN, 'Show the quotas of a quota class')
UPDATE_CLASS = Policy('os_compute_api:os-quota-class-sets:update', ADMIN, 'Change the quotas of a quota class')
SHOW_LIMITS = Policy('os_compute_api:limits', ANYONE, "Show the limits of the caller's project")
OTHER_PROJECT = Policy('os_compute_api:limits:other_project', ADMIN, 'Show the limits of another project')

# ------------------------------------------------------------------ resources

LASTING = ('instances', 'cores', 'ram', 'metadata_items', 'key_pairs')
GROUPS = ('server_groups', 'server_group_members')
NO_NETWORKS, NO_PERSONALITY = '2.36', '2.57'
INJECTED = ('injected_files', 'injected_file_content_bytes', 'injected_file_path_bytes')


def each_resource(leaf: Callable[[str], Any], networks_until: str) -> dict[str, Any]:
    """{resource: leaf(resource)}, for the versions at which the API has the resource."""
    return (
        {name: leaf(name) for name in LASTING + GROUPS}
        | {name: removed(NO_PERSONALITY, leaf(name)) for name in INJECTED}
        | {name: removed(networks_until, leaf(name)) for name in NETWORK}
    )


def chosen(facts: dict[str, Any]) -> dict[str, int]:
    """The limits that a client sent; requests to /v2 may have other keys."""
    known = {*LASTING, *GROUPS, *INJECTED, *NETWORK}
    return {name: int(value) for name, value in facts.items() if name in known}


# ------------------------------------------------------------------ requests

QUOTA = {'type': ['integer', 'string'], 'pattern': '^-?[0-9]+$', 'minimum': -1, 'maximum': MAX_INTEGER}
UPDATE_BODY = lone('quota_set', closed(each_resource(lambda name: QUOTA, NO_NETWORKS) | {'force': LENIENT_BOOLEAN}))
USER_QUERY = query({'user_id': STRING}, strict='2.75')
# The value is stored, so it must fit its column.
UPDATE_QUERY = query({'user_id': TEXT}, strict='2.75')
DEFAULTS_QUERY = query({}, strict=None)

# ------------------------------------------------------------------ views

USE = whole({'limit': INTEGER, 'in_use': INTEGER, 'reserved': INTEGER})
ID = {'id': Field(STRING, itemgetter('id'))}
QUOTA_SET = View(ID | each_resource(lambda name: Field(INTEGER, itemgetter(name)), NO_NETWORKS))
UPDATED = QUOTA_SET.without('id')
QUOTA_SET_DETAIL = View(ID | each_resource(lambda name: Field(USE, itemgetter(name)), NO_NETWORKS))


def use(limit: int, used: int) -> dict[str, int]:
    """A limit and its use; nothing is ever reserved in advance."""
    return {'limit': limit, 'in_use': used, 'reserved': 0}


class QuotaSets(ComputeController):
    """Quotas of projects, and of users in them."""

    path = '/os-quota-sets/{id}'
    any_name = True

    def target(self, req: Request, parameters: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The project in the path."""
        return {'project_id': parameters['id']}

    @operation('GET', policy=SHOW, query=USER_QUERY, response={'quota_set': QUOTA_SET})
    def show(self, req: Request, id: str) -> dict[str, Any]:
        """Show the quotas of a project, or of one user in it."""
        self.cloud.projects.check(req.context, id)
        limits = self.cloud.quotas.limits(id, user_of(req))
        return {'quota_set': QUOTA_SET.render(req, {'id': id, **limits})}

    @operation('GET', '/detail', policy=DETAIL, query=USER_QUERY, response={'quota_set': QUOTA_SET_DETAIL})
    def detail(self, req: Request, id: str) -> dict[str, Any]:
        """Show the quotas of a project, or of one user in it, and their usage."""
        self.cloud.projects.check(req.context, id)
        limits, used = self.cloud.quotas.usage(id, user_of(req))
        uses = {name: use(limit, used[name]) for name, limit in limits.items()}
        return {'quota_set': QUOTA_SET_DETAIL.render(req, {'id': id, **uses})}

    @operation('GET', '/defaults', policy=DEFAULTS, query=DEFAULTS_QUERY, response={'quota_set': QUOTA_SET})
    def defaults(self, req: Request, id: str) -> dict[str, Any]:
        """Show the default quotas of a project."""
        self.cloud.projects.check(req.context, id)
        return {'quota_set': QUOTA_SET.render(req, {'id': id, **self.cloud.quotas.class_limits()})}

    @operation('PUT', policy=UPDATE, query=UPDATE_QUERY, body=UPDATE_BODY, response={'quota_set': UPDATED})
    def update(self, req: Request, id: str, body: Any) -> dict[str, Any]:
        """Change quotas of a project, or of one user in it."""
        self.cloud.projects.check(req.context, id)
        facts = body['quota_set']
        force = is_true(facts.get('force', False))
        limits = self.cloud.quotas.set_limits(id, chosen(facts), user_id=user_of(req), force=force)
        return {'quota_set': UPDATED.render(req, limits)}

    @operation('DELETE', policy=DELETE, query=USER_QUERY, status=202)
    def delete(self, req: Request, id: str) -> None:
        """Reset the quotas of a project, or of one user in it, to the defaults."""
        self.cloud.quotas.reset(id, user_of(req))


def user_of(req: Request) -> str | None:
    """The user in the project that a request is about; None: the whole project."""
    return req.first_parameter('user_id')


# ------------------------------------------------------------------ quota classes

GROUPS_NO_NETWORKS = '2.50'
UPDATE_CLASS_BODY = lone('quota_class_set', closed(each_resource(lambda name: QUOTA, GROUPS_NO_NETWORKS)))
MAX_NAME_LENGTH = 255

CLASS_LIMITS = each_resource(lambda name: Field(INTEGER, itemgetter(name)), GROUPS_NO_NETWORKS)
UPDATED_CLASS = View(CLASS_LIMITS | {name: added(GROUPS_NO_NETWORKS, CLASS_LIMITS[name]) for name in GROUPS})
QUOTA_CLASS_SET = View(ID | UPDATED_CLASS.fields)


class QuotaClassSets(ComputeController):
    """Quotas of quota classes."""

    path = '/os-quota-class-sets/{id}'
    any_name = True

    @operation('GET', policy=SHOW_CLASS, response={'quota_class_set': QUOTA_CLASS_SET})
    def show(self, req: Request, id: str) -> dict[str, Any]:
        """Show the quotas of a class; a class that has never been set has the configured ones."""
        return {'quota_class_set': QUOTA_CLASS_SET.render(req, {'id': id, **self.cloud.quotas.class_limits(id)})}

    @operation('PUT', policy=UPDATE_CLASS, body=UPDATE_CLASS_BODY, response={'quota_class_set': UPDATED_CLASS})
    def update(self, req: Request, id: str, body: Any) -> dict[str, Any]:
        """Change quotas of a class."""
        if len(id) > MAX_NAME_LENGTH:
            raise Invalid(f'quota_class_name has {len(id)} characters, more than {MAX_NAME_LENGTH}.')
        limits = self.cloud.quotas.set_class_limits(id, chosen(body['quota_class_set']))
        return {'quota_class_set': UPDATED_CLASS.render(req, limits)}


# ------------------------------------------------------------------ limits


def limit(resource: str) -> Field:
    return Field(INTEGER, lambda project: project.limits[resource])


def used(resource: str) -> Field:
    return Field(INTEGER, lambda project: project.used[resource])


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
# There are no rate limits here, so their list is empty.
LIMITS = whole({'absolute': ABSOLUTE, 'rate': {'type': 'array', 'maxItems': 0}})


class Limits(ComputeController):
    """The limits of a project and their usage."""

    @operation(
        'GET',
        '/limits',
        policy=SHOW_LIMITS,
        also=(OTHER_PROJECT,),
        query=query({'tenant_id': STRING}, strict='2.75', legacy=False),
        response={'limits': LIMITS},
    )
    def index(self, req: Request) -> dict[str, Any]:
        """Show the limits of the caller's project or, for administrators, of another one."""
        project_id = req.parameter('tenant_id')
        if project_id is None:
            project_id = req.context.project_id or ''
        else:
            req.check(OTHER_PROJECT)
        usage = self.cloud.quotas.usage(project_id)
        return {'limits': {'absolute': ABSOLUTE.render(req, usage), 'rate': []}}
