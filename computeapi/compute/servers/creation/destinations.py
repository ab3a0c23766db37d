"""The requested location of a new server."""

from computeapi.compute.server_groups import ServerGroupManager
from computeapi.compute.servers.creation.request import ServerRequest
from computeapi.compute.zones import Zones
from computeapi.context import Context
from computeapi.db import hypervisors
from computeapi.db.engine import Store
from computeapi.errors import ComputeHostNotFound, Invalid


class Destinations:
    """Checks the zone, the host and the server group of a request. default_zone None: any zone."""

    def __init__(self, store: Store, zones: Zones, groups: ServerGroupManager, default_zone: str | None):
        self.store, self.zones, self.groups, self.default_zone = store, zones, groups, default_zone

    def zone(self, request: ServerRequest) -> str | None:
        """The zone that the server is pinned to; Invalid if it is not available."""
        zone = request.availability_zone or self.default_zone or None
        if request.forced_host or request.forced_node:
            # A server that is pinned to a zone other than its host's could not be moved any more.
            return zone if zone == self.zones.of_host(request.forced_host or '') else None
        if zone:
            self.zones.check(zone)
        return zone

    def check_host(self, request: ServerRequest) -> None:
        """ComputeHostNotFound for a named host that does not exist."""
        if not (request.host or request.node):
            return
        if request.forced_host or request.forced_node:
            raise Invalid(
                'One mechanism with host and/or hypervisor_hostname and another mechanism with zone:host:node '
                'are mutually exclusive.'
            )
        if not self.store.query(hypervisors.exists, request.host, request.node):
            raise ComputeHostNotFound(host=request.host or request.node)

    def group(self, context: Context, request: ServerRequest) -> str | None:
        """The server group of the hint `group`; ServerGroupNotFound, also for one of another project."""
        hint = request.scheduler_hints.get('group')
        # If there are several, the first one counts, as for any hint with a single value.
        group_id = next(iter(hint), None) if isinstance(hint, list) else hint
        return self.groups.get(context, group_id).uuid if group_id else None
