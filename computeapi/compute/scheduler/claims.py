"""Taking a place on a host, so that two servers never take the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from computeapi.compute.scheduler.hosts import HostState, Ratios
from computeapi.compute.scheduler.spec import Spec
from computeapi.db.tables.compute import allocations, hypervisors, server_groups, servers

# What is claimed, in the order of a Spec.
AMOUNTS = (allocations.c.vcpus, allocations.c.memory_mb, allocations.c.disk_gb)


def claim(connection: sa.Connection, spec: Spec, host: HostState, ratios: Ratios) -> bool:
    """Claim what *spec* needs on *host*, in the caller's transaction; whether there was room.

    The rows of the group and of the host are locked first, so that claims of one group and on one host queue;
    the group's policy is looked at again under the lock. A forced server fits always.
    What the server holds there already it keeps: one that is resized in place may have to go back.
    """
    if spec.group_id is not None:
        _lock(connection, server_groups.c.uuid, spec.group_id)
    _lock(connection, hypervisors.c.host, host.name)
    mine = (allocations.c.server_id == spec.server_id) & (allocations.c.host == host.name)
    held = connection.execute(sa.select(*AMOUNTS).where(mine)).first() or (0, 0, 0)
    needs = [max(pair) for pair in zip(held, (spec.vcpus, spec.memory_mb, spec.disk_gb), strict=True)]
    if not spec.forced and not (_fits(connection, needs, host, ratios, mine) and _group_allows(connection, spec, host)):
        return False
    connection.execute(sa.delete(allocations).where(mine))
    amounts = dict(zip(('vcpus', 'memory_mb', 'disk_gb'), needs, strict=True))
    connection.execute(sa.insert(allocations).values(server_id=spec.server_id, host=host.name, **amounts))
    return True


def hosts(connection: sa.Connection, server_id: str) -> set[str]:
    """The hosts of which the server holds something."""
    return set(connection.scalars(sa.select(allocations.c.host).where(allocations.c.server_id == server_id)))


def release(connection: sa.Connection, server_id: str, *, keep: str | None = None) -> None:
    """Give back what the server holds of every host but *keep*."""
    statement = sa.delete(allocations).where(allocations.c.server_id == server_id)
    connection.execute(statement if keep is None else statement.where(allocations.c.host != keep))


def resize(connection: sa.Connection, server_id: str, host: str, needs: Mapping[str, int]) -> None:
    """Hold *needs* of a host from now on; for less than was held before."""
    mine = (allocations.c.server_id == server_id) & (allocations.c.host == host)
    connection.execute(sa.update(allocations).where(mine).values(**needs))


def _lock(connection: sa.Connection, column: sa.Column, value: str) -> None:
    connection.execute(sa.select(column).where(column == value).with_for_update()).all()


def _fits(
    connection: sa.Connection,
    needs: Sequence[int],
    host: HostState,
    ratios: Ratios,
    mine: sa.ColumnElement[bool],
) -> bool:
    """Whether there is room for *needs* beside what others hold."""
    sums = [sa.func.coalesce(sa.func.sum(amount), 0) for amount in AMOUNTS]
    others = connection.execute(sa.select(*sums).where(allocations.c.host == host.name, ~mine)).one()
    room = (host.vcpus * ratios.cpu, host.memory_mb * ratios.ram, host.local_gb * ratios.disk)
    return all(taken + need <= most for taken, need, most in zip(others, needs, room, strict=True))


def _group_allows(connection: sa.Connection, spec: Spec, host: HostState) -> bool:
    """Whether the group's policy still allows the host: members count from their claim on, though they may not run."""
    if host.group is None or host.group.policy not in ('affinity', 'anti-affinity'):
        return True
    statement = (
        sa.select(allocations.c.host, sa.func.count().label('members'))
        .join(servers, servers.c.uuid == allocations.c.server_id)
        .where(servers.c.server_group_id == spec.group_id, allocations.c.server_id != spec.server_id)
        .group_by(allocations.c.host)
    )
    members = {row.host: row.members for row in connection.execute(statement)}
    if host.group.policy == 'affinity':
        return not members or host.name in members
    return members.get(host.name, 0) < host.group.most
