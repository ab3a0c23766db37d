"""What makes availability zones: the services there are, and the aggregates that their hosts are in."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from computeapi.db.tables.compute import aggregate_hosts, aggregates, services

KEY = 'availability_zone'


def of_hosts(connection: sa.Connection, hosts: Sequence[str] | None = None) -> dict[str, str]:
    """By host (of these, or of all), the zone that an aggregate puts it in; hosts in none are left out."""
    joined = aggregate_hosts.join(aggregates, aggregate_hosts.c.aggregate_id == aggregates.c.id)
    statement = sa.select(aggregate_hosts.c.host, aggregates.c.metadata).select_from(joined).order_by(aggregates.c.id)
    if hosts is not None:
        statement = statement.where(aggregate_hosts.c.host.in_(hosts))
    zones: dict[str, str] = {}
    for host, metadata in connection.execute(statement):
        if zone := metadata.get(KEY):
            zones.setdefault(host, zone)
    return zones


def all_services(connection: sa.Connection) -> Sequence[sa.Row]:
    return connection.execute(sa.select(services).order_by(services.c.host, services.c.binary)).all()


def hosts(connection: sa.Connection, binary: str) -> list[str]:
    """The hosts that have the service."""
    statement = sa.select(services.c.host).where(services.c.binary == binary)
    return list(connection.scalars(statement.order_by(services.c.host)))
