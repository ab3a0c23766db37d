"""/os-quota-sets: how much of the cloud a project, or one user in it, may have."""

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any

from computeapi.api.controller import ComputeController
from computeapi.api.types import INTEGER, MOST, SPOKEN_BOOLEAN, STRING, TEXT
from computeapi.booleans import spoken
from computeapi.compute.quotas import NETWORK
from computeapi.versions import removed
from computeapi.web.contract import ADMIN, ANYONE, READER_OR_ADMIN, Field, Policy, View, closed, query
from computeapi.web.controller import operation
from computeapi.web.request import Request

# ------------------------------------------------------------------ policies

SHOW = Policy('os_compute_api:os-quota-sets:show', READER_OR_ADMIN, 'Show the quotas of a project')
DETAIL = Policy('os_compute_api:os-quota-sets:detail', READER_OR_ADMIN, 'Show the quotas of a project and their use')
DEFAULTS = Policy('os_compute_api:os-quota-sets:defaults', ANYONE, 'Show the quotas that a project starts with')
UPDATE = Policy('os_compute_api:os-quota-sets:update', ADMIN, 'Change the quotas of a project')
DELETE = Policy('os_compute_api:os-quota-sets:delete', ADMIN, 'Set the quotas of a project back to the defaults')

# ------------------------------------------------------------------ resources

LASTING = ('instances', 'cores', 'ram', 'metadata_items', 'key_pairs')
GROUPS = ('server_groups', 'server_group_members')
INJECTED = ('injected_files', 'injected_file_content_bytes', 'injected_file_path_bytes')


def each_resource(leaf: Callable[[str], Any], networks_until: str) -> dict[str, Any]:
    """{resource: leaf(resource)}, as long as the API knows the resource."""
    return (
        {name: leaf(name) for name in LASTING + GROUPS}
        | {name: removed('2.57', leaf(name)) for name in INJECTED}
        | {name: removed(networks_until, leaf(name)) for name in NETWORK}
    )


def chosen(facts: dict[str, Any]) -> dict[str, int]:
    """The limits among what a client sent; /v2 may hold other keys."""
    known = {*LASTING, *GROUPS, *INJECTED, *NETWORK}
    return {name: int(value) for name, value in facts.items() if name in known}


# ------------------------------------------------------------------ requests

NO_NETWORKS = '2.36'
QUOTA = {'type': ['integer', 'string'], 'pattern': '^-?[0-9]+$', 'minimum': -1, 'maximum': MOST}
UPDATE_BODY = closed(
    {'quota_set': closed(each_resource(lambda name: QUOTA, NO_NETWORKS) | {'force': SPOKEN_BOOLEAN})},
    required=['quota_set'],
)
USER_QUERY = query({'user_id': TEXT}, strict='2.75')
DEFAULTS_QUERY = query({}, strict=None)

# ------------------------------------------------------------------ views

USE = closed({'limit': INTEGER, 'in_use': INTEGER, 'reserved': INTEGER}, required=['limit', 'in_use', 'reserved'])
ID = {'id': Field(STRING, itemgetter('id'))}
QUOTA_SET = View(ID | each_resource(lambda name: Field(INTEGER, itemgetter(name)), NO_NETWORKS))
UPDATED = QUOTA_SET.without('id')
QUOTA_SET_DETAIL = View(ID | each_resource(lambda name: Field(USE, itemgetter(name)), NO_NETWORKS))


def use(limit: int, used: int) -> dict[str, int]:
    """A limit and its use; nothing is reserved ahead of being used."""
    return {'limit': limit, 'in_use': used, 'reserved': 0}


# ------------------------------------------------------------------ controller


class QuotaSets(ComputeController):
    """How much of the cloud a project, or one user in it, may have."""

    path = '/os-quota-sets/{id}'

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
        """Show the quotas of a project, or of one user in it, and what is used of them."""
        self.cloud.projects.check(req.context, id)
        limits, used = self.cloud.quotas.usage(id, user_of(req))
        uses = {name: use(limit, used[name]) for name, limit in limits.items()}
        return {'quota_set': QUOTA_SET_DETAIL.render(req, {'id': id, **uses})}

    @operation('GET', '/defaults', policy=DEFAULTS, query=DEFAULTS_QUERY, response={'quota_set': QUOTA_SET})
    def defaults(self, req: Request, id: str) -> dict[str, Any]:
        """Show the quotas that a project starts with."""
        self.cloud.projects.check(req.context, id)
        return {'quota_set': QUOTA_SET.render(req, {'id': id, **self.cloud.quotas.class_limits()})}

    @operation('PUT', policy=UPDATE, query=USER_QUERY, body=UPDATE_BODY, response={'quota_set': UPDATED})
    def update(self, req: Request, id: str, body: Any) -> dict[str, Any]:
        """Change quotas of a project, or of one user in it."""
        self.cloud.projects.check(req.context, id)
        facts = body['quota_set']
        force = spoken(facts.get('force', False))
        limits = self.cloud.quotas.set_limits(id, chosen(facts), user_id=user_of(req), force=force)
        return {'quota_set': UPDATED.render(req, limits)}

    @operation('DELETE', policy=DELETE, query=USER_QUERY, status=202)
    def delete(self, req: Request, id: str) -> None:
        """Set the quotas of a project, or of one user in it, back to the defaults."""
        self.cloud.quotas.reset(id, user_of(req))


def user_of(req: Request) -> str | None:
    """The user in the project that a request is about; None: the whole project."""
    return req.parameter('user_id') or None
