"""/os-baremetal-nodes: the nodes of a bare metal service, until 2.35."""

from computeapi.api.controller import ComputeController
from computeapi.api.gone import PROXIES
from computeapi.api.types import NULLABLE_STRING, STRING
from computeapi.errors import NotSupported
from computeapi.versions import ABSENT
from computeapi.web.contract import ADMIN, Policy, array, closed
from computeapi.web.controller import operation
from computeapi.web.request import Request

LIST = Policy('os_compute_api:os-baremetal-nodes:list', ADMIN, 'List the nodes of the bare metal service')
SHOW = Policy('os_compute_api:os-baremetal-nodes:show', ADMIN, 'Show a node of the bare metal service')

LISTED = {
    **dict.fromkeys(('id', 'host', 'task_state', 'cpus', 'memory_mb', 'disk_gb'), STRING),
    'interfaces': array(STRING),
}
SHOWN = LISTED | {'instance_uuid': NULLABLE_STRING}
NODES = array(closed(LISTED, LISTED))


class BareMetalNodes(ComputeController):
    """The nodes of a bare metal service, of which this cloud has none."""

    path = '/os-baremetal-nodes'
    versions = PROXIES

    @operation('GET', policy=LIST, query=ABSENT, response={'nodes': NODES}, errors=(501,))
    def index(self, req: Request) -> None:
        """List the nodes."""
        raise NotSupported('There is no bare metal service.')

    @operation('GET', '/{id}', policy=SHOW, query=ABSENT, response={'node': closed(SHOWN, SHOWN)}, errors=(404, 501))
    def show(self, req: Request, id: str) -> None:
        """Show a node."""
        raise NotSupported('There is no bare metal service.')
