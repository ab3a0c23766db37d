"""The services that make up the cloud: whether they are up, and taking them out of use."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

import sqlalchemy as sa
from oslo_config import cfg

from computeapi.clock import utcnow
from computeapi.compute.hosts import COMPUTE, is_up
from computeapi.compute.zones import INTERNAL
from computeapi.db import services as rows
from computeapi.db import zones
from computeapi.db.engine import Store
from computeapi.db.listing import identified
from computeapi.db.services import Service
from computeapi.db.tables.compute import services
from computeapi.errors import Conflict, NotFound


class Status(NamedTuple):
    """A service with what follows from its row: the zone it is in and whether it is up."""

    service: Service
    zone: str
    up: bool


class Services:
    """Errors: NotFound, Conflict."""

    def __init__(self, store: Store, conf: cfg.ConfigOpts, clock: Callable[[], datetime] = utcnow):
        self.store, self.conf, self.clock = store, conf, clock

    def list(self, host: str | None = None, binary: str | None = None) -> list[Status]:
        named = [(services.c.host, host), (services.c.binary, binary)]
        with self.store.read() as connection:
            return self._statuses(connection, *(column == name for column, name in named if name))

    def find(self, *, host: str | None = None, binary: str | None = None, uuid: str | None = None) -> Status:
        """The service of that binary on that host, or of that UUID; NotFound."""
        by_name = (services.c.host == host) & (services.c.binary == binary)
        with self.store.read() as connection:
            found = self._statuses(connection, by_name if uuid is None else services.c.uuid == uuid)
        if found:
            return found[0]
        missing = f"Host '{host}' is not mapped to any cell" if uuid is None else f'Service {uuid} could not be found.'
        raise NotFound(missing)

    def _statuses(self, connection: sa.Connection, *conditions: sa.ColumnElement[bool]):
        found = rows.select(connection, *conditions)
        by_host = zones.of_hosts(connection)
        now = self.clock()
        return [self._status(service, by_host, now) for service in found]

    def _status(self, service: Service, by_host: dict[str, str], now: datetime) -> Status:
        zone = by_host.get(service.host, self.conf.default_availability_zone)
        up = is_up(service, now, self.conf.service_down_time)
        return Status(service, zone if service.binary == COMPUTE else INTERNAL, up)

    def enable(self, service: Service) -> Status:
        return self._change(service, disabled=False, disabled_reason=None)

    def disable(self, service: Service, reason: str | None = None) -> Status:
        """No new servers come to its host."""
        return self._change(service, disabled=True, disabled_reason=reason)

    def force_down(self, service: Service, down: bool) -> Status:
        """Say that it is down, whatever signs of life it gives, so that its servers can be evacuated."""
        return self._change(service, forced_down=down)

    def _change(self, service: Service, **values) -> Status:
        with self.store.write() as connection:
            rows.update(connection, service.id, values | {'updated_at': self.clock()})
            return self._statuses(connection, services.c.id == service.id)[0]

    def delete(self, identifier: str) -> None:
        """Forget the service of that number or UUID; Conflict for a compute host that still has servers."""
        with self.store.write() as connection:
            service = next(iter(rows.select(connection, identified(services, identifier))), None)
            if service is None:
                raise NotFound(f'Service {identifier} not found.')
            if service.binary == COMPUTE and rows.has_servers(connection, service.host):
                raise Conflict(
                    'Unable to delete compute service that is hosting instances. Migrate or delete the instances first.'
                )
            rows.delete(connection, service)
