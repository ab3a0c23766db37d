"""The actions that give addresses to servers and take them away: until 2.43, later clients ask the network service."""

from typing import Any

from computeapi.api.controller import ComputeController
from computeapi.api.servers.schemas import IPV4, IPV6
from computeapi.api.servers.subject import ServerController, action
from computeapi.compute.servers.floating_ips import not_associated
from computeapi.db.servers import Server
from computeapi.web.contract import HTML, MEMBER_OR_ADMIN, Policy, closed, lone
from computeapi.web.controller import Bounds
from computeapi.web.controller import action as any_action
from computeapi.web.request import Request

# ------------------------------------------------------------------ policies

ADD_FIXED_IP = Policy('os_compute_api:os-multinic:add', MEMBER_OR_ADMIN, 'Add an address to a server')
REMOVE_FIXED_IP = Policy('os_compute_api:os-multinic:remove', MEMBER_OR_ADMIN, 'Take an address from a server')
ADD_FLOATING_IP = Policy('os_compute_api:os-floating-ips:add', MEMBER_OR_ADMIN, 'Let a floating IP lead to a server')
REMOVE_FLOATING_IP = Policy(
    'os_compute_api:os-floating-ips:remove', MEMBER_OR_ADMIN, 'Let a floating IP lead to a server no more'
)

# ------------------------------------------------------------------ requests

BEFORE_NEUTRON = Bounds(last='2.43')

ADDRESS = {'anyOf': [IPV4, IPV6]}
NETWORK = {'type': ['string', 'number'], 'minLength': 1, 'maxLength': 255}


def addressed(name: str, **more: Any) -> dict[str, Any]:
    """The body of an action on an address."""
    return lone(name, closed({'address': ADDRESS, **more}, ['address']))


# ------------------------------------------------------------------ controllers


class ServerAddresses(ServerController):
    """Addresses of a server."""

    versions = BEFORE_NEUTRON

    @action(
        'addFixedIp',
        policy=ADD_FIXED_IP,
        body=lone('addFixedIp', closed({'networkId': NETWORK}, ['networkId'])),
        errors=(404, 409),
    )
    def add_fixed_ip(self, req: Request, server: Server, body: Any) -> None:
        """Add an address of a network to a server."""
        self.cloud.interfaces.add_fixed_ip(req.context, server, str(body['addFixedIp']['networkId']))

    @action('removeFixedIp', policy=REMOVE_FIXED_IP, body=addressed('removeFixedIp'), errors=(404, 409))
    def remove_fixed_ip(self, req: Request, server: Server, body: Any) -> None:
        """Take an address from a server."""
        self.cloud.interfaces.remove_fixed_ip(req.context, server, body['removeFixedIp']['address'])

    @action(
        'addFloatingIp',
        policy=ADD_FLOATING_IP,
        body=addressed('addFloatingIp', fixed_address=ADDRESS),
        media_type=HTML,
        errors=(404,),
    )
    def add_floating_ip(self, req: Request, server: Server, body: Any) -> None:
        """Let a floating IP lead to a server."""
        wanted = body['addFloatingIp']
        self.cloud.floating_ips.associate(req.context, server, wanted['address'], wanted.get('fixed_address'))


class FloatingIPRemoval(ComputeController):
    """Of this action the subject is not the server in the path but the one that the floating IP leads to."""

    path = '/servers'
    versions = BEFORE_NEUTRON

    @any_action(
        'removeFloatingIp',
        path='/{server_id}/action',
        policy=None,
        also=(REMOVE_FLOATING_IP,),
        body=addressed('removeFloatingIp'),
        media_type=HTML,
        errors=(404, 409),
    )
    def remove_floating_ip(self, req: Request, server_id: str, body: Any) -> None:
        """Let a floating IP lead to a server no more."""
        address = body['removeFloatingIp']['address']
        server = self.cloud.floating_ips.server_of(self.cloud.floating_ips.get(req.context, address))
        # An address that leads nowhere is in no project.
        req.check(REMOVE_FLOATING_IP, {'project_id': server and server.project_id})
        if server is None or server.uuid != server_id:
            raise not_associated(address, server_id)
        self.cloud.floating_ips.dissociate(req.context, server, address)
