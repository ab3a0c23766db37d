"""The hypervisors and what is taken of them, as rows; memory in MiB, disk in GiB."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from computeapi.db.records import required
from computeapi.db.services import COMPUTE, SERVICES, Service
from computeapi.db.tables.compute import allocations, hypervisors, servers, services

# Loaded beside the row when a view or a service names them.
USAGE, SERVERS = 'usage', 'servers'


class Usage(NamedTuple):
    """What is taken of a hypervisor. workload: how many of its servers have something under way."""

    vcpus: int = 0
    memory_mb: int = 0
    disk_gb: int = 0
    servers: int = 0
    workload: int = 0


class Member(NamedTuple):
    """A server on a hypervisor."""

    uuid: str
    name: str


@dataclass(slots=True)
class Hypervisor:
    """What a compute host has."""

    id: int
    uuid: str
    host: str
    hypervisor_hostname: str
    hypervisor_type: str
    hypervisor_version: int
    host_ip: str
    cpu_info: dict[str, Any]
    vcpus: int
    memory_mb: int
    local_gb: int
    started_at: datetime
    service: Service
    # Loaded on request; `servers` is None when nobody asked.
    usage: Usage = Usage()
    servers: list[Member] | None = None
    # Worked out by compute.hypervisors.
    up: bool = False
    uptime: str | None = None

    @property
    def free_memory_mb(self) -> int:
        return self.memory_mb - self.usage.memory_mb

    @property
    def free_disk_gb(self) -> int:
        return self.local_gb - self.usage.disk_gb


# A hypervisor whose service was forgotten is none.
SERVED = hypervisors.join(services, (services.c.host == hypervisors.c.host) & (services.c.binary == COMPUTE))
COLUMNS = [name for name in required(Hypervisor) if name != 'service']
SELECT = sa.select(*(hypervisors.c[name] for name in COLUMNS), *SERVICES.columns).select_from(SERVED)


def select(
    connection: sa.Connection,
    conditions: Sequence[sa.ColumnElement[bool]] = (),
    order: Sequence[sa.ColumnElement[Any]] = (hypervisors.c.id,),
    limit: int | None = None,
    needs: Collection[str] = (),
) -> list[Hypervisor]:
    """Hypervisors with their services, in one query and a constant number more for what is needed beside them."""
    rows = connection.execute(SELECT.where(*conditions).order_by(*order).limit(limit))
    found = [_record(row) for row in rows]
    hosts = [each.host for each in found]
    if USAGE in needs:
        usage = usage_of(connection, hosts)
        for each in found:
            each.usage = usage.get(each.host, Usage())
    if SERVERS in needs:
        _add_servers(connection, found, hosts)
    return found


def _record(row: sa.Row[Any]) -> Hypervisor:
    facts = dict(zip(COLUMNS, row, strict=False))
    return Hypervisor(**facts, service=Service(*row[len(COLUMNS) :]))


def lock(connection: sa.Connection, host: str) -> None:
    """Make others who lock the host wait until this transaction ends."""
    connection.execute(sa.select(hypervisors.c.id).where(hypervisors.c.host == host).with_for_update()).all()


def usage_of(connection: sa.Connection, hosts: Sequence[str]) -> dict[str, Usage]:
    """What is taken of each host, in two queries; hosts of which nothing is taken may be missing."""
    sums = [sa.func.sum(allocations.c[name]) for name in ('vcpus', 'memory_mb', 'disk_gb')]
    statement = sa.select(allocations.c.host, *sums).where(allocations.c.host.in_(hosts))
    taken = {host: Usage(*map(int, held)) for host, *held in connection.execute(statement.group_by(allocations.c.host))}
    # count() of a column leaves out NULL, which is no task.
    counts = sa.select(servers.c.host, sa.func.count(), sa.func.count(servers.c.task_state)).where(_living(hosts))
    for host, members, busy in connection.execute(counts.group_by(servers.c.host)):
        taken[host] = taken.get(host, Usage())._replace(servers=members, workload=busy)
    return taken


def _add_servers(connection: sa.Connection, found: Sequence[Hypervisor], hosts: Sequence[str]) -> None:
    members: dict[str, list[Member]] = {host: [] for host in hosts}
    statement = sa.select(servers.c.host, servers.c.uuid, servers.c.name).where(_living(hosts)).order_by(servers.c.id)
    for host, *member in connection.execute(statement):
        members[host].append(Member(*member))
    for each in found:
        each.servers = members[each.host]


def shares(connection: sa.Connection, host: str) -> dict[str, tuple[int, int, int]]:
    """What the servers of each project on a host are made of: vcpus, memory, disk."""
    disk = servers.c.root_gb + servers.c.ephemeral_gb
    sums = [sa.func.sum(each) for each in (servers.c.vcpus, servers.c.memory_mb, disk)]
    statement = sa.select(servers.c.project_id, *sums).where(_living([host])).group_by(servers.c.project_id)
    rows = connection.execute(statement.order_by(servers.c.project_id))
    return {project: (int(vcpus), int(memory), int(gigabytes)) for project, vcpus, memory, gigabytes in rows}


def _living(hosts: Sequence[str]) -> sa.ColumnElement[bool]:
    return servers.c.host.in_(hosts) & servers.c.deleted_at.is_(None)
