"""The hosts as the scheduler sees them, loaded in a constant number of queries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from computeapi.compute.hosts import COMPUTE, is_up
from computeapi.compute.scheduler.spec import Spec
from computeapi.db.tables.compute import (
    aggregate_hosts,
    aggregates,
    allocations,
    hypervisors,
    server_groups,
    servers,
    services,
)


class Ratios(NamedTuple):
    """How many times a host's resources may be given away."""

    cpu: float
    ram: float
    disk: float


class Group(NamedTuple):
    """The group of the server that is placed, as one host sees it.

    members: how many others of the group are on that host.  hosts: every host that has any.
    """

    policy: str
    rules: Mapping[str, Any]
    members: int
    hosts: frozenset[str]

    @property
    def most(self) -> int:
        """How many members an anti-affinity group may have on one host."""
        return int(self.rules.get('max_server_per_host', 1))


@dataclass
class HostState:
    """A host; memory in MiB, disk in GiB; `free_*` is what can still be given away.

    aggregates: the metadata of each aggregate that it is in.  servers: {server id: group id or None} on it.
    group: that of the server that is placed, if it is in one.
    """

    name: str
    node: str
    enabled: bool
    up: bool
    zone: str
    host_ip: str
    hypervisor_type: str
    cpu_info: Mapping[str, Any]
    vcpus: int
    memory_mb: int
    local_gb: int
    free_vcpus: float = 0
    free_memory_mb: float = 0
    free_disk_gb: float = 0
    aggregates: list[dict[str, str]] = field(default_factory=list)
    servers: dict[str, str | None] = field(default_factory=dict)
    group: Group | None = None


def load(connection: sa.Connection, conf: Any, ratios: Ratios, now: datetime, spec: Spec) -> list[HostState]:
    """Every compute host, whatever its state."""
    statement = sa.select(hypervisors, services).join_from(
        hypervisors, services, (services.c.host == hypervisors.c.host) & (services.c.binary == COMPUTE)
    )
    named = [hypervisors.c[name] for name in ('host', 'hypervisor_hostname', 'host_ip', 'hypervisor_type', 'cpu_info')]
    sizes = [hypervisors.c[name] for name in ('vcpus', 'memory_mb', 'local_gb')]
    health = [services.c[name] for name in ('disabled', 'forced_down', 'seen_at')]
    rows = connection.execute(statement.with_only_columns(*named, *sizes, *health).order_by(hypervisors.c.id))
    used, metadata = _used(connection), _aggregates(connection)
    hosts = []
    for row in rows:
        groups = metadata.get(row.host, [])
        zones = [values['availability_zone'] for values in groups if values.get('availability_zone')]
        vcpus, memory_mb, disk_gb = used.get(row.host, (0, 0, 0))
        hosts.append(
            HostState(
                name=row.host,
                node=row.hypervisor_hostname,
                enabled=not row.disabled,
                up=is_up(row, now, conf.service_down_time),
                zone=zones[0] if zones else conf.default_availability_zone,
                host_ip=row.host_ip,
                hypervisor_type=row.hypervisor_type,
                cpu_info=row.cpu_info,
                vcpus=row.vcpus,
                memory_mb=row.memory_mb,
                local_gb=row.local_gb,
                free_vcpus=row.vcpus * ratios.cpu - vcpus,
                free_memory_mb=row.memory_mb * ratios.ram - memory_mb,
                free_disk_gb=row.local_gb * ratios.disk - disk_gb,
                aggregates=groups,
            )
        )
    _add_servers(connection, {host.name: host for host in hosts}, spec)
    return hosts


def _used(connection: sa.Connection) -> dict[str, tuple[int, int, int]]:
    sums = (sa.func.sum(allocations.c[name]) for name in ('vcpus', 'memory_mb', 'disk_gb'))
    statement = sa.select(allocations.c.host, *sums).group_by(allocations.c.host)
    return {host: (int(v), int(m), int(d)) for host, v, m, d in connection.execute(statement)}


def _aggregates(connection: sa.Connection) -> dict[str, list[dict[str, str]]]:
    statement = sa.select(aggregate_hosts.c.host, aggregates.c.metadata).join_from(
        aggregate_hosts, aggregates, aggregate_hosts.c.aggregate_id == aggregates.c.id
    )
    found: dict[str, list[dict[str, str]]] = defaultdict(list)
    for host, metadata in connection.execute(statement.order_by(aggregates.c.id)):
        found[host].append(metadata)
    return found


def _add_servers(connection: sa.Connection, hosts: dict[str, HostState], spec: Spec) -> None:
    """Who else is there; asked only when the server's hints or its group make a difference."""
    wanted = {'same_host', 'different_host'} & set(spec.hints)
    if not wanted and spec.group_id is None:
        return
    statement = sa.select(servers.c.uuid, servers.c.host, servers.c.server_group_id).where(
        servers.c.deleted_at.is_(None), servers.c.host.is_not(None), servers.c.uuid != spec.server_id
    )
    members: dict[str, int] = defaultdict(int)
    for server_id, host, group_id in connection.execute(statement):
        if host in hosts:
            hosts[host].servers[server_id] = group_id
        if group_id is not None and group_id == spec.group_id:
            members[host] += 1
    if spec.group_id is not None:
        _add_group(connection, hosts, spec.group_id, members)


def _add_group(
    connection: sa.Connection, hosts: dict[str, HostState], group_id: str, members: Mapping[str, int]
) -> None:
    row = connection.execute(sa.select(server_groups).where(server_groups.c.uuid == group_id)).first()
    if row is not None:
        for host in hosts.values():
            host.group = Group(row.policy, row.rules or {}, members.get(host.name, 0), frozenset(members))
