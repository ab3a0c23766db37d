"""Immediate queries and changes of a server's virtual machine: console output, password, diagnostics."""

from typing import Any

from computeapi.api.servers.controller import ServerController, action
from computeapi.api.types import BOOLEAN, DIGITS, INTEGER, NULLABLE_INTEGER, NULLABLE_STRING, OBJECT, STRING
from computeapi.backends.hypervisor import DISK_COUNTERS, INTERFACE_COUNTERS
from computeapi.compute.servers.machines import Diagnosis
from computeapi.db.servers import Server
from computeapi.versions import changed
from computeapi.web.contract import ADMIN, MEMBER_OR_ADMIN, READER_OR_ADMIN, Field, Policy, View
from computeapi.web.controller import api_version, operation
from computeapi.web.request import Request
from computeapi.web.schemas import array, closed, lone, whole

CONSOLE_OUTPUT = Policy('os_compute_api:os-console-output', MEMBER_OR_ADMIN, 'Show the console output of a server')
PASSWORD = Policy('os_compute_api:os-admin-password', MEMBER_OR_ADMIN, "Change a server's administrator password")

LENGTH = {'type': ['integer', 'string', 'null'], 'pattern': '^-?[0-9]+$', 'minimum': -1, 'maxLength': DIGITS}
NEW_PASSWORD = lone('adminPass', STRING)


class ServerMachines(ServerController):
    """The console output and the administrator password of a server."""

    @action(
        'os-getConsoleOutput',
        policy=CONSOLE_OUTPUT,
        takes=closed({'length': LENGTH}),
        response=lone('output', STRING),
        status=200,
        errors=(409, 501),
    )
    def console_output(self, req: Request, server: Server, body: Any) -> dict[str, str]:
        """Show the output of a server to its serial console."""
        length = body['os-getConsoleOutput'].get('length')
        lines = None if length is None or int(length) == -1 else int(length)
        return {'output': self.cloud.machines.console_output(server, lines)}

    @action('changePassword', policy=PASSWORD, takes=NEW_PASSWORD, errors=(409, 501))
    def change_password(self, req: Request, server: Server, body: Any) -> None:
        """Change the administrator password of a server."""
        self.cloud.machines.change_password(req.context, server, body['changePassword']['adminPass'])


# ------------------------------------------------------------------ passwords

SHOW_PASSWORD = Policy('os_compute_api:os-server-password:show', READER_OR_ADMIN, "Show a server's encrypted password")
CLEAR_PASSWORD = Policy(
    'os_compute_api:os-server-password:clear', MEMBER_OR_ADMIN, "Clear a server's encrypted password"
)


class ServerPassword(ServerController):
    """The password of a server's administrator, encrypted with the server's public key."""

    path = '/servers/{server_id}/os-server-password'

    @operation('GET', policy=SHOW_PASSWORD, response={'password': STRING})
    def index(self, req: Request, server: Server) -> dict[str, Any]:
        """Show the encrypted password; empty if there is none."""
        return {'password': server.password or ''}

    @operation('DELETE', policy=CLEAR_PASSWORD, status=204)
    def clear(self, req: Request, server: Server) -> None:
        """Clear the encrypted password."""
        self.cloud.server_attributes.update(req.context, server, password=None)


# ------------------------------------------------------------------ diagnostics

DIAGNOSE = Policy('os_compute_api:os-server-diagnostics', ADMIN, 'Show the diagnostics of a server')

ONE_FORMAT = '2.48'

# ------------------------------------------------------------------ the driver-independent format


def fact(name: str, schema: Any = NULLABLE_STRING) -> Field:
    return Field(schema, lambda diagnosis: diagnosis.facts.get(name))


def parts(name: str, properties: dict[str, Any]) -> Field:
    """A list with one object for each part of the machine; values unknown to the driver are null."""
    return Field(
        array(whole(properties)),
        lambda diagnosis: [{key: part.get(key) for key in properties} for part in numbered(diagnosis.facts.get(name))],
    )


def numbered(found: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    return [{'id': index, **part} for index, part in enumerate(found or ())]


def count(name: str) -> Field:
    return Field(INTEGER, lambda diagnosis: len(diagnosis.facts.get(name) or ()))


DIAGNOSTICS = View(
    {
        'state': Field(STRING, lambda diagnosis: diagnosis.state),
        'driver': fact('driver'),
        'hypervisor': fact('hypervisor'),
        'hypervisor_os': fact('hypervisor_os'),
        'uptime': fact('uptime', NULLABLE_INTEGER),
        'config_drive': Field(BOOLEAN, lambda diagnosis: bool(diagnosis.server.config_drive)),
        'num_cpus': count('cpus'),
        'num_nics': count('interfaces'),
        'num_disks': count('disks'),
        'cpu_details': parts('cpus', dict.fromkeys(('id', 'time', 'utilisation'), NULLABLE_INTEGER)),
        'nic_details': parts(
            'interfaces', {'mac_address': NULLABLE_STRING} | dict.fromkeys(INTERFACE_COUNTERS, NULLABLE_INTEGER)
        ),
        'disk_details': parts('disks', dict.fromkeys(DISK_COUNTERS, NULLABLE_INTEGER)),
        'memory_details': Field(
            whole({'maximum': NULLABLE_INTEGER, 'used': NULLABLE_INTEGER}),
            lambda diagnosis: {'maximum': diagnosis.server.memory_mb, 'used': diagnosis.facts.get('memory_used')},
        ),
    }
)

# ------------------------------------------------------------------ the driver-specific format

COUNTERS = {
    'read_bytes': 'read',
    'read_requests': 'read_req',
    'write_bytes': 'write',
    'write_requests': 'write_req',
    'errors_count': 'errors',
}
TRAFFIC = {
    f'{way}_{what}': way if what == 'octets' else f'{way}_{what}'
    for way in ('rx', 'tx')
    for what in ('octets', 'packets', 'drop', 'errors')
}


def flat(diagnosis: Diagnosis) -> dict[str, Any]:
    """One object whose keys name the parts of the machine; memory in KiB."""
    facts = diagnosis.facts
    found: dict[str, Any] = {'memory': diagnosis.server.memory_mb * 1024}
    for index, cpu in enumerate(facts.get('cpus') or ()):
        found[f'cpu{index}_time'] = cpu.get('time')
    for disk in facts.get('disks') or ():
        name = (disk.get('device_name') or 'disk').removeprefix('/dev/')
        found |= {f'{name}_{short}': disk.get(long) for long, short in COUNTERS.items()}
    for index, interface in enumerate(facts.get('interfaces') or (), start=1):
        found |= {f'vnet{index}_{short}': interface.get(long) for long, short in TRAFFIC.items()}
    return found


class ServerDiagnostics(ServerController):
    """Diagnostics of a server."""

    path = '/servers/{server_id}/diagnostics'

    @operation('GET', policy=DIAGNOSE, response=changed({'2.1': OBJECT, ONE_FORMAT: DIAGNOSTICS}), errors=(409, 501))
    def index(self, req: Request, server: Server) -> dict[str, Any]:
        """Show the diagnostics of a server, in the format of its driver."""
        return flat(self.cloud.machines.diagnose(server))

    @api_version(ONE_FORMAT)
    def index(self, req: Request, server: Server) -> dict[str, Any]:
        """Show the diagnostics of a server."""
        return DIAGNOSTICS.render(req, self.cloud.machines.diagnose(server))
