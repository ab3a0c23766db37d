"""/os-availability-zone: the availability zones."""

from typing import Any

from computeapi.api.controller import ComputeController
from computeapi.api.types import BOOLEAN, NOTHING, NULLABLE_DATETIME, STRING, bare
from computeapi.compute.zones import INTERNAL, Zone
from computeapi.web.contract import ADMIN, ANYONE, Field, Policy, View, attr
from computeapi.web.controller import operation
from computeapi.web.request import Request
from computeapi.web.schemas import array, lone, whole

LIST = Policy('os_compute_api:os-availability-zone:list', ANYONE, 'List the availability zones')
DETAIL = Policy('os_compute_api:os-availability-zone:detail', ADMIN, 'List the availability zones and their services')

MEMBER = whole({'active': BOOLEAN, 'available': BOOLEAN, 'updated_at': NULLABLE_DATETIME})
HOSTS = {
    'type': ['object', 'null'],
    'additionalProperties': {'type': 'object', 'additionalProperties': MEMBER},
}
STATE = lone('available', BOOLEAN)
ZONE = {
    'zoneName': Field(STRING, attr('name')),
    'zoneState': Field(STATE, lambda zone: {'available': zone.available}),
}
SUMMARY = View(ZONE | {'hosts': Field(NOTHING, lambda zone: None)})
ZONE_DETAIL = View(ZONE | {'hosts': Field(HOSTS, lambda zone: hosts_of(zone) if zone.available else None)})


def hosts_of(zone: Zone) -> dict[str, dict[str, Any]]:
    """The enabled services of a zone: {host: {service: its state}}."""
    found: dict[str, dict[str, Any]] = {}
    for member in zone.members:
        if member.enabled:
            state = {'active': True, 'available': member.up, 'updated_at': bare(member.seen_at)}
            found.setdefault(member.host, {})[member.binary] = state
    return found


def listing(view: View) -> dict[str, Any]:
    return {'availabilityZoneInfo': array(view)}


class AvailabilityZones(ComputeController):
    """Availability zones, in which servers can be requested."""

    path = '/os-availability-zone'

    @operation('GET', policy=LIST, response=listing(SUMMARY))
    def index(self, req: Request) -> dict[str, Any]:
        """List the availability zones."""
        zones = [zone for zone in self.zones() if zone.name != INTERNAL]
        return {'availabilityZoneInfo': SUMMARY.render_all(req, zones)}

    @operation('GET', '/detail', policy=DETAIL, response=listing(ZONE_DETAIL))
    def detail(self, req: Request) -> dict[str, Any]:
        """List the availability zones with the services in them."""
        return {'availabilityZoneInfo': ZONE_DETAIL.render_all(req, self.zones())}

    def zones(self) -> list[Zone]:
        """The zones, with available ones first."""
        return sorted(self.cloud.zones.list(), key=lambda zone: not zone.available)
