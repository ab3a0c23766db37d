"""What makes availability zones: the services there are, and the aggregates that their hosts are in."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import sqlalchemy as sa

from computeapi.db import aggregates
from computeapi.db.tables.compute import services

KEY = 'availability_zone'


def of_hosts(connection: sa.Connection, hosts: Collection[str] | None = None) -> dict[str, str]:
    """By host (of these, or of all), the zone that an aggregate puts it in; hosts in none are left out."""
    zones: dict[str, str] = {}
    for host, metadata in aggregates.metadata_by_host(connection, hosts).items():
        if named := [values[KEY] for values in metadata if values.get(KEY)]:
            zones[host] = named[0]
    return zones


def all_services(connection: sa.Connection) -> Sequence[sa.Row]:
    return connection.execute(sa.select(services).order_by(services.c.host, services.c.binary)).all()


def hosts(connection: sa.Connection, binary: str) -> list[str]:
    """The hosts that have the service."""
    statement = sa.select(services.c.host).where(services.c.binary == binary)
    return list(connection.scalars(statement.order_by(services.c.host)))
