"""/servers/{server_id}/topology: the NUMA topology of a server."""

from typing import Any

from computeapi.api.servers.controller import ServerController
from computeapi.api.types import INTEGER, NULLABLE_INTEGER, parts
from computeapi.compute.servers.topology import topology_of
from computeapi.db.servers import Server
from computeapi.web.contract import ADMIN, READER_OR_ADMIN, Field, Policy, View, attr
from computeapi.web.controller import api_version, operation
from computeapi.web.request import Request
from computeapi.web.schemas import array

INDEX = Policy('compute:server:topology:index', READER_OR_ADMIN, 'Show the NUMA topology of a server')
HOST = Policy('compute:server:topology:host:index', ADMIN, 'Show which resources of its host a server uses')

INTEGERS = array(INTEGER)

NODE = View(
    {
        'vcpu_set': Field(INTEGERS, attr('vcpus')),
        'memory_mb': Field(INTEGER, attr('memory_mb')),
        'siblings': Field(array(INTEGERS), attr('siblings')),
        'host_node': Field(INTEGER, attr('host_node'), policy=HOST),
        'cpu_pinning': Field({'type': 'object', 'additionalProperties': INTEGER}, attr('cpu_pinning'), policy=HOST),
    }
)
TOPOLOGY = View(
    {
        'nodes': parts(NODE, 'nodes'),
        'pagesize_kb': Field(NULLABLE_INTEGER, attr('pagesize_kb')),
    }
)


class ServerTopology(ServerController):
    """The NUMA topology of a server."""

    path = '/servers/{server_id}/topology'

    @operation('GET', policy=INDEX, also=(HOST,), response=TOPOLOGY)
    @api_version('2.78')
    def index(self, req: Request, server: Server) -> dict[str, Any]:
        """Show the NUMA topology of a server."""
        return TOPOLOGY.render(req, topology_of(server))
