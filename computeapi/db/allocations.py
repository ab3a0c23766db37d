"""What servers hold of the hosts, as rows: where they run, and where they are on their way to.

What is held of a host in all is counted on its hypervisor. Whoever changes what is held of it locks the hypervisor's
row first, and then those of the server and the task.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa

from computeapi.db.placement_changes import SERVER, note
from computeapi.db.records import upsert
from computeapi.db.tables.compute import allocations, hypervisors
from computeapi.db.tables.servers import servers


class Amounts(NamedTuple):
    """An amount of a host's resources; memory in MiB, disk in GiB."""

    vcpus: int = 0
    memory_mb: int = 0
    disk_gb: int = 0

    def __sub__(self, other: 'Amounts') -> 'Amounts':
        return Amounts(*(mine - its for mine, its in zip(self, other, strict=True)))


HELD = [allocations.c[name] for name in Amounts._fields]
USED = [hypervisors.c[f'used_{name}'] for name in Amounts._fields]


def _sums(of: sa.ColumnElement[bool]) -> list[sa.ScalarSelect[int]]:
    """What these allocations hold together."""
    return [sa.select(sa.func.coalesce(sa.func.sum(column), 0)).where(of).scalar_subquery() for column in HELD]


MINE = (allocations.c.server_id == sa.bindparam('its_server')) & (allocations.c.host == sa.bindparam('its_host'))
NAMED = hypervisors.alias()
ITS_ID = sa.select(sa.func.min(NAMED.c.id)).where(NAMED.c.host == sa.bindparam('its_host')).scalar_subquery()
# Found before and locked by its number: InnoDB would lock the entry of another index first, or not, as it chooses the
# one or the other, and let those who did the one and those who did the other wait for each other.
LOCKED = sa.select(*USED, *_sums(MINE)).where(hypervisors.c.id == ITS_ID).with_for_update()
COUNTED = (
    sa.update(hypervisors)
    .where(hypervisors.c.host == sa.bindparam('its_host'))
    .values({used: used + sa.bindparam(f'more_{name}') for name, used in zip(Amounts._fields, USED, strict=True)})
)
SUMS = _sums(allocations.c.host == hypervisors.c.host)
"""What is held of a hypervisor's host."""


def lock(connection: sa.Connection, host: str, server_id: str) -> tuple[Amounts, Amounts] | None:
    """What is used of the host, which others who change that wait for until the transaction ends, and what the server
    holds of it, which nobody changes who does not work on the server; None: there is no such host."""
    row = connection.execute(LOCKED, {'its_host': host, 'its_server': server_id}).first()
    if row is None:
        return None
    size = len(Amounts._fields)
    return Amounts(*row[:size]), Amounts(*map(int, row[size:]))


def lock_hosts(connection: sa.Connection, server_id: str, *which: sa.ColumnElement[bool]) -> None:
    """The same of all hosts of which the server holds something, and of which *which* is so."""
    _lock(connection, hypervisors.c.host.in_(_hosts_of(server_id, *which)))


def lock_host(connection: sa.Connection, host: str) -> None:
    """The same of one host, whoever holds something of it: nobody can claim anything there meanwhile."""
    _lock(connection, hypervisors.c.host == host)


def _hosts_of(server_id: str, *which: sa.ColumnElement[bool]) -> sa.Select[str]:
    return sa.select(allocations.c.host).where(allocations.c.server_id == server_id, *which)


def _lock(connection: sa.Connection, which: sa.ColumnElement[bool]) -> None:
    """As `lock`, of those hypervisors, in the order of their numbers."""
    found = connection.scalars(sa.select(hypervisors.c.id).where(which)).all()
    if found:
        wanted = sa.select(hypervisors.c.id).where(hypervisors.c.id.in_(found)).order_by(hypervisors.c.id)
        connection.execute(wanted.with_for_update()).all()


def hosts_of(connection: sa.Connection, server_id: str) -> set[str]:
    """The hosts of which the server holds something."""
    return set(connection.scalars(_hosts_of(server_id)))


def members(connection: sa.Connection, group_id: str, besides: str) -> dict[str, int]:
    """By host, how many servers of the group, but for one, hold something of it."""
    statement = (
        sa.select(allocations.c.host, sa.func.count())
        .join(servers, servers.c.uuid == allocations.c.server_id)
        .where(servers.c.server_group_id == group_id, allocations.c.server_id != besides)
        .group_by(allocations.c.host)
    )
    return {host: int(count) for host, count in connection.execute(statement)}


def replace(connection: sa.Connection, server_id: str, host: str, before: Amounts, after: Amounts) -> None:
    """Let the server hold just this of the host, which is locked, where it held something else, or nothing."""
    row = {'server_id': server_id, 'host': host, **after._asdict()}
    upsert(connection, allocations, [row], Amounts._fields)
    _count(connection, host, after - before)
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
    locked = lock(connection, host, server_id)
    changed = connection.execute(sa.update(allocations).where(_mine(server_id, host)).values(**needs))
    if locked and changed.rowcount:
        _, before = locked
        _count(connection, host, before._replace(**needs) - before)
    note(connection, SERVER, [server_id])


def release(connection: sa.Connection, server_id: str, *, keep: str | None = None) -> None:
    """Give back what the server holds of every host but *keep*."""
    _give_back(connection, server_id, *([] if keep is None else [allocations.c.host != keep]))


def leave(connection: sa.Connection, server_id: str, hosts: Collection[str]) -> None:
    """Give back what the server holds of these hosts."""
    _give_back(connection, server_id, allocations.c.host.in_(hosts))


def _give_back(connection: sa.Connection, server_id: str, *which: sa.ColumnElement[bool]) -> None:
    lock_hosts(connection, server_id, *which)
    mine = [allocations.c.server_id == server_id, *which]
    given = connection.execute(sa.select(allocations.c.host, *HELD).where(*mine).order_by(allocations.c.host)).all()
    if not given:
        return
    connection.execute(sa.delete(allocations).where(*mine))
    for host, *amounts in given:
        _count(connection, host, Amounts() - Amounts(*amounts))
    note(connection, SERVER, [server_id])


# ------------------------------------------------------------------ the counts


def _count(connection: sa.Connection, host: str, more: Amounts) -> None:
    facts = {f'more_{name}': amount for name, amount in more._asdict().items()}
    connection.execute(COUNTED, {'its_host': host, **facts})


def count(connection: sa.Connection, hosts: Iterable[str] | None = None) -> None:
    """Count anew what is used of these hosts, or of all."""
    statement = sa.update(hypervisors).values(dict(zip(USED, SUMS, strict=True)))
    if hosts is None:
        connection.execute(statement)
        return
    its = hypervisors.c.host.in_(list(hosts))
    _lock(connection, its)
    connection.execute(statement.where(its))


def miscounted(connection: sa.Connection, most: int) -> list[str]:
    """The hosts of which something else is used than is counted."""
    wrong = sa.or_(*(used != held for used, held in zip(USED, SUMS, strict=True)))
    return list(connection.scalars(sa.select(hypervisors.c.host).where(wrong).order_by(hypervisors.c.id).limit(most)))


def _mine(server_id: str, host: str) -> sa.ColumnElement[bool]:
    return (allocations.c.server_id == server_id) & (allocations.c.host == host)
