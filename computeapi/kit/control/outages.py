"""/hosts, /cells and /neighbours: outages."""

from typing import Any

from computeapi.kit.control.service import ControlController
from computeapi.kit.outages import Outages
from computeapi.web.controller import operation
from computeapi.web.request import Request
from computeapi.web.schemas import array, lone, whole

PLACE = whole({'name': {'type': 'string'}, 'down': {'type': 'boolean'}})


def places(outages: Outages) -> list[dict[str, Any]]:
    return [{'name': name, 'down': name in outages.names} for name in outages.known()]


class HostsDown(ControlController):
    """Hosts that send no heartbeat."""

    path = '/hosts'

    @operation('GET', policy=None, response=lone('hosts', array(PLACE)))
    def list_hosts(self, req: Request) -> dict[str, Any]:
        "List the hosts, and whether they are down."
        return {'hosts': places(self.tools.hosts)}

    @operation('POST', '/{name}/down', policy=None, status=204)
    def take_host_down(self, req: Request, name: str) -> None:
        """Stop the heartbeat of a host, which is down immediately."""
        self.tools.hosts.down(name)

    @operation('POST', '/{name}/up', policy=None, status=204)
    def bring_host_up(self, req: Request, name: str) -> None:
        """Bring a host up again."""
        self.tools.hosts.up(name)


class CellsDown(ControlController):
    """Cells that do not respond."""

    path = '/cells'

    @operation('GET', policy=None, response=lone('cells', array(PLACE)))
    def list_cells(self, req: Request) -> dict[str, Any]:
        """List the cells, and whether they are down."""
        return {'cells': places(self.tools.cells)}

    @operation('POST', '/{name}/down', policy=None, status=204)
    def take_cell_down(self, req: Request, name: str) -> None:
        """Make a cell stop responding."""
        self.tools.cells.down(name)

    @operation('POST', '/{name}/up', policy=None, status=204)
    def bring_cell_up(self, req: Request, name: str) -> None:
        """Make a cell respond again."""
        self.tools.cells.up(name)


class NeighboursAway(ControlController):
    """The services other than compute that cannot be reached."""

    path = '/neighbours'

    @operation('GET', policy=None, response=lone('neighbours', array(PLACE)))
    def list_neighbours(self, req: Request) -> dict[str, Any]:
        """List the services other than compute, and whether they are unavailable."""
        return {'neighbours': places(self.tools.neighbours)}

    @operation('POST', '/{name}/down', policy=None, status=204)
    def take_neighbour_down(self, req: Request, name: str) -> None:
        """Make a service other than compute unavailable."""
        self.tools.neighbours.down(name)

    @operation('POST', '/{name}/up', policy=None, status=204)
    def bring_neighbour_up(self, req: Request, name: str) -> None:
        """Make a service other than compute available again."""
        self.tools.neighbours.up(name)
