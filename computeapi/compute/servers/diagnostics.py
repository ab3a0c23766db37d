"""What the machine of a server is doing."""

from __future__ import annotations

from typing import Any, NamedTuple

from computeapi.backends.hypervisor import Capability, Hypervisor, HypervisorError, require
from computeapi.compute.servers.life import not_ready
from computeapi.compute.states import CRASHED, NOSTATE, POWER_PAUSED, POWER_SUSPENDED, RUNNING, SHUTDOWN
from computeapi.db import servers as rows
from computeapi.db.engine import Store
from computeapi.db.servers import BlockDevice, Server
from computeapi.errors import Conflict

POWER_NAMES = {
    NOSTATE: 'pending',
    RUNNING: 'running',
    POWER_PAUSED: 'paused',
    SHUTDOWN: 'shutdown',
    CRASHED: 'crashed',
    POWER_SUSPENDED: 'suspended',
}


class Diagnosis(NamedTuple):
    """facts: what the driver tells."""

    server: Server
    devices: list[BlockDevice]
    facts: dict[str, Any]

    @property
    def state(self) -> str:
        return POWER_NAMES.get(self.server.power_state, 'pending')


class Diagnostics:
    """Errors: Conflict for a server that does not run."""

    def __init__(self, store: Store, hypervisor: Hypervisor):
        self.store, self.hypervisor = store, hypervisor

    def of(self, server: Server) -> Diagnosis:
        if server.host is None:
            raise not_ready(server)
        if server.power_state != RUNNING:
            state = POWER_NAMES.get(server.power_state, 'pending')
            raise Conflict(f"Cannot 'get_diagnostics' instance {server.uuid} while it is in power state {state}")
        require(self.hypervisor, Capability.DIAGNOSTICS)
        with self.store.read() as connection:
            devices = rows.block_devices_of(connection, [server.uuid])
        try:
            return Diagnosis(server, devices, dict(self.hypervisor.diagnostics(server, devices)))
        except HypervisorError:
            raise not_ready(server) from None
