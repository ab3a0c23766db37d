"""What is counted of the whole cloud for its operators: servers and hosts by state, and the use of quotas.

To count a million servers takes a walk along an index, so it is done now and then, by one process for all, and kept.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from computeapi.db.quotas import COUNTED, EVERYBODY
from computeapi.db.records import Rows, make_sure
from computeapi.db.server_branches import BY
from computeapi.db.services import RUNS_SERVERS, up
from computeapi.db.tables.compute import CloudCount, counts, processes, quota_usages, quotas, services
from computeapi.db.tables.servers import servers
from computeapi.db.walks import hinted

COUNTS = Rows(CloudCount, counts)
CLOUD = 'cloud'
"""The name of the one row that there is."""
SERVERS_BY_STATE = hinted(
    sa.select(servers.c.vm_state, sa.func.count()).where(servers.c.deleted_at.is_(None)).group_by(servers.c.vm_state),
    BY['vm_state'],
)


def get(connection: sa.Connection) -> CloudCount | None:
    """What was counted last; None where nobody ever did."""
    return COUNTS.find(connection, name=CLOUD)


def begin(connection: sa.Connection, now: datetime) -> None:
    """Make the row, unless there is one; in a transaction of its own, for InnoDB lets those that looked for the row
    together lock each other out when they change it."""
    make_sure(connection, counts, {'name': CLOUD, 'contents': None, 'counted_at': None, 'due_at': now})


def take_turn(connection: sa.Connection, now: datetime, next_turn: datetime) -> bool:
    """Whether it is time to count and nobody else does; nobody else will before the next turn."""
    due = sa.update(counts).where(counts.c.name == CLOUD, counts.c.due_at <= now)
    return connection.execute(due.values(due_at=next_turn)).rowcount == 1


def put(connection: sa.Connection, contents: Mapping[str, Any], now: datetime) -> None:
    COUNTS.update(connection, {'contents': dict(contents), 'counted_at': now}, name=CLOUD)


def servers_by_state(connection: sa.Connection) -> dict[str, int]:
    """How many servers there are of each vm_state, but for those that are deleted."""
    return _pairs(connection, SERVERS_BY_STATE)


def hosts_by_state(connection: sa.Connection, since: datetime) -> dict[str, int]:
    """How many compute hosts are disabled, up (they gave a sign of life since that moment) and down."""
    living = up(sa.bindparam('since', since))
    state = sa.case((services.c.disabled, 'disabled'), (living, 'up'), else_='down')
    hosts = sa.select(state.label('state')).where(RUNS_SERVERS).subquery()
    statement = sa.select(hosts.c.state, sa.func.count()).group_by(hosts.c.state)
    return {'up': 0, 'down': 0, 'disabled': 0} | _pairs(connection, statement)


def quotas_by_resource(connection: sa.Connection, limits: Mapping[str, int], full: float) -> dict[str, dict[str, int]]:
    """By what is counted, {resource: number}: how much all projects use (`used`), how many use any (`projects`), and
    how many use that part of their quota or more, from 0 to 1 (`full`).

    limits: of projects that have none of their own; below 0: without bound."""
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
    """How many processes of this service said since that moment that they live."""
    living = sa.select(processes.c.binary, sa.func.count()).where(processes.c.seen_at >= since)
    return _pairs(connection, living.group_by(processes.c.binary))


def _pairs(connection: sa.Connection, statement: sa.Select[Any]) -> dict[str, int]:
    return {name: number for name, number, *_ in connection.execute(statement)}
