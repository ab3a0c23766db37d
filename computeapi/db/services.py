"""The services of the cloud, as rows."""

import functools
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from computeapi import randomness
from computeapi.db.listing import identified
from computeapi.db.placement_changes import note_host
from computeapi.db.records import Among, Rows
from computeapi.db.tables.compute import ComputeService, agents, aggregate_hosts, hypervisors, services
from computeapi.db.tables.servers import servers

__all__ = ['ComputeService']

COMPUTE = 'nova-compute'
"""The binary of the service that runs the servers of a host."""
CONTROL = ('nova-conductor', 'nova-scheduler')
"""The binaries of the services whose work is done by processes with workers."""


SERVICES = Rows(ComputeService, services)
RUNS_SERVERS = services.c.binary == COMPUTE
OF_COMPUTE_HOSTS = Among(SERVICES.select.where(RUNS_SERVERS), services.c.host)


def runs(host: sa.Column[Any]) -> sa.ColumnElement[bool]:
    """Whether a service runs the servers of the host in that column."""
    return (services.c.host == host) & RUNS_SERVERS


def select(connection: sa.Connection, host: str | None = None, binary: str | None = None) -> list[ComputeService]:
    """The services on that host (or any) with that binary (or any)."""
    parameters = {'asked_host': host, 'asked_binary': binary}
    return SERVICES.all(connection, _chosen(host is not None, binary is not None), parameters)


@functools.cache
def _chosen(by_host: bool, by_binary: bool) -> sa.Select[Any]:
    """The statement for the services of a host, of a binary, of both or of neither."""
    of_host = [services.c.host == sa.bindparam('asked_host')] if by_host else []
    of_binary = [services.c.binary == sa.bindparam('asked_binary')] if by_binary else []
    return SERVICES.select.where(*of_host, *of_binary).order_by(services.c.id)


def up(since: sa.BindParameter[Any]) -> sa.ColumnElement[bool]:
    """Whether a service was seen since that moment, and is not forced down."""
    return services.c.forced_down.is_(False) & (services.c.seen_at >= since)


def get(connection: sa.Connection, identifier: str) -> ComputeService | None:
    """The service with that ID or UUID."""
    return SERVICES.first(connection, SERVICES.select.where(identified(services, identifier)))


def of_compute_hosts(connection: sa.Connection, hosts: Collection[str]) -> list[ComputeService]:
    """The compute services of these hosts."""
    return SERVICES.of(OF_COMPUTE_HOSTS.rows(connection, hosts))


def of_compute_host(connection: sa.Connection, host: str | None) -> ComputeService | None:
    """The compute service of the host; None if it is no compute host."""
    return next(iter(of_compute_hosts(connection, [host])), None) if host else None


def last_sign(connection: sa.Connection) -> datetime | None:
    """The latest heartbeat of any compute host that is not forced down."""
    alive = RUNS_SERVERS & services.c.forced_down.is_(False)
    last: datetime | None = connection.scalar(sa.select(sa.func.max(services.c.seen_at)).where(alive))
    return last


def is_seen(connection: sa.Connection, host: str, binary: str, now: datetime) -> ComputeService | None:
    """Record a heartbeat of the service, which is created if it is new; returns the new one."""
    known = (services.c.host == host) & (services.c.binary == binary)
    if connection.execute(sa.update(services).where(known).values(seen_at=now)).rowcount:
        return None
    values = {'disabled': False, 'forced_down': False, 'created_at': now, 'seen_at': now}
    connection.execute(sa.insert(services).values(uuid=randomness.new_id(), host=host, binary=binary, **values))
    return SERVICES.find(connection, host=host, binary=binary)


def is_gone(connection: sa.Connection, host: str) -> None:
    """Record that the compute service of the host has shut down."""
    SERVICES.update(connection, {'seen_at': None}, host=host, binary=COMPUTE)


def control_is_gone(connection: sa.Connection, host: str) -> None:
    """Record that the control services on that machine have shut down."""
    connection.execute(
        sa.update(services).where(services.c.host == host, services.c.binary.in_(CONTROL)).values(seen_at=None)
    )


def are_seen(connection: sa.Connection, hosts: Collection[str], now: datetime) -> None:
    """Like `is_seen`, for the existing compute services of these hosts."""
    if hosts:
        connection.execute(sa.update(services).where(services.c.host.in_(hosts), RUNS_SERVERS).values(seen_at=now))


def update(connection: sa.Connection, service: ComputeService, values: Mapping[str, Any]) -> None:
    SERVICES.update(connection, values, id=service.id)
    if service.binary == COMPUTE and 'disabled' in values:
        note_host(connection, service.host)


def delete(connection: sa.Connection, service: ComputeService) -> None:
    """Delete the service and, for a compute host, the records of the host."""
    connection.execute(sa.delete(services).where(services.c.id == service.id))
    if service.binary == COMPUTE:
        note_host(connection, service.host)
        connection.execute(sa.delete(hypervisors).where(hypervisors.c.host == service.host))
        connection.execute(sa.delete(agents).where(agents.c.host == service.host))
        connection.execute(sa.delete(aggregate_hosts).where(aggregate_hosts.c.host == service.host))


def has_servers(connection: sa.Connection, host: str) -> bool:
    living = (servers.c.host == host) & servers.c.deleted_at.is_(None)
    return connection.execute(sa.select(servers.c.id).where(living).limit(1)).first() is not None
