"""The compute hosts: what they are, whether they are up, and what is taken of them."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from sqlalchemy.exc import IntegrityError

from computeapi.backends.hypervisor import Host, Hypervisor
from computeapi.clock import utcnow
from computeapi.compute.periodic import Periodic
from computeapi.db import cells, hypervisors, services
from computeapi.db.engine import Store
from computeapi.db.services import COMPUTE

CONTROLLER = 'controller'
CONTROL = ('nova-conductor', 'nova-scheduler')


class HostRegistry:
    """Keeps the rows of the hosts that a driver serves, and says now and then that they live."""

    def __init__(
        self, store: Store, driver: Hypervisor, *, beat_seconds: float, clock: Callable[[], datetime] = utcnow
    ):
        self.store, self.driver, self.clock = store, driver, clock
        self.beat = Periodic('heartbeat', self.report, beat_seconds)

    def start(self) -> None:
        """Say from now on that the hosts are up, which are registered."""
        self.beat.start()

    def stop(self) -> None:
        self.beat.stop()

    def register(self) -> None:
        """Make or bring up to date the rows of the driver's hosts and of the control services."""
        try:
            self._register()
        except IntegrityError:
            # Another process that starts at this moment was quicker: the rows are there now.
            self._register()

    def _register(self) -> None:
        hosts, now = self.driver.hosts(), self.clock()
        with self.store.write() as connection:
            cells.register(connection, {host.cell for host in hosts})
            for host in hosts:
                if host.on:
                    services.is_seen(connection, host.name, COMPUTE, now)
                hypervisors.register(connection, host.hypervisor_hostname, _facts(host) | {'started_at': now}, now)
            for binary in CONTROL:
                services.is_seen(connection, CONTROLLER, binary, now)

    def running(self) -> list[str]:
        """The driver's hosts that are on."""
        return [host.name for host in self.driver.hosts() if host.on]

    def report(self) -> None:
        """Say that the hosts that are on live."""
        self.store.tell(services.are_seen, [*self.running(), CONTROLLER], self.clock())


def _facts(host: Host) -> dict[str, Any]:
    """What a driver says of the hypervisor of a host, as columns."""
    return {
        'host': host.name,
        'cell': host.cell,
        'hypervisor_type': host.hypervisor_type,
        'hypervisor_version': host.hypervisor_version,
        'host_ip': host.host_ip,
        'cpu_info': dict(host.cpu_info),
        'vcpus': host.vcpus,
        'memory_mb': host.memory_mb,
        'local_gb': host.local_gb,
    }
