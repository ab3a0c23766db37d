"""Requests that the machine of a server answers at once: diagnostics, its serial console, a new password."""

import re
from typing import Any, NamedTuple

import sqlalchemy as sa

from computeapi.backends.hypervisor import Capability, Hypervisor, HypervisorError, PowerState, require
from computeapi.compute.servers.changes import Changes, check, not_ready
from computeapi.compute.tasks.transition import Requirement
from computeapi.context import Context
from computeapi.db import block_devices, servers
from computeapi.db.servers import BlockDevice, Server
from computeapi.errors import Conflict
from computeapi.states import VMState

CHANGE_PASSWORD = Requirement('changePassword', allowed={VMState.ACTIVE}, tells_lock=False)
MAX_OUTPUT_LENGTH = 100 * 1024
"""The characters of a console's output that one response contains."""
CONTROL_CHARACTERS = re.compile(r'[\x00-\x08\x0b-\x1f\x7f-\x9f]')
"""All but tabs and line feeds: they could control the terminal of a client, and guests write them."""
POWER_NAMES: dict[int, str] = {
    PowerState.NOSTATE: 'pending',
    PowerState.RUNNING: 'running',
    PowerState.PAUSED: 'paused',
    PowerState.SHUTDOWN: 'shutdown',
    PowerState.CRASHED: 'crashed',
    PowerState.SUSPENDED: 'suspended',
}


class Diagnosis(NamedTuple):
    """facts: the driver's diagnostics."""

    server: Server
    devices: list[BlockDevice]
    facts: dict[str, Any]

    @property
    def state(self) -> str:
        return POWER_NAMES.get(self.server.power_state, 'pending')


class Machines:
    """Errors: Conflict for a server without a machine, or with one in another state; NotSupported."""

    def __init__(self, changes: Changes):
        self.changes, self.store = changes, changes.store
        self.hypervisor: Hypervisor = changes.platform.hypervisor

    def diagnose(self, server: Server) -> Diagnosis:
        """The diagnostics of the machine; Conflict unless it runs."""
        if server.host is None:
            raise not_ready(server)
        if server.power_state != PowerState.RUNNING:
            state = POWER_NAMES.get(server.power_state, 'pending')
            raise Conflict(f"Cannot 'get_diagnostics' instance {server.uuid} while it is in power state {state}")
        require(self.hypervisor, Capability.DIAGNOSTICS, server.host)
        devices = self.store.query(block_devices.of_servers, [server.uuid])
        try:
            return Diagnosis(server, devices, dict(self.hypervisor.diagnostics(server, devices)))
        except HypervisorError:
            raise not_ready(server) from None

    def console_output(self, server: Server, lines: int | None) -> str:
        """The last *lines* of the serial console as plain text, up to a limit; None: all that is kept."""
        if server.host is None:
            raise not_ready(server)
        require(self.hypervisor, Capability.CONSOLE_OUTPUT, server.host)
        return CONTROL_CHARACTERS.sub('', self.hypervisor.console_output(server, lines)[-MAX_OUTPUT_LENGTH:])

    def change_password(self, context: Context, server: Server, password: str) -> None:
        """Set the administrator's password in the server. It is passed on at once; what is stored is encrypted with the
        server's public key, for the owner of the private key only."""
        check(context, server, CHANGE_PASSWORD)
        require(self.hypervisor, Capability.SET_PASSWORD, server.host)
        try:
            self.hypervisor.set_password(server, password)
        except HypervisorError as error:
            raise Conflict(str(error)) from None
        from computeapi.compute import keys

        self.store.change(self._note, context, server, keys.encrypt(server.public_key or '', password))

    def _note(self, connection: sa.Connection, context: Context, server: Server, encrypted: str | None) -> None:
        facts = {'event': 'compute_set_admin_password', 'host': server.host}
        self.changes.record(connection, context, server, CHANGE_PASSWORD.name, **facts)
        if encrypted is not None:
            servers.update(connection, server.uuid, {'password': encrypted})
