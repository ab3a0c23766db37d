"""Removed parts of the API: resources that return 410 at every version, and requests that are always refused."""

from typing import Any

from computeapi.api.controller import ComputeController
from computeapi.api.types import NULLABLE_STRING, STRING
from computeapi.errors import Gone, Invalid, NotFound
from computeapi.versions import ABSENT
from computeapi.web.contract import ADMIN, Policy
from computeapi.web.controller import Bounds, Function, operation
from computeapi.web.request import Request
from computeapi.web.schemas import array, whole

GONE = (
    ('/os-agents', 'GET', 'POST'),
    ('/os-agents/{id}', 'PUT', 'DELETE'),
    ('/os-cells', 'GET', 'POST'),
    ('/os-cells/capacities', 'GET'),
    ('/os-cells/detail', 'GET'),
    ('/os-cells/info', 'GET'),
    ('/os-cells/sync_instances', 'POST'),
    ('/os-cells/{id}', 'GET', 'PUT', 'DELETE'),
    ('/os-cells/{id}/capacities', 'GET'),
    ('/os-certificates', 'POST'),
    ('/os-certificates/{id}', 'GET'),
    ('/os-cloudpipe', 'GET', 'POST'),
    ('/os-cloudpipe/{id}', 'PUT'),
    ('/os-fping', 'GET'),
    ('/os-fping/{id}', 'GET'),
    ('/os-networks', 'POST'),
    ('/os-networks/add', 'POST'),
    ('/os-networks/{id}', 'DELETE'),
    ('/os-security-group-default-rules', 'GET', 'POST'),
    ('/os-security-group-default-rules/{id}', 'GET', 'DELETE'),
    ('/os-tenant-networks', 'POST'),
    ('/os-tenant-networks/{id}', 'DELETE'),
    ('/servers/{server_id}/consoles', 'GET', 'POST'),
    ('/servers/{server_id}/consoles/{id}', 'GET', 'DELETE'),
)
"""Paths, each with its removed methods."""

GONE_ACTIONS = (
    ('/os-networks/{id}/action', 'associate_host', 'disassociate', 'disassociate_host', 'disassociate_project'),
    ('/servers/{server_id}/action', 'resetNetwork'),
)

LAST_PROXY = '2.35'
PROXIES = Bounds(last=LAST_PROXY)
"""The versions with proxies to the image, network, volume and bare metal services; later clients call those."""

IRONIC = 'Command not supported. Please use Ironic command {} to perform this action.'
REFUSED: dict[tuple[str, str, str | None], str] = {
    ('POST', '/os-baremetal-nodes', None): 'node-create',
    ('DELETE', '/os-baremetal-nodes/{id}', None): 'node-delete',
    ('POST', '/os-baremetal-nodes/{id}/action', 'add_interface'): 'port-create',
    ('POST', '/os-baremetal-nodes/{id}/action', 'remove_interface'): 'port-delete',
}
"""Requests that always fail, with the command of the bare metal client to use instead."""


def fault(name: str, status: int) -> dict[str, Any]:
    """The arguments of an operation that only returns this fault."""
    schema = whole({'code': {'const': status}, 'message': STRING})
    return {'policy': None, 'query': ABSENT, 'status': status, 'response': {name: schema}}


def gone(function: Function) -> Function:
    """Register the function for everything that was removed."""
    facts = fault('computeFault', 410)
    for path, *methods in GONE:
        for method in methods:
            operation(method, path, **facts)(function)
    for path, *actions in GONE_ACTIONS:
        for action in actions:
            operation('POST', path, action=action, **facts)(function)
    return function


def refused(function: Function) -> Function:
    """Register the function for every request that is always refused."""
    for method, path, action in REFUSED:
        operation(method, path, action=action, **fault('badRequest', 400))(function)
    return function


class GoneResources(ComputeController):
    """Resources that no longer exist."""

    @gone
    def answer(self, req: Request, **parameters: Any) -> None:
        """This resource is no longer available."""
        raise Gone()


class RefusedRequests(ComputeController):
    """Requests that are always refused."""

    versions = PROXIES

    @refused
    def answer(self, req: Request, **parameters: Any) -> None:
        """This request is always refused."""
        known = req.operation
        raise Invalid(IRONIC.format(REFUSED[known.method, known.path, known.action]))


# ------------------------------------------------------------------ bare metal

LIST_NODES = Policy('os_compute_api:os-baremetal-nodes:list', ADMIN, 'List the nodes of the bare metal service')
SHOW_NODE = Policy('os_compute_api:os-baremetal-nodes:show', ADMIN, 'Show a node of the bare metal service')

LISTED_NODE = {
    **dict.fromkeys(('id', 'host', 'task_state', 'cpus', 'memory_mb', 'disk_gb'), STRING),
    'interfaces': array(STRING),
}
SHOWN_NODE = LISTED_NODE | {'instance_uuid': NULLABLE_STRING}
NODES = array(whole(LISTED_NODE))


class BareMetalNodes(ComputeController):
    """The nodes of a bare metal service. This cloud has none: all of its servers are virtual machines."""

    path = '/os-baremetal-nodes'
    versions = PROXIES

    @operation('GET', policy=LIST_NODES, query=ABSENT, response={'nodes': NODES})
    def index(self, req: Request) -> dict[str, Any]:
        """List the nodes."""
        return {'nodes': []}

    @operation('GET', '/{id}', policy=SHOW_NODE, query=ABSENT, response={'node': whole(SHOWN_NODE)})
    def show(self, req: Request, id: str) -> None:
        """Show a node."""
        raise NotFound(f'Node {id} could not be found.')
