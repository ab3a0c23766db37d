"""/servers/{server_id}/ips: the addresses of a server."""

from typing import Any

from computeapi.api.servers.readers import plain_addresses
from computeapi.api.servers.subject import ServerController
from computeapi.api.servers.view import ADDRESS, by_network
from computeapi.db.servers import Server
from computeapi.errors import NotFound
from computeapi.web.contract import READER_OR_ADMIN, Policy
from computeapi.web.controller import operation
from computeapi.web.request import Request

INDEX = Policy('os_compute_api:ips:index', READER_OR_ADMIN, 'List the addresses of a server')
SHOW = Policy('os_compute_api:ips:show', READER_OR_ADMIN, 'List the addresses of a server on one network')


class ServerIPs(ServerController):
    """The addresses of a server, by the name of the network."""

    path = '/servers/{server_id}/ips'

    @operation('GET', policy=INDEX, response={'addresses': by_network(ADDRESS)}, errors=(404,))
    def index(self, req: Request, server: Server) -> dict[str, Any]:
        """List the addresses of a server."""
        return {'addresses': plain_addresses(server)}

    @operation('GET', '/{id}', policy=SHOW, response=by_network(ADDRESS), errors=(404,))
    def show(self, req: Request, server: Server, id: str) -> dict[str, Any]:
        """List the addresses of a server on one network."""
        found = plain_addresses(server)
        if id not in found:
            raise NotFound('Instance is not a member of specified network')
        return {id: found[id]}
