"""Statistics of the whole cloud for operators: servers and hosts by state, and the use of quotas.

Counting a million servers scans an index, so one process does it periodically for all, and stores the result.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from computeapi.db.index_scans import hinted
from computeapi.db.quotas import COUNTED, EVERYBODY
from computeapi.db.records import Rows, make_sure
from computeapi.db.server_scans import BY
from computeapi.db.services import RUNS_SERVERS, up
from computeapi.db.tables.compute import CloudCount, counts, processes, quota_usages, quotas, services
from computeapi.db.tables.servers import servers

COUNTS = Rows(CloudCount, counts)
CLOUD = 'cloud'
"""The key of the only row."""
SERVERS_BY_STATE = hinted(
    sa.select(servers.c.vm_state, sa.func.count()).where(servers.c.deleted_at.is_(None)).group_by(servers.c.vm_state),
    BY['vm_state'],
)


def get(connection: sa.Connection) -> CloudCount | None:
    """The latest statistics; None if there are none yet."""
    return COUNTS.find(connection, name=CLOUD)


def begin(connection: sa.Connection, now: datetime) -> None:
    """Create the row, unless it exists. Use a transaction of its own: InnoDB lets transactions that looked for the
    missing row together deadlock when they change it."""
    make_sure(connection, counts, {'name': CLOUD, 'contents': None, 'counted_at': None, 'due_at': now})


def take_turn(connection: sa.Connection, now: datetime, next_turn: datetime) -> bool:
    """Whether it is time to count and nobody else is doing so; nobody else will before the next turn."""
    due = sa.update(counts).where(counts.c.name == CLOUD, counts.c.due_at <= now)
    return connection.execute(due.values(due_at=next_turn)).rowcount == 1


def put(connection: sa.Connection, contents: Mapping[str, Any], now: datetime) -> None:
    COUNTS.update(connection, {'contents': dict(contents), 'counted_at': now}, name=CLOUD)


def servers_by_state(connection: sa.Connection) -> dict[str, int]:
    """The number of servers by vm_state, without deleted ones."""
    return _pairs(connection, SERVERS_BY_STATE)


def hosts_by_state(connection: sa.Connection, since: datetime) -> dict[str, int]:
    """How many compute hosts are disabled, up (seen since that moment) and down."""
    living = up(sa.bindparam('since', since))
    state = sa.case((services.c.disabled, 'disabled'), (living, 'up'), else_='down')
    hosts = sa.select(state.label('state')).where(RUNS_SERVERS).subquery()
    statement = sa.select(hosts.c.state, sa.func.count()).group_by(hosts.c.state)
    return {'up': 0, 'down': 0, 'disabled': 0} | _pairs(connection, statement)


def quotas_by_resource(connection: sa.Connection, limits: Mapping[str, int], full: float) -> dict[str, dict[str, int]]:
    """By statistic, {resource: number}: the total use (`used`), the number of projects with any use (`projects`), and
    of those that use at least this part, from 0 to 1, of their quota (`full`).

    limits: of projects without limits of their own; below 0: unlimited."""
    use = quota_usages.c
    used = sa.select(use.holder_id, use.resource, sa.func.sum(use.amount).label('used')).where(
        use.resource.in_(COUNTED)
    )
    each = used.group_by(use.holder_id, use.resource).having(sa.func.sum(use.amount) > 0).subquery()
    own = (
        (quotas.c.project_id == each.c.holder_id)
        & (quotas.c.resource == each.c.resource)
        & (quotas.c.user_id == EVERYBODY)
    )
    usual = sa.case({name: limits[name] for name in COUNTED}, value=each.c.resource)
    limit = sa.func.coalesce(quotas.c.hard_limit, usual)
    is_full = sa.case(((limit >= 0) & (each.c.used >= limit * full), 1), else_=0)
    figures = sa.select(each.c.resource, sa.func.sum(each.c.used), sa.func.count(), sa.func.sum(is_full))
    found = connection.execute(figures.outerjoin_from(each, quotas, own).group_by(each.c.resource)).all()
    names = ('used', 'projects', 'full')
    amounts = {resource: map(int, numbers) for resource, *numbers in found}
    counted = {resource: dict(zip(names, numbers, strict=True)) for resource, numbers in amounts.items()}
    return {name: {resource: counted.get(resource, {}).get(name, 0) for resource in COUNTED} for name in names}


def processes_by_binary(connection: sa.Connection, since: datetime) -> dict[str, int]:
    """The number of this service's processes with a heartbeat since that moment, by binary."""
    living = sa.select(processes.c.binary, sa.func.count()).where(processes.c.seen_at >= since)
    return _pairs(connection, living.group_by(processes.c.binary))


def _pairs(connection: sa.Connection, statement: sa.Select[Any]) -> dict[str, int]:
    return {name: number for name, number, *_ in connection.execute(statement)}
