"""/os-hosts: the hosts of all services, until 2.42; os-services and os-hypervisors came in its place."""

from computeapi.api.controller import ComputeController
from computeapi.api.types import INTEGER, STRING
from computeapi.db.services import COMPUTE
from computeapi.errors import NotSupported
from computeapi.web.contract import ADMIN, Field, Policy, View, attr, closed, query
from computeapi.web.controller import api_version, operation

# ------------------------------------------------------------------ policies

LIST = Policy('os_compute_api:os-hosts:list', ADMIN, 'List the hosts')
SHOW = Policy('os_compute_api:os-hosts:show', ADMIN, 'Show what is taken of a host')
UPDATE = Policy('os_compute_api:os-hosts:update', ADMIN, 'Take a host out of use, or back')
REBOOT = Policy('os_compute_api:os-hosts:reboot', ADMIN, 'Reboot a host')
SHUTDOWN = Policy('os_compute_api:os-hosts:shutdown', ADMIN, 'Shut a host down')
STARTUP = Policy('os_compute_api:os-hosts:start', ADMIN, 'Start a host')

# ------------------------------------------------------------------ requests

LIST_QUERY = query({'zone': STRING})
SWITCH = {'type': 'string', 'enum': ['enable', 'disable', 'Enable', 'Disable', 'ENABLE', 'DISABLE']}
UPDATE_BODY = closed({'status': SWITCH, 'maintenance_mode': SWITCH}) | {
    'anyOf': [{'required': ['status']}, {'required': ['maintenance_mode']}]
}

# ------------------------------------------------------------------ views

HOST = View(
    {
        'host_name': Field(STRING, attr('service.host')),
        'service': Field(STRING, lambda status: status.service.binary.removeprefix('nova-')),
        'zone': Field(STRING, attr('zone')),
    }
)
AMOUNTS = {'project': STRING, 'cpu': INTEGER, 'memory_mb': INTEGER, 'disk_gb': INTEGER, 'host': STRING}
RESOURCES = {'type': 'array', 'items': closed({'resource': closed(AMOUNTS, AMOUNTS)}, ['resource'])}
UPDATED = closed(
    {
        'host': STRING,
        'status': {'type': 'string', 'enum': ['enabled', 'disabled']},
        'maintenance_mode': {'const': 'off_maintenance'},
    },
    ['host'],
)


def powered(word: str) -> dict:
    return {'host': STRING, 'power_action': {'const': word}}


# ------------------------------------------------------------------ controller


class Hosts(ComputeController):
    """The hosts of all services."""

    path = '/os-hosts'

    @operation(
        'GET', policy=LIST, query=LIST_QUERY, response=closed({'hosts': {'type': 'array', 'items': HOST}}, ['hosts'])
    )
    @api_version('2.1', '2.42')
    def index(self, req):
        """List the hosts, once for each of their services."""
        zone = req.parameter('zone')
        found = [status for status in self.cloud.services.list() if not zone or status.zone == zone]
        return {'hosts': HOST.render_all(req, found)}

    @operation('GET', '/{id}', policy=SHOW, response={'host': RESOURCES}, errors=(404,))
    @api_version('2.1', '2.42')
    def show(self, req, id):
        """Show what a compute host has, and who takes how much of it."""
        self.service_of(id)
        return {'host': [{'resource': resource(id, each)} for each in self.cloud.hypervisors.resources(id)]}

    @operation('PUT', '/{id}', policy=UPDATE, body=UPDATE_BODY, response=UPDATED, errors=(400, 404, 501))
    @api_version('2.1', '2.42')
    def update(self, req, id, body):
        """Let new servers come to a compute host, or not."""
        service = self.service_of(id).service
        answer = {'host': id}
        if 'maintenance_mode' in body:
            if body['maintenance_mode'].lower() == 'enable':
                raise NotSupported('The hypervisor of this host has no maintenance mode.')
            answer['maintenance_mode'] = 'off_maintenance'
        if 'status' in body:
            change = self.cloud.services.enable if enables(body) else self.cloud.services.disable
            answer['status'] = 'disabled' if change(service).service.disabled else 'enabled'
        return answer

    @operation('GET', '/{id}/reboot', policy=REBOOT, response=powered('reboot'), errors=(404, 501))
    @api_version('2.1', '2.42')
    def reboot(self, req, id):
        """Reboot a compute host, which no hypervisor can."""
        raise self.powerless(id)

    @operation('GET', '/{id}/shutdown', policy=SHUTDOWN, response=powered('shutdown'), errors=(404, 501))
    @api_version('2.1', '2.42')
    def shutdown(self, req, id):
        """Shut a compute host down, which no hypervisor can."""
        raise self.powerless(id)

    @operation('GET', '/{id}/startup', policy=STARTUP, response=powered('startup'), errors=(404, 501))
    @api_version('2.1', '2.42')
    def startup(self, req, id):
        """See that a compute host is started; one that is not cannot be."""
        if not self.service_of(id).up:
            raise self.powerless(id)
        return {'host': id, 'power_action': 'startup'}

    def service_of(self, host):
        """The compute service of the host; NotFound."""
        return self.cloud.services.find(host=host, binary=COMPUTE)

    def powerless(self, host):
        self.service_of(host)
        return NotSupported('The hypervisor of this host cannot switch it.')


def enables(body) -> bool:
    return body['status'].lower() == 'enable'


def resource(host, amounts) -> dict:
    return {
        'project': amounts.project,
        'cpu': amounts.vcpus,
        'memory_mb': amounts.memory_mb,
        'disk_gb': amounts.disk_gb,
        'host': host,
    }
