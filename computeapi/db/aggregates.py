"""Host aggregates, as rows."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from computeapi.db.constant_queries import fetch
from computeapi.db.placement_changes import AGGREGATE, note, note_host
from computeapi.db.records import Among, Rows, grouped
from computeapi.db.tables.compute import ZONE, Aggregate, aggregate_hosts, aggregates
from computeapi.db.tables.servers import servers

__all__ = ['ZONE', 'Aggregate']

AGGREGATES = Rows(Aggregate, aggregates)
LOCKED = sa.select(aggregates.c.id).order_by(aggregates.c.id).with_for_update()
METADATA = (
    sa.select(aggregate_hosts.c.host, aggregates.c.metadata)
    .select_from(aggregate_hosts.join(aggregates, aggregate_hosts.c.aggregate_id == aggregates.c.id))
    .order_by(aggregates.c.id)
)
METADATA_OF_HOSTS = Among(METADATA, aggregate_hosts.c.host)
MEMBERS = Among(
    sa.select(aggregate_hosts.c.aggregate_id, aggregate_hosts.c.host).order_by(aggregate_hosts.c.host),
    aggregate_hosts.c.aggregate_id,
)


def lock(connection: sa.Connection) -> None:
    """Lock all existing aggregates against changes until the transaction ends."""
    connection.execute(LOCKED)


def select(connection: sa.Connection) -> list[Aggregate]:
    """All aggregates with their hosts, in two queries."""
    return _with_hosts(connection, AGGREGATES.all(connection, AGGREGATES.select.order_by(aggregates.c.id)))


def _with_hosts(connection: sa.Connection, found: list[Aggregate]) -> list[Aggregate]:
    rows = MEMBERS.rows(connection, [each.id for each in found])
    hosts = grouped((aggregate_id, host) for aggregate_id, host in rows)
    for each in found:
        each.hosts = hosts.get(each.id, [])
    return found


def metadata_by_host(
    connection: sa.Connection, hosts: Collection[str] | None = None
) -> dict[str, list[dict[str, str]]]:
    """By host (of these, or of all) that is in any aggregate, the metadata of its aggregates, oldest first."""
    rows = fetch(connection, METADATA, {}) if hosts is None else METADATA_OF_HOSTS.rows(connection, hosts)
    return grouped((host, metadata) for host, metadata in rows)


def zone_of(metadata: Iterable[Mapping[str, str]]) -> str | None:
    """The availability zone from the metadata of a host's aggregates; the first one that names a zone counts."""
    return next((values[ZONE] for values in metadata if values.get(ZONE)), None)


def zones(connection: sa.Connection, hosts: Collection[str] | None = None) -> dict[str, str]:
    """By host (of these, or of all), the zone that an aggregate puts it in; hosts without one are left out."""
    named = {host: zone_of(metadata) for host, metadata in metadata_by_host(connection, hosts).items()}
    return {host: zone for host, zone in named.items() if zone}


def get(connection: sa.Connection, aggregate_id: int) -> Aggregate | None:
    found = AGGREGATES.find(connection, id=aggregate_id)
    return None if found is None else _with_hosts(connection, [found])[0]


def insert(connection: sa.Connection, values: Mapping[str, Any]) -> int:
    """The ID of the new row."""
    return AGGREGATES.add(connection, **values)


def update(connection: sa.Connection, aggregate_id: int, values: Mapping[str, Any]) -> None:
    AGGREGATES.update(connection, values, id=aggregate_id)


def delete(connection: sa.Connection, aggregate_id: int) -> None:
    found = get(connection, aggregate_id)
    AGGREGATES.delete(connection, id=aggregate_id)
    note(connection, AGGREGATE, [found.uuid] if found else [])


def add_host(connection: sa.Connection, aggregate_id: int, host: str) -> None:
    connection.execute(sa.insert(aggregate_hosts).values(aggregate_id=aggregate_id, host=host))
    note_host(connection, host)


def remove_host(connection: sa.Connection, aggregate_id: int, host: str) -> None:
    mine = (aggregate_hosts.c.aggregate_id == aggregate_id) & (aggregate_hosts.c.host == host)
    connection.execute(sa.delete(aggregate_hosts).where(mine))
    note_host(connection, host)


def hosts_with_servers(connection: sa.Connection, hosts: list[str]) -> list[str]:
    """Those of these hosts that have servers."""
    busy = servers.c.host.in_(hosts) & servers.c.deleted_at.is_(None)
    return list(connection.execute(sa.select(servers.c.host).where(busy).distinct()).scalars())
