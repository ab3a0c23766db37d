"""/os-baremetal-nodes: the nodes of a bare metal service, until 2.35."""

from computeapi.api.controller import ComputeController
from computeapi.api.types import STRING
from computeapi.errors import NotSupported
from computeapi.versions import ABSENT
from computeapi.web.contract import ADMIN, Policy, closed
from computeapi.web.controller import api_version, operation

LIST = Policy('os_compute_api:os-baremetal-nodes:list', ADMIN, 'List the nodes of the bare metal service')
SHOW = Policy('os_compute_api:os-baremetal-nodes:show', ADMIN, 'Show a node of the bare metal service')

LISTED = {
    **dict.fromkeys(('id', 'host', 'task_state', 'cpus', 'memory_mb', 'disk_gb'), STRING),
    'interfaces': {'type': 'array', 'items': STRING},
}
SHOWN = LISTED | {'instance_uuid': {'type': ['string', 'null']}}
NODES = {'type': 'array', 'items': closed(LISTED, LISTED)}


class BareMetalNodes(ComputeController):
    """The nodes of a bare metal service, of which this cloud has none."""

    path = '/os-baremetal-nodes'

    @operation('GET', policy=LIST, query=ABSENT, response={'nodes': NODES}, errors=(501,))
    @api_version('2.1', '2.35')
    def index(self, req):
        """List the nodes."""
        raise NotSupported('There is no bare metal service.')

    @operation('GET', '/{id}', policy=SHOW, query=ABSENT, response={'node': closed(SHOWN, SHOWN)}, errors=(404, 501))
    @api_version('2.1', '2.35')
    def show(self, req, id):
        """Show a node."""
        raise NotSupported('There is no bare metal service.')
