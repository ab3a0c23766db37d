"""/os-hosts: the hosts of all services, until 2.42; replaced by os-services and os-hypervisors."""

from collections.abc import Callable
from typing import Any

from computeapi.api.controller import ComputeController
from computeapi.api.types import INTEGER, STRING
from computeapi.compute.hypervisors import HostResources
from computeapi.compute.services import ServiceStatus
from computeapi.db.services import COMPUTE, ComputeService
from computeapi.web.contract import ADMIN, Field, Policy, View, attr
from computeapi.web.controller import Bounds, operation
from computeapi.web.request import Request
from computeapi.web.schemas import array, closed, lone, one_of, query, whole

LIST = Policy('os_compute_api:os-hosts:list', ADMIN, 'List the hosts')
SHOW = Policy('os_compute_api:os-hosts:show', ADMIN, 'Show the resource usage of a host')
UPDATE = Policy('os_compute_api:os-hosts:update', ADMIN, 'Disable or enable a host')
REBOOT = Policy('os_compute_api:os-hosts:reboot', ADMIN, 'Reboot a host')
SHUTDOWN = Policy('os_compute_api:os-hosts:shutdown', ADMIN, 'Shut a host down')
STARTUP = Policy('os_compute_api:os-hosts:start', ADMIN, 'Start a host')

# ------------------------------------------------------------------ requests

LIST_QUERY = query({'zone': STRING})
SWITCH = one_of('enable', 'disable', 'Enable', 'Disable', 'ENABLE', 'DISABLE')
UPDATE_BODY = closed({'status': SWITCH, 'maintenance_mode': SWITCH}) | {
    'anyOf': [{'required': ['status']}, {'required': ['maintenance_mode']}]
}

# ------------------------------------------------------------------ views

HOST_SERVICE = View(
    {
        'host_name': Field(STRING, attr('service.host')),
        'service': Field(STRING, lambda status: status.service.binary.removeprefix('nova-')),
        'zone': Field(STRING, attr('zone')),
    }
)
AMOUNTS = {'project': STRING, 'cpu': INTEGER, 'memory_mb': INTEGER, 'disk_gb': INTEGER, 'host': STRING}
RESOURCES = array(lone('resource', whole(AMOUNTS)))
UPDATED = closed(
    {
        'host': STRING,
        'status': one_of('enabled', 'disabled'),
        'maintenance_mode': one_of('on_maintenance', 'off_maintenance'),
    },
    ['host'],
)


def powered(word: str) -> dict[str, Any]:
    return {'host': STRING, 'power_action': {'const': word}}


class Hosts(ComputeController):
    """The hosts of all services."""

    path = '/os-hosts'
    versions = Bounds(last='2.42')

    @operation('GET', policy=LIST, query=LIST_QUERY, response={'hosts': array(HOST_SERVICE)})
    def index(self, req: Request) -> dict[str, Any]:
        """List the hosts, once for each of their services."""
        zone = req.parameter('zone')
        found = [status for status in self.cloud.services.list() if not zone or status.zone == zone]
        return {'hosts': HOST_SERVICE.render_all(req, found)}

    @operation('GET', '/{id}', policy=SHOW, response={'host': RESOURCES})
    def show(self, req: Request, id: str) -> dict[str, Any]:
        """Show the resources of a compute host, and which project uses how much of them."""
        self.service_of(id)
        return {'host': [{'resource': resource(id, each)} for each in self.cloud.hypervisors.resources(id)]}

    @operation('PUT', '/{id}', policy=UPDATE, body=UPDATE_BODY, response=UPDATED, errors=(501,))
    def update(self, req: Request, id: str, body: Any) -> dict[str, Any]:
        """Enable or disable a compute host for new servers, or start its maintenance: running ones then leave it."""
        service = self.service_of(id).service
        answer = {'host': id}
        if 'maintenance_mode' in body:
            answer['maintenance_mode'] = self.maintain(req, service, enables(body['maintenance_mode']))
        if 'status' in body:
            change = self.cloud.services.enable if enables(body['status']) else self.cloud.services.disable
            answer['status'] = 'disabled' if change(req.context, service).service.disabled else 'enabled'
        return answer

    def maintain(self, req: Request, service: ComputeService, begins: bool) -> str:
        if begins:
            self.cloud.host_power.maintain(req.context, service)
        else:
            self.cloud.host_power.end_maintenance(req.context, service)
        return 'on_maintenance' if begins else 'off_maintenance'

    @operation('GET', '/{id}/reboot', policy=REBOOT, response=powered('reboot'), errors=(501,))
    def reboot(self, req: Request, id: str) -> dict[str, Any]:
        """Reboot a compute host, which stops its servers."""
        return self.switched(id, 'reboot', self.cloud.host_power.reboot)

    @operation('GET', '/{id}/shutdown', policy=SHUTDOWN, response=powered('shutdown'), errors=(501,))
    def shutdown(self, req: Request, id: str) -> dict[str, Any]:
        """Shut a compute host down, with its servers."""
        return self.switched(id, 'shutdown', self.cloud.host_power.shut_down)

    @operation('GET', '/{id}/startup', policy=STARTUP, response=powered('startup'), errors=(501,))
    def startup(self, req: Request, id: str) -> dict[str, Any]:
        """Start a compute host; its servers stay stopped."""
        return self.switched(id, 'startup', self.cloud.host_power.start_up)

    def switched(self, host: str, word: str, switch: Callable[[str], None]) -> dict[str, Any]:
        self.service_of(host)
        switch(host)
        return {'host': host, 'power_action': word}

    def service_of(self, host: str) -> ServiceStatus:
        """The compute service of the host; NotFound."""
        return self.cloud.services.find(host=host, binary=COMPUTE)


def enables(word: str) -> bool:
    return word.lower() == 'enable'


def resource(host: str, amounts: HostResources) -> dict[str, Any]:
    return {
        'project': amounts.project,
        'cpu': amounts.vcpus,
        'memory_mb': amounts.memory_mb,
        'disk_gb': amounts.disk_gb,
        'host': host,
    }
