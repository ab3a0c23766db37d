"""The services of the cloud: whether they are up, and how to take them out of service."""

import builtins
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa
from oslo_config import cfg

from computeapi.compute.cells import Cells
from computeapi.compute.notifications.outbox import Outbox
from computeapi.compute.notifications.services import of_service
from computeapi.compute.scheduler.hosts import is_up
from computeapi.compute.zones import INTERNAL
from computeapi.context import Context
from computeapi.db import aggregates, allocations, server_migrations, services
from computeapi.db.engine import Store
from computeapi.db.services import COMPUTE, ComputeService
from computeapi.errors import Conflict, Invalid, NotFound


class ServiceStatus(NamedTuple):
    """A service with derived facts: its zone, whether it is up, and whether its cell is down."""

    service: ComputeService
    zone: str
    up: bool
    unreachable: bool


class ServiceManager:
    """Errors: NotFound, Conflict, Invalid, CellDown."""

    def __init__(self, store: Store, outbox: Outbox, cells: Cells, conf: cfg.ConfigOpts):
        self.store, self.outbox, self.cells, self.conf, self.clock = store, outbox, cells, conf, store.clock

    def list(
        self, host: str | None = None, binary: str | None = None, *, unreachable: bool = False
    ) -> builtins.list[ServiceStatus]:
        """List services. unreachable: include those whose cell is down."""
        with self.store.read() as connection:
            found = self._statuses(connection, services.select(connection, host or None, binary or None))
        return [status for status in found if unreachable or not status.unreachable]

    def find(self, *, host: str, binary: str) -> ServiceStatus:
        """The service of that binary on that host, to be changed; Invalid if it is not a compute service, NotFound."""
        check_binary(binary)
        with self.store.read() as connection:
            found = self._statuses(connection, services.select(connection, host, binary))
        if not found:
            raise NotFound(f"Host '{host}' is not mapped to any cell")
        self.cells.check(host)
        return found[0]

    def get(self, uuid: str) -> ServiceStatus:
        """The service with that UUID, to be changed; NotFound, Invalid if it is not a compute service."""
        with self.store.read() as connection:
            service = services.get(connection, uuid)
            if service is None:
                raise NotFound(f'Service {uuid} could not be found.')
            check_binary(service.binary)
            self.cells.check(service.host)
            return self._statuses(connection, [service])[0]

    def _statuses(self, connection: sa.Connection, found: Sequence[ComputeService]) -> builtins.list[ServiceStatus]:
        by_host = aggregates.zones(connection, {service.host for service in found})
        now = self.clock()
        return [self._status(service, by_host, now) for service in found]

    def _status(self, service: ComputeService, by_host: dict[str, str], now: datetime) -> ServiceStatus:
        zone = by_host.get(service.host, self.conf.default_availability_zone)
        up = is_up(service, now, self.conf.service_down_time)
        lost = service.host in self.cells.out_of_reach()
        return ServiceStatus(service, zone if service.binary == COMPUTE else INTERNAL, up, lost)

    def enable(self, context: Context, service: ComputeService) -> ServiceStatus:
        return self._change(context, service, disabled=False, disabled_reason=None)

    def disable(self, context: Context, service: ComputeService, reason: str | None = None) -> ServiceStatus:
        """Disable the service: no new servers are scheduled to its host."""
        return self._change(context, service, disabled=True, disabled_reason=reason)

    def force_down(self, context: Context, service: ComputeService, down: bool) -> ServiceStatus:
        """Treat the service as down, whatever heartbeats it sends, so that its servers can be evacuated.

        Invalid to undo this before the host has removed the machines of the servers that were evacuated from it.
        """
        if not down and self.store.query(server_migrations.evacuations_from, [service.host]):
            raise Invalid(
                f'Unable to force up host {service.host} as `done` evacuation migration records remain associated with '
                'the host. Ensure the compute service has been restarted, allowing these records to move to '
                '`completed` before retrying this request.'
            )
        return self._change(context, service, forced_down=down)

    def _change(self, context: Context, service: ComputeService, **values: Any) -> ServiceStatus:
        with self.store.write() as connection:
            values['updated_at'] = self.clock()
            services.update(connection, service, values)
            changed = service._replace(**values)
            self.outbox.add(connection, context, of_service(changed, 'update'))
            return self._statuses(connection, [changed])[0]

    def delete(self, context: Context, identifier: str) -> None:
        """Delete the service with that ID or UUID; Conflict for a compute host with servers or migrations in
        progress."""
        with self.store.write() as connection:
            service = services.get(connection, identifier)
            if service is None:
                raise NotFound(f'Service {identifier} not found.')
            self.cells.check(service.host)
            if service.binary == COMPUTE:
                _check_empty(connection, service.host)
            services.delete(connection, service)
            self.outbox.add(connection, context, of_service(service, 'delete'))


def _check_empty(connection: sa.Connection, host: str) -> None:
    allocations.lock_host(connection, host)
    if services.has_servers(connection, host):
        raise Conflict(
            'Unable to delete compute service that is hosting instances. Migrate or delete the instances first.'
        )
    if server_migrations.are_under_way(connection, host):
        raise Conflict(
            'Unable to delete compute service that has in-progress migrations. Complete the migrations or delete the '
            'instances first.'
        )


def check_binary(binary: str) -> None:
    """Invalid for a service that cannot be disabled."""
    if binary != COMPUTE:
        raise Invalid(f'Updating a {binary[:64]} service is not supported. Only {COMPUTE} services can be updated.')
