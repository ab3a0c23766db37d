"""What servers hold of the hosts, as rows: where they run, and where they are on their way to."""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa

from computeapi.db.placement_changes import SERVER, note
from computeapi.db.records import upsert
from computeapi.db.tables.compute import allocations
from computeapi.db.tables.servers import servers


class Amounts(NamedTuple):
    """An amount of a host's resources; memory in MiB, disk in GiB."""

    vcpus: int = 0
    memory_mb: int = 0
    disk_gb: int = 0


HELD = [allocations.c[name] for name in Amounts._fields]
SUMS = [sa.func.coalesce(sa.func.sum(column), 0) for column in HELD]


def held(connection: sa.Connection, server_id: str, host: str) -> Amounts:
    """What the server holds of the host."""
    row = connection.execute(sa.select(*HELD).where(_mine(server_id, host))).first()
    return Amounts(*row) if row else Amounts()


def held_by_others(connection: sa.Connection, server_id: str, host: str) -> Amounts:
    """What is taken of the host besides what the server holds."""
    others = (allocations.c.host == host) & (allocations.c.server_id != server_id)
    return _amounts(connection.execute(sa.select(*SUMS).where(others)).one())


def taken(connection: sa.Connection, hosts: Collection[str] | None = None) -> dict[str, Amounts]:
    """What is taken of each host (of these, or of all); hosts of which nothing is taken are left out."""
    statement = sa.select(allocations.c.host, *SUMS).group_by(allocations.c.host)
    if hosts is not None:
        statement = statement.where(allocations.c.host.in_(hosts))
    return {host: _amounts(sums) for host, *sums in connection.execute(statement)}


def hosts_of(connection: sa.Connection, server_id: str) -> set[str]:
    """The hosts of which the server holds something."""
    return set(connection.scalars(sa.select(allocations.c.host).where(allocations.c.server_id == server_id)))


def members(connection: sa.Connection, group_id: str, besides: str) -> dict[str, int]:
    """By host, how many servers of the group, but for one, hold something of it."""
    statement = (
        sa.select(allocations.c.host, sa.func.count())
        .join(servers, servers.c.uuid == allocations.c.server_id)
        .where(servers.c.server_group_id == group_id, allocations.c.server_id != besides)
        .group_by(allocations.c.host)
    )
    return {host: int(count) for host, count in connection.execute(statement)}


def replace(connection: sa.Connection, server_id: str, host: str, amounts: Amounts) -> None:
    """Let the server hold just this of the host."""
    row = {'server_id': server_id, 'host': host, **amounts._asdict()}
    upsert(connection, allocations, [row], Amounts._fields)
    note(connection, SERVER, [server_id])


def hold_for_ports(connection: sa.Connection, server_id: str, host: str, ports: Mapping[str, Any]) -> None:
    """Let the ports of the server hold just this of what belongs to the host."""
    connection.execute(sa.update(allocations).where(_mine(server_id, host)).values(ports=dict(ports) or None))
    note(connection, SERVER, [server_id])


def held_for_ports(connection: sa.Connection, server_id: str, host: str | None) -> dict[str, Any]:
    """What the ports of the server hold of what belongs to the host, by port."""
    held = sa.select(allocations.c.ports).where(allocations.c.server_id == server_id, allocations.c.host == host)
    return connection.scalar(held) or {}


def leave_ports(connection: sa.Connection, server_id: str, port_ids: Collection[str]) -> None:
    """Give back what these ports of the server hold, on whatever host."""
    holding = sa.select(allocations.c.host, allocations.c.ports).where(
        allocations.c.server_id == server_id, allocations.c.ports.is_not(None)
    )
    # Few have any, and nobody else's rows are to be locked.
    if connection.execute(holding).first() is None:
        return
    for host, ports in connection.execute(holding.with_for_update()).all():
        kept = {port_id: each for port_id, each in ports.items() if port_id not in port_ids}
        if kept != ports:
            hold_for_ports(connection, server_id, host, kept)


def resize(connection: sa.Connection, server_id: str, host: str, needs: Mapping[str, int]) -> None:
    """Hold *needs* of a host from now on; for less than was held before."""
    connection.execute(sa.update(allocations).where(_mine(server_id, host)).values(**needs))
    note(connection, SERVER, [server_id])


def release(connection: sa.Connection, server_id: str, *, keep: str | None = None) -> None:
    """Give back what the server holds of every host but *keep*."""
    statement = sa.delete(allocations).where(allocations.c.server_id == server_id)
    given = connection.execute(statement if keep is None else statement.where(allocations.c.host != keep))
    if given.rowcount:
        note(connection, SERVER, [server_id])


def leave(connection: sa.Connection, server_id: str, hosts: Collection[str]) -> None:
    """Give back what the server holds of these hosts."""
    there = (allocations.c.server_id == server_id) & allocations.c.host.in_(hosts)
    if connection.execute(sa.delete(allocations).where(there)).rowcount:
        note(connection, SERVER, [server_id])


def _mine(server_id: str, host: str) -> sa.ColumnElement[bool]:
    return (allocations.c.server_id == server_id) & (allocations.c.host == host)


def _amounts(sums: Any) -> Amounts:
    """Sums of whole numbers, which some databases give as decimals."""
    return Amounts(*map(int, sums))
