"""The services that make up the cloud, as rows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from computeapi.db.tables.compute import aggregate_hosts, hypervisors, servers, services


class Service(NamedTuple):
    """A service on a host; named as the columns are, and in their order. `seen_at`: its last sign of life."""

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


def select(connection: sa.Connection, *conditions: sa.ColumnElement[bool]) -> list[Service]:
    statement = sa.select(services).where(*conditions).order_by(services.c.id)
    return [Service(*row) for row in connection.execute(statement)]


def update(connection: sa.Connection, service_id: int, values: Mapping[str, Any]) -> None:
    connection.execute(sa.update(services).where(services.c.id == service_id).values(**values))


def delete(connection: sa.Connection, service: Service) -> None:
    """The service and, for a compute host, what is known of the host."""
    connection.execute(sa.delete(services).where(services.c.id == service.id))
    if service.binary == 'nova-compute':
        connection.execute(sa.delete(hypervisors).where(hypervisors.c.host == service.host))
        connection.execute(sa.delete(aggregate_hosts).where(aggregate_hosts.c.host == service.host))


def has_servers(connection: sa.Connection, host: str) -> bool:
    living = (servers.c.host == host) & servers.c.deleted_at.is_(None)
    return connection.execute(sa.select(servers.c.id).where(living).limit(1)).first() is not None
