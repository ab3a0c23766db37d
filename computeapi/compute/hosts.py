"""The compute hosts: their facts, whether they are up, and their heartbeats."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from computeapi.backends.hypervisor import Host
from computeapi.clock import utcnow
from computeapi.compute.notifications.outbox import NOBODY, NOWHERE, Outbox
from computeapi.compute.notifications.services import of_service
from computeapi.compute.periodic import Periodic
from computeapi.compute.platform import Platform
from computeapi.compute.scheduler.hosts import is_up
from computeapi.db import agents, cells, hypervisors, services
from computeapi.db.agents import Agent
from computeapi.db.engine import Store
from computeapi.db.services import COMPUTE, CONTROL


class HostRegistry:
    """Maintains the rows of the hosts that this process drives, and of its control services, and sends their
    heartbeats.

    hosts: returns those hosts; hosts with agents report by themselves.  control: the host name of the control services;
    None: the process does none of their work.  upkeep: maintains the hosts.  outbox: for notices of services.
    """

    def __init__(
        self,
        store: Store,
        hosts: Callable[[], Sequence[Host]],
        *,
        control: str | None,
        beat_seconds: float,
        clock: Callable[[], datetime] = utcnow,
        upkeep: Callable[[], None] = lambda: None,
        outbox: Outbox = NOWHERE,
    ):
        self.store, self.hosts, self.control, self.clock = store, hosts, control, clock
        self.outbox = outbox
        self.beat = Periodic('heartbeat', self.report, beat_seconds)
        # It may take longer than a host may go without a heartbeat.
        self.care = Periodic('upkeep', upkeep, beat_seconds)

    def start(self) -> None:
        """Start sending the heartbeats of the hosts, which are registered already."""
        self.beat.start()
        self.care.start()

    def stop(self) -> None:
        self.care.stop()
        self.beat.stop()

    def register(self) -> None:
        """Create or update the rows of the hosts and of the control services."""
        try:
            self._register()
        except IntegrityError:
            # Another process that starts at the same time was faster: the rows exist now.
            self._register()

    def _register(self) -> None:
        hosts, now = self.hosts(), self.clock()
        with self.store.write() as connection:
            self._register_hosts(connection, hosts, now)
            self._control(connection, now)

    def _register_hosts(self, connection: sa.Connection, hosts: Sequence[Host], now: datetime) -> None:
        cells.register(connection, {host.cell for host in hosts})
        for host in hosts:
            if host.on:
                self._is_seen(connection, host.name, COMPUTE, now)
            hypervisors.register(connection, host.hypervisor_hostname, _facts(host) | {'started_at': now}, now)

    def _is_seen(self, connection: sa.Connection, host: str, binary: str, now: datetime) -> None:
        """Record a heartbeat, and notify others of a new service."""
        new = services.is_seen(connection, host, binary, now)
        if new is not None:
            self.outbox.add(connection, NOBODY, of_service(new, 'create'))

    def _control(self, connection: sa.Connection, now: datetime) -> None:
        """Send the heartbeats of the control services, which recreates rows that were deleted while they work."""
        if self.control is not None:
            for binary in CONTROL:
                self._is_seen(connection, self.control, binary, now)

    def record_report(self, host: Host, agent: Agent) -> None:
        """Record the report of an agent on its host, and the heartbeats of both."""
        try:
            self._record_report(host, agent)
        except IntegrityError:
            # Another process recorded a host of the same cell at the same time.
            self._record_report(host, agent)

    def _record_report(self, host: Host, agent: Agent) -> None:
        with self.store.write() as connection:
            known = agents.get(connection, agent.host)
            begun = agent.seen_at if known is None or known.id != agent.id else known.started_at
            forgotten = services.of_compute_host(connection, agent.host) is None
            if forgotten or known is None or begun == agent.seen_at:
                self._register_hosts(connection, [host], agent.seen_at)
            elif host.on:
                self._is_seen(connection, host.name, COMPUTE, agent.seen_at)
            agents.is_seen(connection, agent._replace(started_at=begun))

    def running(self) -> list[str]:
        """The hosts that are on."""
        return [host.name for host in self.hosts() if host.on]

    def report(self) -> None:
        """Send the heartbeats of the hosts that are on, and of the control services."""
        self.store.change(self._record_heartbeats, self.running(), self.clock())

    def _record_heartbeats(self, connection: sa.Connection, running: Sequence[str], now: datetime) -> None:
        services.are_seen(connection, running, now)
        self._control(connection, now)


def is_host_up(platform: Platform, host: str | None) -> bool:
    """Whether the host has sent a heartbeat lately and was not forced down; False for an unknown host."""
    service = platform.store.query(services.of_compute_host, host)
    return service is not None and is_up(service, platform.clock(), platform.conf.service_down_time)


def _facts(host: Host) -> dict[str, Any]:
    """The driver's facts about the hypervisor of a host, as columns."""
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
        'traits': [*host.traits] or None,
        'resources': dict(host.resources) or None,
    }
