"""/os-server-groups: groups of servers with affinity or anti-affinity policies."""

from collections.abc import Mapping
from typing import Any

from computeapi.api import pages
from computeapi.api.controller import ComputeController
from computeapi.api.types import BARE_NAME, COUNT, OBJECT, STRING, UUID
from computeapi.compute.server_groups import AFFINITY, ANTI_AFFINITY, SOFT_AFFINITY, SOFT_ANTI_AFFINITY
from computeapi.db.server_groups import ServerGroup
from computeapi.versions import added, changed, removed
from computeapi.web.contract import ADMIN, MEMBER_OR_ADMIN, READER_OR_ADMIN, Field, Policy, View, attr
from computeapi.web.controller import api_version, operation
from computeapi.web.paging import window_of
from computeapi.web.request import Request
from computeapi.web.schemas import array, closed, lone, query

INDEX = Policy('os_compute_api:os-server-groups:index', READER_OR_ADMIN, 'List the server groups')
ALL_PROJECTS = Policy(
    'os_compute_api:os-server-groups:index:all_projects', ADMIN, 'List the server groups of all projects'
)
CREATE = Policy('os_compute_api:os-server-groups:create', MEMBER_OR_ADMIN, 'Create a server group')
SHOW = Policy('os_compute_api:os-server-groups:show', READER_OR_ADMIN, 'Show a server group')
DELETE = Policy('os_compute_api:os-server-groups:delete', MEMBER_OR_ADMIN, 'Delete a server group')

OWNED, ONE_POLICY = '2.13', '2.64'

# ------------------------------------------------------------------ requests

LIST_QUERY = query({'all_projects': STRING} | pages.WINDOW, strict='2.75')

HARD = [ANTI_AFFINITY, AFFINITY]
ALL = [*HARD, SOFT_ANTI_AFFINITY, SOFT_AFFINITY]
POLICY = {'type': 'string', 'enum': ALL}
POLICIES = array({'enum': changed({'2.1': HARD, '2.15': ALL})}) | {'uniqueItems': True, 'minItems': 1, 'maxItems': 1}
RULES = closed({'max_server_per_host': COUNT})
CREATE_BODY = lone(
    'server_group',
    closed(
        {
            'name': BARE_NAME,
            'policies': removed(ONE_POLICY, POLICIES),
            'policy': added(ONE_POLICY, POLICY),
            'rules': added(ONE_POLICY, RULES),
        },
        required=['name', changed({'2.1': 'policies', ONE_POLICY: 'policy'})],
    ),
)

# ------------------------------------------------------------------ view

GROUP = View(
    {
        'id': Field(UUID, attr('uuid')),
        'name': Field(STRING, attr('name')),
        'policies': removed(ONE_POLICY, Field(array(STRING), lambda group: [group.policy])),
        'policy': added(ONE_POLICY, Field(STRING, attr('policy'))),
        'rules': added(ONE_POLICY, Field(OBJECT, attr('rules'))),
        'members': Field(array(UUID), attr('members')),
        'metadata': removed(ONE_POLICY, Field(closed({}), lambda group: {})),
        'project_id': added(OWNED, Field(STRING, attr('project_id'))),
        'user_id': added(OWNED, Field(STRING, attr('user_id'))),
    }
)


class ServerGroups(ComputeController):
    """Server groups: servers with an affinity or anti-affinity policy."""

    path = '/os-server-groups'
    subject = 'group_id'

    def find(self, req: Request, identifier: str) -> ServerGroup:
        return self.cloud.server_groups.get(req.context, identifier)

    @operation('GET', policy=INDEX, also=(ALL_PROJECTS,), query=LIST_QUERY, response={'server_groups': array(GROUP)})
    def index(self, req: Request) -> dict[str, Any]:
        """List the server groups of the project or, for administrators, of all projects."""
        everybody = req.context.is_admin and 'all_projects' in req.query
        if everybody:
            req.check(ALL_PROJECTS)
        window = window_of(req, self.cloud.max_limit)
        found = self.cloud.server_groups.list(req.context, *window, all_projects=everybody)
        return {'server_groups': GROUP.render_all(req, found)}

    @operation('POST', policy=CREATE, body=CREATE_BODY, response={'server_group': GROUP})
    def create(self, req: Request, body: Any) -> dict[str, Any]:
        """Create a server group with a list of one policy."""
        (policy,) = body['server_group']['policies']
        return self.made(req, body['server_group']['name'], policy, {})

    @api_version(ONE_POLICY)
    def create(self, req: Request, body: Any) -> dict[str, Any]:
        """Create a server group with a policy and its rules."""
        wanted = body['server_group']
        rules = {name: int(value) for name, value in wanted.get('rules', {}).items()}
        return self.made(req, wanted['name'], wanted['policy'], rules)

    def made(self, req: Request, name: str, policy: str, rules: Mapping[str, int]) -> dict[str, Any]:
        return {'server_group': GROUP.render(req, self.cloud.server_groups.create(req.context, name, policy, rules))}

    @operation('GET', '/{group_id}', policy=SHOW, response={'server_group': GROUP})
    def show(self, req: Request, group: ServerGroup) -> dict[str, Any]:
        """Show a server group and its members."""
        return {'server_group': GROUP.render(req, group)}

    @operation('DELETE', '/{group_id}', policy=DELETE, status=204)
    def delete(self, req: Request, group: ServerGroup) -> None:
        """Delete a server group; its servers are kept."""
        self.cloud.server_groups.delete(req.context, group)
