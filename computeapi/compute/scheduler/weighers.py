"""The weighers of the scheduler, by the names operators configure: (host, spec) -> a number, more is better."""

from __future__ import annotations

from collections.abc import Callable

from computeapi.compute.scheduler.hosts import HostState
from computeapi.compute.scheduler.spec import Spec

Weigher = Callable[[HostState, Spec], float]


def ram(host: HostState, spec: Spec) -> float:
    return host.free_memory_mb


def cpu(host: HostState, spec: Spec) -> float:
    return host.free_vcpus


def disk(host: HostState, spec: Spec) -> float:
    return host.free_disk_gb


def soft_affinity(host: HostState, spec: Spec) -> float:
    return float(host.group.members) if host.group is not None and host.group.policy == 'soft-affinity' else 0.0


def soft_anti_affinity(host: HostState, spec: Spec) -> float:
    return -float(host.group.members) if host.group is not None and host.group.policy == 'soft-anti-affinity' else 0.0


WEIGHERS: dict[str, Weigher] = {
    'ServerGroupSoftAffinityWeigher': soft_affinity,
    'ServerGroupSoftAntiAffinityWeigher': soft_anti_affinity,
    'RAMWeigher': ram,
    'CPUWeigher': cpu,
    'DiskWeigher': disk,
}
