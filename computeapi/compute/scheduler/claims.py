"""Claiming what a server needs of a host, so that no two servers ever get the same."""

from __future__ import annotations

import sqlalchemy as sa

from computeapi.compute.scheduler.hosts import HostState, Ratios
from computeapi.compute.scheduler.spec import Spec
from computeapi.compute.server_groups import AFFINITY, ANTI_AFFINITY
from computeapi.db import allocations, hypervisors, server_groups
from computeapi.db.allocations import Amounts


def claim(connection: sa.Connection, spec: Spec, host: HostState, ratios: Ratios) -> bool:
    """Claim what *spec* needs on *host*, in the caller's transaction; whether there was room.

    The rows of the group and of the host are locked first, so that claims of one group and on one host queue;
    the group's policy is looked at again under the lock. A forced server fits always.
    What the server holds there already it keeps: one that is resized in place may have to go back.
    """
    if spec.group_id is not None:
        server_groups.lock(connection, spec.group_id)
    hypervisors.lock(connection, host.name)
    held = allocations.held(connection, spec.server_id, host.name)
    needs = Amounts(*map(max, held, (spec.vcpus, spec.memory_mb, spec.disk_gb)))
    if not spec.forced:
        others = allocations.held_by_others(connection, spec.server_id, host.name)
        if not (_fits(needs, others, host, ratios) and _group_allows(connection, spec, host)):
            return False
    allocations.replace(connection, spec.server_id, host.name, needs)
    return True


def _fits(needs: Amounts, others: Amounts, host: HostState, ratios: Ratios) -> bool:
    """Whether there is room for *needs* beside what others hold."""
    room = (host.vcpus * ratios.cpu, host.memory_mb * ratios.ram, host.local_gb * ratios.disk)
    return all(taken + need <= most for taken, need, most in zip(others, needs, room, strict=True))


def _group_allows(connection: sa.Connection, spec: Spec, host: HostState) -> bool:
    """Whether the group's policy still allows the host: members count from their claim on, though they may not run."""
    if spec.group_id is None or host.group is None or host.group.policy not in (AFFINITY, ANTI_AFFINITY):
        return True
    members = allocations.members(connection, spec.group_id, besides=spec.server_id)
    if host.group.policy == AFFINITY:
        return not members or host.name in members
    return members.get(host.name, 0) < host.group.most
