"""/servers/{server_id}/topology: the NUMA nodes that a server sees."""

from computeapi.api.servers.subject import ServerController
from computeapi.api.types import INTEGER
from computeapi.compute.servers.topology import topology_of
from computeapi.web.contract import ADMIN, READER_OR_ADMIN, Field, Policy, View, attr
from computeapi.web.controller import api_version, operation

INDEX = Policy('compute:server:topology:index', READER_OR_ADMIN, 'Show the NUMA topology of a server')
HOST = Policy('compute:server:topology:host:index', ADMIN, 'See which parts of its host a server uses')

INTEGERS = {'type': 'array', 'items': INTEGER}

NODE = View(
    {
        'vcpu_set': Field(INTEGERS, attr('vcpus')),
        'memory_mb': Field(INTEGER, attr('memory_mb')),
        'siblings': Field({'type': 'array', 'items': INTEGERS}, attr('siblings')),
        'host_node': Field(INTEGER, attr('host_node'), policy=HOST),
        'cpu_pinning': Field({'type': 'object', 'additionalProperties': INTEGER}, attr('cpu_pinning'), policy=HOST),
    }
)
TOPOLOGY = View(
    {
        'nodes': Field(
            {'type': 'array', 'items': NODE}, lambda topology, req: NODE.render_all(req, topology.nodes), request=True
        ),
        'pagesize_kb': Field({'type': ['integer', 'null']}, attr('pagesize_kb')),
    }
)


class ServerTopology(ServerController):
    """The NUMA nodes that a server sees."""

    path = '/servers/{server_id}/topology'

    @operation('GET', policy=INDEX, also=(HOST,), response=TOPOLOGY, errors=(404,))
    @api_version('2.78')
    def index(self, req, server):
        """Show the NUMA topology of a server."""
        return TOPOLOGY.render(req, topology_of(server))
