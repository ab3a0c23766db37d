"""/servers/{server_id}/ips: the addresses of a server.

The actions that add and remove addresses end with 2.43; later clients use the network service.
"""

from typing import Any

from computeapi.api.controller import ComputeController
from computeapi.api.servers.controller import ServerController, action
from computeapi.api.servers.readers import plain_addresses
from computeapi.api.servers.schemas import ADDRESS
from computeapi.api.servers.view import ADDRESS as SHOWN_ADDRESS
from computeapi.api.servers.view import by_network
from computeapi.api.types import NONEMPTY
from computeapi.compute.servers.floating_ips import not_associated
from computeapi.db.servers import Server
from computeapi.errors import NotFound
from computeapi.web.contract import HTML, MEMBER_OR_ADMIN, READER_OR_ADMIN, Policy
from computeapi.web.controller import Bounds, operation
from computeapi.web.controller import action as any_action
from computeapi.web.request import Request
from computeapi.web.schemas import closed, lone

INDEX = Policy('os_compute_api:ips:index', READER_OR_ADMIN, 'List the addresses of a server')
SHOW = Policy('os_compute_api:ips:show', READER_OR_ADMIN, 'List the addresses of a server on one network')
ADD_FIXED_IP = Policy('os_compute_api:os-multinic:add', MEMBER_OR_ADMIN, 'Add an address to a server')
REMOVE_FIXED_IP = Policy('os_compute_api:os-multinic:remove', MEMBER_OR_ADMIN, 'Remove an address from a server')
ADD_FLOATING_IP = Policy('os_compute_api:os-floating-ips:add', MEMBER_OR_ADMIN, 'Associate a floating IP with a server')
REMOVE_FLOATING_IP = Policy(
    'os_compute_api:os-floating-ips:remove', MEMBER_OR_ADMIN, 'Disassociate a floating IP from a server'
)

# ------------------------------------------------------------------ requests

BEFORE_NEUTRON = Bounds(last='2.43')

NETWORK = NONEMPTY | {'type': ['string', 'number'], 'maxLength': 36}
ADDRESSED = lone('address', ADDRESS)
ASSOCIATED = closed({'address': ADDRESS, 'fixed_address': ADDRESS}, ['address'])


class ServerIPs(ServerController):
    """The addresses of a server, by network."""

    path = '/servers/{server_id}/ips'

    @operation('GET', policy=INDEX, response={'addresses': by_network(SHOWN_ADDRESS)})
    def index(self, req: Request, server: Server) -> dict[str, Any]:
        """List the addresses of a server."""
        return {'addresses': plain_addresses(server)}

    @operation('GET', '/{id}', policy=SHOW, response=by_network(SHOWN_ADDRESS))
    def show(self, req: Request, server: Server, id: str) -> dict[str, Any]:
        """List the addresses of a server on one network."""
        found = plain_addresses(server)
        if id not in found:
            raise NotFound('Instance is not a member of specified network')
        return {id: found[id]}


class ServerAddresses(ServerController):
    """Actions that add and remove addresses of a server."""

    versions = BEFORE_NEUTRON

    @action('addFixedIp', policy=ADD_FIXED_IP, takes=lone('networkId', NETWORK), errors=(409,))
    def add_fixed_ip(self, req: Request, server: Server, body: Any) -> None:
        """Add an address of a network to a server."""
        self.cloud.interfaces.add_fixed_ip(req.context, server, str(body['addFixedIp']['networkId']))

    @action('removeFixedIp', policy=REMOVE_FIXED_IP, takes=ADDRESSED, errors=(409,))
    def remove_fixed_ip(self, req: Request, server: Server, body: Any) -> None:
        """Remove an address from a server."""
        self.cloud.interfaces.remove_fixed_ip(req.context, server, body['removeFixedIp']['address'])

    @action('addFloatingIp', policy=ADD_FLOATING_IP, takes=ASSOCIATED, media_type=HTML)
    def add_floating_ip(self, req: Request, server: Server, body: Any) -> None:
        """Associate a floating IP with a server."""
        wanted = body['addFloatingIp']
        self.cloud.floating_ips.associate(req.context, server, wanted['address'], wanted.get('fixed_address'))


class FloatingIPRemoval(ComputeController):
    """Disassociates a floating IP. The policy is checked for its own server, not for the one in the path."""

    path = '/servers'
    versions = BEFORE_NEUTRON

    @any_action(
        'removeFloatingIp',
        path='/{server_id}/action',
        policy=None,
        also=(REMOVE_FLOATING_IP,),
        takes=ADDRESSED,
        media_type=HTML,
        errors=(409,),
    )
    def remove_floating_ip(self, req: Request, server_id: str, body: Any) -> None:
        """Disassociate a floating IP from a server."""
        address = body['removeFloatingIp']['address']
        server = self.cloud.floating_ips.server_of(self.cloud.floating_ips.get(req.context, address))
        # A floating IP that is not associated has no project to check.
        req.check(REMOVE_FLOATING_IP, {'project_id': server and server.project_id})
        if server is None or server.uuid != server_id:
            raise not_associated(address, server_id)
        self.cloud.floating_ips.dissociate(req.context, server, address)
