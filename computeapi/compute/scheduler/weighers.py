"""The weighers of the scheduler, by the names in the configuration: (host, spec) -> a number, higher is better."""

from collections.abc import Callable

from computeapi.compute.scheduler.hosts import HostState
from computeapi.compute.scheduler.spec import Spec
from computeapi.compute.server_groups import SOFT_AFFINITY, SOFT_ANTI_AFFINITY

Weigher = Callable[[HostState, Spec], float]


def ram(host: HostState, spec: Spec) -> float:
    return host.free_memory_mb


def cpu(host: HostState, spec: Spec) -> float:
    return host.free_vcpus


def disk(host: HostState, spec: Spec) -> float:
    return host.free_disk_gb


def soft_affinity(host: HostState, spec: Spec) -> float:
    return _members(host, SOFT_AFFINITY)


def soft_anti_affinity(host: HostState, spec: Spec) -> float:
    return -_members(host, SOFT_ANTI_AFFINITY)


def _members(host: HostState, policy: str) -> float:
    """How many members of the server's group are already there, if the group has that policy."""
    return float(host.group.members) if host.group is not None and host.group.policy == policy else 0.0


WEIGHERS: dict[str, Weigher] = {
    'ServerGroupSoftAffinityWeigher': soft_affinity,
    'ServerGroupSoftAntiAffinityWeigher': soft_anti_affinity,
    'RAMWeigher': ram,
    'CPUWeigher': cpu,
    'DiskWeigher': disk,
}
