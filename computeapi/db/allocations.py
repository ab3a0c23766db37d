"""The resources that servers hold of hosts, as rows: of the host that each runs on, and of those that it is moving to.

The totals of a host are kept on its hypervisor. To change what is held of a host, lock the hypervisor's row first, then
those of the server and the task.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa

from computeapi.db.placement_changes import SERVER, note
from computeapi.db.records import upsert
from computeapi.db.tables.compute import allocations, hypervisors
from computeapi.db.tables.servers import servers

Held = Mapping[str, Mapping[str, int]]
"""Amounts by provider and resource class."""


class Amounts(NamedTuple):
    """Amounts of a host's resources; memory in MiB, disk in GiB."""

    vcpus: int = 0
    memory_mb: int = 0
    disk_gb: int = 0

    def __sub__(self, other: 'Amounts') -> 'Amounts':
        return Amounts(*(mine - its for mine, its in zip(self, other, strict=True)))


HELD = [allocations.c[name] for name in Amounts._fields]
USED = [hypervisors.c[f'used_{name}'] for name in Amounts._fields]


def _sums(of: sa.ColumnElement[bool]) -> list[sa.ScalarSelect[int]]:
    """The sums of these allocations."""
    return [sa.select(sa.func.coalesce(sa.func.sum(column), 0)).where(of).scalar_subquery() for column in HELD]


MINE = (allocations.c.server_id == sa.bindparam('its_server')) & (allocations.c.host == sa.bindparam('its_host'))
NAMED = hypervisors.alias()
ITS_ID = sa.select(sa.func.min(NAMED.c.id)).where(NAMED.c.host == sa.bindparam('its_host')).scalar_subquery()
# The ID is looked up first and the row is locked by it: otherwise InnoDB would or would not lock the entry of another
# index first, depending on the index that it chooses, and transactions of both kinds could deadlock.
LOCKED = sa.select(*USED, *_sums(MINE)).where(hypervisors.c.id == ITS_ID).with_for_update()
COUNTED = (
    sa.update(hypervisors)
    .where(hypervisors.c.host == sa.bindparam('its_host'))
    .values({used: used + sa.bindparam(f'more_{name}') for name, used in zip(Amounts._fields, USED, strict=True)})
)
SUMS = _sums(allocations.c.host == hypervisors.c.host)
"""What is held of a hypervisor's host."""


def lock(connection: sa.Connection, host: str, server_id: str) -> tuple[Amounts, Amounts] | None:
    """The used amounts of the host, locked until the transaction ends, and what the server holds of it, which only the
    worker with the server's task changes; None: there is no such host."""
    row = connection.execute(LOCKED, {'its_host': host, 'its_server': server_id}).first()
    if row is None:
        return None
    size = len(Amounts._fields)
    return Amounts(*row[:size]), Amounts(*map(int, row[size:]))


def lock_hosts(connection: sa.Connection, server_id: str, *which: sa.ColumnElement[bool]) -> None:
    """Lock all hosts of which the server holds something and to which *which* applies."""
    _lock(connection, hypervisors.c.host.in_(_hosts_of(server_id, *which)))


def lock_host(connection: sa.Connection, host: str) -> None:
    """Lock one host, whoever holds something of it: nobody can claim anything there meanwhile."""
    _lock(connection, hypervisors.c.host == host)


def _hosts_of(server_id: str, *which: sa.ColumnElement[bool]) -> sa.Select[str]:
    return sa.select(allocations.c.host).where(allocations.c.server_id == server_id, *which)


def _lock(connection: sa.Connection, which: sa.ColumnElement[bool]) -> None:
    """Like `lock`, for those hypervisors, in the order of their IDs."""
    found = connection.scalars(sa.select(hypervisors.c.id).where(which)).all()
    if found:
        wanted = sa.select(hypervisors.c.id).where(hypervisors.c.id.in_(found)).order_by(hypervisors.c.id)
        connection.execute(wanted.with_for_update()).all()


def hosts_of(connection: sa.Connection, server_id: str) -> set[str]:
    """The hosts of which the server holds something."""
    return set(connection.scalars(_hosts_of(server_id)))


def members(connection: sa.Connection, group_id: str, exclude: str) -> dict[str, int]:
    """By host, how many servers of the group other than *exclude* hold something of it."""
    statement = (
        sa.select(allocations.c.host, sa.func.count())
        .join(servers, servers.c.uuid == allocations.c.server_id)
        .where(servers.c.server_group_id == group_id, allocations.c.server_id != exclude)
        .group_by(allocations.c.host)
    )
    return {host: int(count) for host, count in connection.execute(statement)}


def replace(connection: sa.Connection, server_id: str, host: str, before: Amounts, after: Amounts) -> None:
    """Set what the server holds of the host, which must be locked, to *after*; *before* is what it held until now."""
    row = {'server_id': server_id, 'host': host, **after._asdict()}
    upsert(connection, allocations, [row], Amounts._fields)
    _count(connection, host, after - before)
    note(connection, SERVER, [server_id])


def hold_for_flavor(connection: sa.Connection, server_id: str, host: str, flavor_id: str, held: Held) -> None:
    """Add what the server's flavor holds of the host's providers besides its sizes. During a resize on the same host,
    both flavors hold something."""
    mine = _mine(server_id, host)
    others = connection.scalar(sa.select(allocations.c.flavors).where(mine)) or {}
    connection.execute(sa.update(allocations).where(mine).values(flavors={**others, flavor_id: held}))
    note(connection, SERVER, [server_id])


def held_for_flavors(connection: sa.Connection, server_id: str, host: str | None) -> dict[str, Held]:
    """What the server's flavors hold of the host's providers besides sizes, by the IDs of the flavors."""
    held = sa.select(allocations.c.flavors).where(allocations.c.server_id == server_id, allocations.c.host == host)
    return connection.scalar(held) or {}


def hold_for_ports(connection: sa.Connection, server_id: str, host: str, ports: Mapping[str, Any]) -> None:
    """Set what the server's ports hold of the host's child providers."""
    connection.execute(sa.update(allocations).where(_mine(server_id, host)).values(ports=dict(ports) or None))
    note(connection, SERVER, [server_id])


def held_for_ports(connection: sa.Connection, server_id: str, host: str | None) -> dict[str, Any]:
    """What the server's ports hold of the host's child providers, by port."""
    held = sa.select(allocations.c.ports).where(allocations.c.server_id == server_id, allocations.c.host == host)
    return connection.scalar(held) or {}


def holds_more(connection: sa.Connection, server_id: str, host: str) -> bool:
    """Whether the server's flavor or ports hold something of the host besides its sizes."""
    more = allocations.c.ports.is_not(None) | allocations.c.flavors.is_not(None)
    return connection.execute(sa.select(allocations.c.host).where(_mine(server_id, host), more)).first() is not None


def leave_ports(connection: sa.Connection, server_id: str, port_ids: Collection[str]) -> None:
    """Release what these ports of the server hold, on any host."""
    holding = sa.select(allocations.c.host, allocations.c.ports).where(
        allocations.c.server_id == server_id, allocations.c.ports.is_not(None)
    )
    # Few servers have any, and other rows must not be locked.
    if connection.execute(holding).first() is None:
        return
    for host, ports in connection.execute(holding.with_for_update()).all():
        kept = {port_id: each for port_id, each in ports.items() if port_id not in port_ids}
        if kept != ports:
            hold_for_ports(connection, server_id, host, kept)


def resize(connection: sa.Connection, server_id: str, host: str, needs: Mapping[str, int], flavor_id: str = '') -> None:
    """Hold *needs*, and what this flavor holds of the host, from now on; only to reduce what is held."""
    locked = lock(connection, host, server_id)
    flavors = held_for_flavors(connection, server_id, host)
    kept = {flavor_id: flavors[flavor_id]} if flavor_id in flavors else None
    changed = connection.execute(sa.update(allocations).where(_mine(server_id, host)).values(**needs, flavors=kept))
    if locked and changed.rowcount:
        _, before = locked
        _count(connection, host, before._replace(**needs) - before)
    note(connection, SERVER, [server_id])


def release(connection: sa.Connection, server_id: str, *, keep: str | None = None) -> None:
    """Release what the server holds of all hosts except *keep*."""
    _give_back(connection, server_id, *([] if keep is None else [allocations.c.host != keep]))


def leave(connection: sa.Connection, server_id: str, hosts: Collection[str]) -> None:
    """Release what the server holds of these hosts."""
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


# ------------------------------------------------------------------ totals


def _count(connection: sa.Connection, host: str, more: Amounts) -> None:
    facts = {f'more_{name}': amount for name, amount in more._asdict().items()}
    connection.execute(COUNTED, {'its_host': host, **facts})


def count(connection: sa.Connection, hosts: Iterable[str] | None = None) -> None:
    """Recount the used amounts of these hosts, or of all."""
    statement = sa.update(hypervisors).values(dict(zip(USED, SUMS, strict=True)))
    if hosts is None:
        connection.execute(statement)
        return
    its = hypervisors.c.host.in_(list(hosts))
    _lock(connection, its)
    connection.execute(statement.where(its))


def miscounted(connection: sa.Connection, most: int) -> list[str]:
    """The hosts whose totals differ from the sums of their allocations."""
    wrong = sa.or_(*(used != held for used, held in zip(USED, SUMS, strict=True)))
    return list(connection.scalars(sa.select(hypervisors.c.host).where(wrong).order_by(hypervisors.c.id).limit(most)))


def _mine(server_id: str, host: str) -> sa.ColumnElement[bool]:
    return (allocations.c.server_id == server_id) & (allocations.c.host == host)
