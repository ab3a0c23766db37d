"""The hypervisors and their usage, as rows; memory in MiB, disk in GiB."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from computeapi import randomness
from computeapi.db import listing
from computeapi.db.allocations import Amounts, count
from computeapi.db.constant_queries import Row, fetch
from computeapi.db.index_scans import hinted
from computeapi.db.listing import Clause, Page, identified, identity
from computeapi.db.placement_changes import note_host
from computeapi.db.records import required
from computeapi.db.server_scans import BY
from computeapi.db.services import SERVICES, ComputeService, runs
from computeapi.db.tables.compute import ComputeNode, HostedServer, Usage, cells, hypervisors, services
from computeapi.db.tables.servers import servers

__all__ = ['ComputeNode']

# Loaded in addition to the row if a view or a service names them.
USAGE, SERVERS = 'usage', 'servers'


# Hypervisors without a service row are ignored, and so are those in cells that are down.
OF_CELL_DOWN = (cells.c.name == hypervisors.c.cell) & cells.c.down.is_(True)
SERVED = hypervisors.join(services, runs(hypervisors.c.host)).outerjoin(cells, OF_CELL_DOWN)
COLUMNS = [name for name in required(ComputeNode) if name != 'service']
SELECT = (
    sa.select(*(hypervisors.c[name] for name in COLUMNS), *SERVICES.columns)
    .select_from(SERVED)
    .where(cells.c.id.is_(None))
)
BY_IDENTITY = {name: SELECT.where(hypervisors.c[name] == sa.bindparam(name)) for name in ('id', 'uuid')}


def page(connection: sa.Connection, page: Page, needs: Collection[str] = ()) -> list[ComputeNode]:
    """One page of the hypervisors; the marker is an ID or UUID; Invalid if it is unknown."""
    marked = [identified(hypervisors, page.marker)] if page.marker is not None else []
    order = listing.ordered(hypervisors, page, 'id')
    return _load(connection, listing.paged(connection, SELECT, order, page, marked=marked), needs)


def all_enabled(connection: sa.Connection, needs: Collection[str] = ()) -> list[ComputeNode]:
    """The hypervisors whose hosts accept new servers."""
    return select(connection, services.c.disabled.is_(False), needs=needs)


def matching(connection: sa.Connection, text: str, needs: Collection[str] = ()) -> list[ComputeNode]:
    """The hypervisors that have the text in their hostname."""
    return select(connection, hypervisors.c.hypervisor_hostname.icontains(text, autoescape=True), needs=needs)


def of_host(connection: sa.Connection, host: str, needs: Collection[str] = ()) -> list[ComputeNode]:
    return select(connection, hypervisors.c.host == host, needs=needs)


def get(connection: sa.Connection, identifier: str, needs: Collection[str] = ()) -> ComputeNode | None:
    """The hypervisor with that ID or UUID."""
    name, value = identity(identifier)
    return next(iter(_load(connection, BY_IDENTITY[name], needs, {name: value})), None)


def select(connection: sa.Connection, *where: Clause, needs: Collection[str] = ()) -> list[ComputeNode]:
    """ComputeNodes with their services, in one query, and a constant number more for *needs*."""
    return _load(connection, SELECT.where(*where).order_by(hypervisors.c.id), needs)


def exists(connection: sa.Connection, host: str | None, node: str | None) -> bool:
    """Whether there is a compute host of that name, or a hypervisor, or the combination of the two."""
    named = [(hypervisors.c.host, host), (hypervisors.c.hypervisor_hostname, node)]
    conditions = [column == name for column, name in named if name is not None]
    return connection.execute(sa.select(hypervisors.c.id).where(*conditions).limit(1)).first() is not None


def register(connection: sa.Connection, hostname: str, values: Mapping[str, Any], now: datetime) -> None:
    """Create or update the hypervisor with that hostname."""
    known = hypervisors.c.hypervisor_hostname == hostname
    if connection.execute(sa.update(hypervisors).where(known).values(**values, updated_at=now)).rowcount == 0:
        row = {'uuid': randomness.new_id(), 'hypervisor_hostname': hostname, 'created_at': now}
        connection.execute(sa.insert(hypervisors).values(**row, **values))
        # Claims on a host outlive its service, so its totals are recounted.
        count(connection, [values['host']])
    note_host(connection, values['host'])


def _load(
    connection: sa.Connection,
    statement: sa.Select[Any],
    needs: Collection[str],
    parameters: Mapping[str, Any] | None = None,
) -> list[ComputeNode]:
    found = [record(row) for row in fetch(connection, statement, parameters)]
    hosts = [each.host for each in found]
    if USAGE in needs:
        _add_usage(connection, found, hosts)
    if SERVERS in needs:
        _add_servers(connection, found, hosts)
    return found


def record(row: Row) -> ComputeNode:
    """Decodes a row of SELECT."""
    facts = dict(zip(COLUMNS, row, strict=False))
    return ComputeNode(**facts, service=ComputeService(*row[len(COLUMNS) :]))


def _add_usage(connection: sa.Connection, found: Sequence[ComputeNode], hosts: Sequence[str]) -> None:
    # Each count uses only an index; reading the rows of all servers would take twenty times as long.
    counts = sa.select(servers.c.host, sa.func.count()).where(_living(hosts)).group_by(servers.c.host)
    busy = counts.where(servers.c.task_state.is_not(None))
    members = _numbers(connection, hinted(counts, BY['host']))
    at_work = _numbers(connection, hinted(busy, BY['task_state']))
    for each in found:
        used = (each.used_vcpus, each.used_memory_mb, each.used_disk_gb)
        each.usage = Usage(*used, members.get(each.host, 0), at_work.get(each.host, 0))


def _numbers(connection: sa.Connection, statement: sa.Select[Any]) -> dict[str, int]:
    return {host: int(number) for host, number in connection.execute(statement)}


def _add_servers(connection: sa.Connection, found: Sequence[ComputeNode], hosts: Sequence[str]) -> None:
    members: dict[str, list[HostedServer]] = {host: [] for host in hosts}
    statement = sa.select(servers.c.host, servers.c.id, servers.c.uuid).where(_living(hosts)).order_by(servers.c.id)
    for host, *member in connection.execute(statement):
        members[host].append(HostedServer(*member))
    for each in found:
        each.servers = members[each.host]


def shares(connection: sa.Connection, host: str) -> dict[str, Amounts]:
    """The sums of the sizes of the servers on a host, by project."""
    disk = servers.c.root_gb + servers.c.ephemeral_gb
    sums = [sa.func.sum(each) for each in (servers.c.vcpus, servers.c.memory_mb, disk)]
    statement = sa.select(servers.c.project_id, *sums).where(_living([host])).group_by(servers.c.project_id)
    rows = connection.execute(statement.order_by(servers.c.project_id))
    return {project: Amounts(*map(int, sizes)) for project, *sizes in rows}


def _living(hosts: Sequence[str]) -> sa.ColumnElement[bool]:
    return servers.c.host.in_(hosts) & servers.c.deleted_at.is_(None)
