"""The compute hosts: what they are, whether they are up, and what is taken of them."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from computeapi.backends.hypervisor import Host, Hypervisor
from computeapi.clock import utcnow
from computeapi.db.engine import Store
from computeapi.db.tables.compute import hypervisors, services

LOG = logging.getLogger(__name__)
COMPUTE = 'nova-compute'
CONTROL = ('nova-conductor', 'nova-scheduler')


class Hosts:
    """Keeps the rows of the hosts that a driver serves, and says now and then that they live."""

    def __init__(
        self, store: Store, driver: Hypervisor, *, beat_seconds: float, clock: Callable[[], datetime] = utcnow
    ):
        self.store, self.driver, self.clock = store, driver, clock
        self.beat_seconds = beat_seconds
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._beat, name='heartbeat', daemon=True)

    def start(self) -> None:
        self.register()
        self.thread.start()

    def stop(self) -> None:
        self.stopping.set()
        self.thread.join()

    def register(self) -> None:
        """Make or bring up to date the rows of the driver's hosts and of the control services."""
        try:
            self._register()
        except sa.exc.IntegrityError:
            # Another process that starts at this moment was quicker: the rows are there now.
            self._register()

    def _register(self) -> None:
        hosts = self.driver.hosts()
        with self.store.write() as connection:
            for host in hosts:
                self._service(connection, host.name, COMPUTE)
                self._hypervisor(connection, host)
            for binary in CONTROL:
                self._service(connection, 'controller', binary)

    def _service(self, connection: sa.Connection, host: str, binary: str) -> None:
        now = self.clock()
        known = (services.c.host == host) & (services.c.binary == binary)
        if connection.execute(sa.update(services).where(known).values(seen_at=now)).rowcount == 0:
            values = {'disabled': False, 'forced_down': False, 'created_at': now, 'seen_at': now}
            row = {'uuid': str(uuid.uuid4()), 'host': host, 'binary': binary, **values}
            connection.execute(sa.insert(services).values(**row))

    def _hypervisor(self, connection: sa.Connection, host: Host) -> None:
        now = self.clock()
        values = {
            'host': host.name,
            'hypervisor_type': host.hypervisor_type,
            'hypervisor_version': host.hypervisor_version,
            'host_ip': host.host_ip,
            'cpu_info': dict(host.cpu_info),
            'vcpus': host.vcpus,
            'memory_mb': host.memory_mb,
            'local_gb': host.local_gb,
            'started_at': now,
        }
        known = hypervisors.c.hypervisor_hostname == host.hypervisor_hostname
        if connection.execute(sa.update(hypervisors).where(known).values(**values, updated_at=now)).rowcount == 0:
            row = {'uuid': str(uuid.uuid4()), 'hypervisor_hostname': host.hypervisor_hostname, 'created_at': now}
            connection.execute(sa.insert(hypervisors).values(**row, **values))

    def _beat(self) -> None:
        names = [host.name for host in self.driver.hosts()]
        while not self.stopping.wait(self.beat_seconds):
            try:
                with self.store.write() as connection:
                    statement = sa.update(services).where(services.c.host.in_([*names, 'controller']))
                    connection.execute(statement.values(seen_at=self.clock()))
            except Exception:
                # One beat that is missed does no harm; a heart that stops would.
                LOG.exception('The hosts could not say that they live')


def is_up(row: Any, now: datetime, down_after: float) -> bool:
    """Whether a service was heard of lately and was not forced down."""
    return not row.forced_down and row.seen_at is not None and now - row.seen_at <= timedelta(seconds=down_after)
