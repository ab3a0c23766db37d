"""The hosts as the scheduler sees them, loaded in a constant number of queries, and claims of their resources.

Two servers never get the same resources of a host.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import sqlalchemy as sa
from oslo_config import cfg

from computeapi.compute.scheduler.spec import Spec
from computeapi.compute.server_groups import AFFINITY, ANTI_AFFINITY
from computeapi.db import aggregates, allocations, candidates, host_providers, hypervisors, server_groups, servers
from computeapi.db.allocations import Amounts
from computeapi.db.hypervisors import ComputeNode
from computeapi.db.services import ComputeService


class Ratios(NamedTuple):
    """The allocation ratios: how many times a host's resources may be allocated."""

    cpu: float
    ram: float
    disk: float

    @classmethod
    def of(cls, conf: cfg.ConfigOpts) -> 'Ratios':
        options = conf.filter_scheduler
        return cls(options.cpu_allocation_ratio, options.ram_allocation_ratio, options.disk_allocation_ratio)


class GroupState(NamedTuple):
    """The group of the server being scheduled, as seen from one host.

    members: how many other members of the group are on that host.  hosts: every host with any members.
    """

    policy: str
    rules: Mapping[str, Any]
    members: int
    hosts: frozenset[str]

    @property
    def most(self) -> int:
        """The maximum number of members of an anti-affinity group on one host."""
        return int(self.rules.get('max_server_per_host', 1))


@dataclass
class HostState:
    """A host; memory in MiB, disk in GiB; `free_*` is what can still be allocated.

    aggregates: the metadata of each of its aggregates.  servers: the servers on it that the hints name.
    group: the group of the server being scheduled, if it has one.  near: whether it is not in another cell.
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
    servers: Set[str] = frozenset()
    group: GroupState | None = None
    near: bool = True

    def has_room(self, spec: Spec) -> bool:
        """Whether there is room for the server in addition to all claims."""
        free = (self.free_vcpus, self.free_memory_mb, self.free_disk_gb)
        return all(need <= left for need, left in zip(spec.needs, free, strict=True))

    def is_asked_for(self, spec: Spec) -> bool:
        """Whether the server can move to this host, and *spec* names this host or none."""
        return self.near and spec.host in (None, self.name) and spec.node in (None, self.node)


def is_up(service: ComputeService, now: datetime, down_after: float) -> bool:
    """Whether the service has sent a heartbeat lately and was not forced down."""
    return (
        not service.forced_down
        and service.seen_at is not None
        and now - service.seen_at <= timedelta(seconds=down_after)
    )


def load(connection: sa.Connection, conf: cfg.ConfigOpts, ratios: Ratios, now: datetime, spec: Spec) -> list[HostState]:
    """Every compute host, whatever its state."""
    return states(connection, conf, ratios, now, spec, hypervisors.select(connection))


def load_named(
    connection: sa.Connection, conf: cfg.ConfigOpts, ratios: Ratios, now: datetime, spec: Spec
) -> list[HostState]:
    """The host that *spec* names, once for each of its hypervisors."""
    return states(connection, conf, ratios, now, spec, hypervisors.of_host(connection, spec.host or ''))


def states(
    connection: sa.Connection,
    conf: cfg.ConfigOpts,
    ratios: Ratios,
    now: datetime,
    spec: Spec,
    nodes: Sequence[ComputeNode],
) -> list[HostState]:
    """The state of these hypervisors for the scheduler."""
    metadata = aggregates.metadata_by_host(connection, [node.host for node in nodes]) if nodes else {}
    home = candidates.cell_of(connection, spec.current_host) if spec.current_host else None
    hosts = []
    for node in nodes:
        groups = metadata.get(node.host, [])
        hosts.append(
            HostState(
                name=node.host,
                node=node.hypervisor_hostname,
                enabled=not node.service.disabled,
                up=is_up(node.service, now, conf.service_down_time),
                zone=aggregates.zone_of(groups) or conf.default_availability_zone,
                host_ip=node.host_ip,
                hypervisor_type=node.hypervisor_type,
                cpu_info=node.cpu_info,
                vcpus=node.vcpus,
                memory_mb=node.memory_mb,
                local_gb=node.local_gb,
                free_vcpus=node.vcpus * ratios.cpu - node.used_vcpus,
                free_memory_mb=node.memory_mb * ratios.ram - node.used_memory_mb,
                free_disk_gb=node.local_gb * ratios.disk - node.used_disk_gb,
                aggregates=groups,
                near=home in (None, node.cell),
            )
        )
    _add_servers(connection, hosts, spec)
    return hosts


def _add_servers(connection: sa.Connection, hosts: Sequence[HostState], spec: Spec) -> None:
    """Add the servers on the hosts; queried only if the server's hints or its group need them."""
    named = {server_id for hint in ('same_host', 'different_host') for server_id in listed(spec.hints.get(hint))}
    if named:
        there = servers.hosts_of(connection, named - {spec.server_id})
        for host in hosts:
            host.servers = frozenset(server_id for server_id, its_host in there.items() if its_host == host.name)
    group = None if spec.group_id is None else server_groups.get(connection, spec.group_id, members=False)
    if group is not None:
        members = servers.members_on(connection, group.uuid, spec.server_id)
        for host in hosts:
            host.group = GroupState(group.policy, group.rules or {}, members.get(host.name, 0), frozenset(members))


def listed(hint: Any) -> list[str]:
    """The IDs of servers that a hint names."""
    return [hint] if isinstance(hint, str) else list(hint or ())


# ------------------------------------------------------------------ claims


def claim(connection: sa.Connection, spec: Spec, host: HostState, ratios: Ratios) -> bool:
    """Claim what *spec* needs on *host*, in the caller's transaction; returns whether there was room.

    The rows of the group and of the host are locked first, so that claims of one group and on one host are serialized;
    the group's policy is checked again under the lock, unless the host is forced.
    The server keeps what it already holds there: a resize on the same host may have to be reverted.
    """
    if spec.group_id is not None:
        server_groups.lock(connection, spec.group_id)
    locked = allocations.lock(connection, host.name, spec.server_id)
    if locked is None:
        return False
    used, held = locked
    needs = Amounts(*map(max, held, spec.needs))
    if not _fits(needs, used - held, host, ratios) or not (spec.forced or _group_allows(connection, spec, host)):
        return False
    special = (spec.among or {}).get(host.name)
    if special and not host_providers.has_room(connection, host.name, special, spec.server_id, spec.flavor_id):
        return False
    allocations.replace(connection, spec.server_id, host.name, held, needs)
    if special:
        allocations.hold_for_flavor(connection, spec.server_id, host.name, spec.flavor_id, special)
    return True


def _fits(needs: Amounts, others: Amounts, host: HostState, ratios: Ratios) -> bool:
    """Whether there is room for *needs* in addition to what others hold."""
    room = (host.vcpus * ratios.cpu, host.memory_mb * ratios.ram, host.local_gb * ratios.disk)
    return all(taken + need <= most for taken, need, most in zip(others, needs, room, strict=True))


def _group_allows(connection: sa.Connection, spec: Spec, host: HostState) -> bool:
    """Whether the group's policy still allows the host. Members count from their claim on, even if they do not run."""
    if spec.group_id is None or host.group is None or host.group.policy not in (AFFINITY, ANTI_AFFINITY):
        return True
    members = allocations.members(connection, spec.group_id, exclude=spec.server_id)
    if host.group.policy == AFFINITY:
        return not members or host.name in members
    return members.get(host.name, 0) < host.group.most
