"""The services that make up the cloud, as rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from computeapi.db.records import Rows
from computeapi.db.tables.compute import aggregate_hosts, hypervisors, servers, services

COMPUTE = 'nova-compute'
"""The binary of the service that runs the servers of a host."""


class Service(NamedTuple):
    """A service on a host; named as the columns are. `seen_at`: its last sign of life."""

    id: int
    uuid: str
    host: str
    binary: str
    disabled: bool
    disabled_reason: str | None
    forced_down: bool
    seen_at: datetime | None
    created_at: datetime
    updated_at: datetime | None


SERVICES = Rows(Service, services)
OF_COMPUTE_HOSTS = SERVICES.select.where(
    services.c.host.in_(sa.bindparam('hosts', expanding=True)), services.c.binary == COMPUTE
)


def select(connection: sa.Connection, *conditions: sa.ColumnElement[bool]) -> list[Service]:
    return SERVICES.all(connection, SERVICES.select.where(*conditions).order_by(services.c.id))


def of_compute_hosts(connection: sa.Connection, hosts: Collection[str]) -> list[Service]:
    """What runs the servers of these hosts."""
    return SERVICES.all(connection, OF_COMPUTE_HOSTS, {'hosts': list(hosts)})


def of_compute_host(connection: sa.Connection, host: str | None) -> Service | None:
    """What runs the servers of the host; None if it is no compute host."""
    return next(iter(of_compute_hosts(connection, [host])), None) if host else None


def update(connection: sa.Connection, service_id: int, values: Mapping[str, Any]) -> None:
    connection.execute(sa.update(services).where(services.c.id == service_id).values(**values))


def delete(connection: sa.Connection, service: Service) -> None:
    """The service and, for a compute host, what is known of the host."""
    connection.execute(sa.delete(services).where(services.c.id == service.id))
    if service.binary == COMPUTE:
        connection.execute(sa.delete(hypervisors).where(hypervisors.c.host == service.host))
        connection.execute(sa.delete(aggregate_hosts).where(aggregate_hosts.c.host == service.host))


def has_servers(connection: sa.Connection, host: str) -> bool:
    living = (servers.c.host == host) & servers.c.deleted_at.is_(None)
    return connection.execute(sa.select(servers.c.id).where(living).limit(1)).first() is not None
