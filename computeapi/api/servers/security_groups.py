"""/servers/{server_id}/os-security-groups, and the actions that change the security groups of a server."""

from typing import Any

from computeapi.api.security_groups import SECURITY_GROUP
from computeapi.api.servers.controller import ServerController, action
from computeapi.db.servers import Server
from computeapi.web.contract import ADMIN, MEMBER_OR_ADMIN, READER_OR_ADMIN, Policy
from computeapi.web.controller import operation
from computeapi.web.request import Request
from computeapi.web.schemas import array, lone

LIST = Policy('os_compute_api:os-security-groups:list', READER_OR_ADMIN, 'List the security groups of a server')
ADD = Policy('os_compute_api:os-security-groups:add', MEMBER_OR_ADMIN, 'Add a server to a security group')
REMOVE = Policy('os_compute_api:os-security-groups:remove', MEMBER_OR_ADMIN, 'Remove a server from a security group')
INJECT = Policy(
    'os_compute_api:os-admin-actions:inject_network_info', ADMIN, 'Refresh the network information of a server'
)

NAMED = lone('name', {'type': 'string', 'minLength': 1})


class ServerSecurityGroups(ServerController):
    """The security groups of a server."""

    @operation(
        'GET', '/{server_id}/os-security-groups', policy=LIST, response={'security_groups': array(SECURITY_GROUP)}
    )
    def index(self, req: Request, server: Server) -> dict[str, Any]:
        """List the security groups of a server."""
        groups = self.cloud.server_security_groups.list(req.context, server)
        return {'security_groups': SECURITY_GROUP.render_all(req, groups)}

    @action('addSecurityGroup', policy=ADD, takes=NAMED, errors=(409,))
    def add(self, req: Request, server: Server, body: Any) -> None:
        """Add a server to a security group."""
        self.cloud.server_security_groups.add(req.context, server, body['addSecurityGroup']['name'])

    @action('removeSecurityGroup', policy=REMOVE, takes=NAMED, errors=(409,))
    def remove(self, req: Request, server: Server, body: Any) -> None:
        """Remove a server from a security group."""
        self.cloud.server_security_groups.remove(req.context, server, body['removeSecurityGroup']['name'])

    @action('injectNetworkInfo', policy=INJECT, errors=(409,))
    def inject(self, req: Request, server: Server, body: Any) -> None:
        """Refresh the network information of a server."""
        self.cloud.addresses.refresh(req.context, [server.uuid])
