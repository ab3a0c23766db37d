"""Power control and maintenance of hosts, for administrators without other access to them."""

import logging

from computeapi.backends.hypervisor import Capability, PowerState, require
from computeapi.compute.servers import evacuation
from computeapi.compute.servers.changes import Changes
from computeapi.compute.servers.live_migration import LiveMigrations
from computeapi.compute.services import ServiceManager
from computeapi.context import Context
from computeapi.db import servers, services
from computeapi.db.services import COMPUTE, ComputeService
from computeapi.errors import Error
from computeapi.states import VMState

LOG = logging.getLogger(__name__)
MAINTENANCE = 'Maintenance'
RUNNING = (VMState.ACTIVE, VMState.PAUSED)


class HostPower:
    """Errors: NotSupported if the driver cannot do it."""

    def __init__(self, changes: Changes, services: ServiceManager, live_migrations: LiveMigrations):
        self.platform, self.store = changes.platform, changes.store
        self.services, self.live_migrations = services, live_migrations

    def shut_down(self, host: str) -> None:
        """Power the host off: its servers stop, and its service is reported down, because no heartbeat follows."""
        require(self.platform.hypervisor, Capability.HOST_POWER, host)
        self.platform.hypervisor.switch_host(host, False)
        with self.store.write() as connection:
            services.is_gone(connection, host)
            off = {'power_state': PowerState.SHUTDOWN, 'updated_at': self.platform.clock()}
            servers.change_on(connection, host, off | {'vm_state': VMState.STOPPED}, RUNNING)
            servers.change_on(connection, host, off)

    def start_up(self, host: str) -> None:
        """Power the host on; its servers stay stopped."""
        require(self.platform.hypervisor, Capability.HOST_POWER, host)
        self.platform.hypervisor.switch_host(host, True)
        evacuation.return_hosts(self.platform, [host])
        self.store.change(services.is_seen, host, COMPUTE, self.platform.clock())

    def reboot(self, host: str) -> None:
        self.shut_down(host)
        self.start_up(host)

    def maintain(self, context: Context, service: ComputeService) -> None:
        """Disable the host's service and live-migrate its running servers, as far as possible."""
        require(self.platform.hypervisor, Capability.HOST_MAINTENANCE, service.host)
        self.services.disable(context, service, MAINTENANCE)
        for server in self.store.query(servers.on_host, service.host, RUNNING):
            try:
                self.live_migrations.live_migrate(context, server, None)
            except Error as error:
                LOG.info('Server %s stays on %s, which is in maintenance: %s', server.uuid, service.host, error)

    def end_maintenance(self, context: Context, service: ComputeService) -> None:
        """Enable the service again if the host is in maintenance; otherwise it is left unchanged."""
        if service.disabled and service.disabled_reason == MAINTENANCE:
            self.services.enable(context, service)
