"""/os-server-groups: servers that are to share a host, or not to."""

from computeapi.api.controller import ComputeController
from computeapi.api.types import LIMIT, POSITIVE, STRING, UUID
from computeapi.compute.server_groups import AFFINITY, ANTI_AFFINITY, SOFT_AFFINITY, SOFT_ANTI_AFFINITY
from computeapi.versions import APIVersionRequest, added, changed, removed
from computeapi.web.contract import ADMIN, MEMBER_OR_ADMIN, READER_OR_ADMIN, Field, Policy, View, attr, closed, query
from computeapi.web.controller import operation
from computeapi.web.paging import window_of

# ------------------------------------------------------------------ policies

INDEX = Policy('os_compute_api:os-server-groups:index', READER_OR_ADMIN, 'List the server groups')
ALL_PROJECTS = Policy('os_compute_api:os-server-groups:index:all_projects', ADMIN, 'List those of all projects')
CREATE = Policy('os_compute_api:os-server-groups:create', MEMBER_OR_ADMIN, 'Create a server group')
SHOW = Policy('os_compute_api:os-server-groups:show', READER_OR_ADMIN, 'Show a server group')
DELETE = Policy('os_compute_api:os-server-groups:delete', MEMBER_OR_ADMIN, 'Delete a server group')

ONE_POLICY = APIVersionRequest.parse('2.64')

# ------------------------------------------------------------------ requests

LIST_QUERY = query({'all_projects': STRING, 'limit': LIMIT, 'offset': LIMIT}, strict='2.75')

HARD = [ANTI_AFFINITY, AFFINITY]
ALL = [*HARD, SOFT_ANTI_AFFINITY, SOFT_AFFINITY]
POLICY = {'type': 'string', 'enum': ALL}
POLICIES = {
    'type': 'array',
    'items': {'enum': changed({'2.1': HARD, '2.15': ALL})},
    'minItems': 1,
    'maxItems': 1,
}
RULES = {'type': 'object', 'properties': {'max_server_per_host': POSITIVE}, 'additionalProperties': False}
CREATE_BODY = closed(
    {
        'server_group': closed(
            {
                'name': {'type': 'string', 'minLength': 1, 'maxLength': 255, 'format': 'name'},
                'policies': removed('2.64', POLICIES),
                'policy': added('2.64', POLICY),
                'rules': added('2.64', RULES),
            },
            required=['name', changed({'2.1': 'policies', '2.64': 'policy'})],
        )
    },
    required=['server_group'],
)

# ------------------------------------------------------------------ view

GROUP = View(
    {
        'id': Field(UUID, attr('uuid')),
        'name': Field(STRING, attr('name')),
        'policies': removed('2.64', Field({'type': 'array', 'items': STRING}, lambda group: [group.policy])),
        'policy': added('2.64', Field(STRING, attr('policy'))),
        'rules': added('2.64', Field({'type': 'object'}, attr('rules'))),
        'members': Field({'type': 'array', 'items': UUID}, attr('members')),
        'metadata': removed('2.64', Field(closed({}), lambda group: {})),
        'project_id': added('2.13', Field(STRING, attr('project_id'))),
        'user_id': added('2.13', Field(STRING, attr('user_id'))),
    }
)

# ------------------------------------------------------------------ controller


class ServerGroups(ComputeController):
    """Servers that are to share a host, or not to."""

    path = '/os-server-groups'
    subject = 'group_id'

    def find(self, req, identifier):
        return self.cloud.server_groups.get(req.context, identifier)

    @operation(
        'GET',
        policy=INDEX,
        also=(ALL_PROJECTS,),
        query=LIST_QUERY,
        response={'server_groups': {'type': 'array', 'items': GROUP}},
        errors=(400,),
    )
    def index(self, req):
        """List the server groups of the project, or (administrators) of all."""
        everybody = req.context.is_admin and 'all_projects' in req.query
        if everybody:
            req.check(ALL_PROJECTS)
        window = window_of(req, self.cloud.max_limit)
        found = self.cloud.server_groups.list(req.context, *window, all_projects=everybody)
        return {'server_groups': GROUP.render_all(req, found)}

    @operation('POST', policy=CREATE, body=CREATE_BODY, response={'server_group': GROUP}, errors=(400, 403))
    def create(self, req, body):
        """Create a server group."""
        wanted = body['server_group']
        policy = wanted['policy'] if req.version >= ONE_POLICY else wanted['policies'][0]
        rules = {name: int(value) for name, value in wanted.get('rules', {}).items()}
        group = self.cloud.server_groups.create(req.context, wanted['name'], policy, rules)
        return {'server_group': GROUP.render(req, group)}

    @operation('GET', '/{group_id}', policy=SHOW, response={'server_group': GROUP}, errors=(404,))
    def show(self, req, group):
        """Show a server group and its members."""
        return {'server_group': GROUP.render(req, group)}

    @operation('DELETE', '/{group_id}', policy=DELETE, status=204, errors=(404,))
    def delete(self, req, group):
        """Delete a server group; its servers stay."""
        self.cloud.server_groups.delete(group)
