"""Usage audits as rows, and the servers that they go through."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import sqlalchemy as sa

from computeapi.db.records import Rows, make_sure
from computeapi.db.servers import SERVERS, Server
from computeapi.db.services import COMPUTE
from computeapi.db.tables.compute import services
from computeapi.db.tables.servers import servers
from computeapi.db.tables.usage import UsageAudit, usage_audits

__all__ = ['UsageAudit']

AUDITS = Rows(UsageAudit, usage_audits)
EXAMINED = 200
"""How many servers are examined in one transaction."""


def find(connection: sa.Connection, begin: datetime, end: datetime) -> UsageAudit | None:
    return AUDITS.find(connection, begins_at=begin, ends_at=end)


def locked(connection: sa.Connection, begin: datetime, end: datetime, now: datetime) -> UsageAudit:
    """The audit of that period, which begins now unless it has begun; locked until the transaction ends."""
    audit = AUDITS.find(connection, lock=True, begins_at=begin, ends_at=end)
    if audit is None:
        # Only then: on MariaDB, processes that insert an existing row share a lock on it, and then deadlock.
        hosts = connection.scalars(sa.select(services.c.host).where(services.c.binary == COMPUTE))
        new = {'last_id': 0, 'counts': dict.fromkeys(hosts, 0), 'started_at': now, 'ended_at': None}
        make_sure(connection, usage_audits, {'begins_at': begin, 'ends_at': end} | new)
        audit = AUDITS.find(connection, lock=True, begins_at=begin, ends_at=end)
    assert audit is not None
    return audit


def next_servers(connection: sa.Connection, audit: UsageAudit) -> tuple[Sequence[Server], int | None]:
    """Those of the next servers that were on a host in the period, deleted or not, and the ID of the last one examined;
    None if there are no more."""
    after = servers.c.id > audit.last_id
    examined = sa.select(servers.c.id).where(after).order_by(servers.c.id).limit(EXAMINED).subquery()
    last: int | None = connection.scalar(sa.select(sa.func.max(examined.c.id)))
    if last is None:
        return [], None
    ended = servers.c.terminated_at.is_(None) | (servers.c.terminated_at > audit.begins_at)
    used = (servers.c.launched_at < audit.ends_at, ended, servers.c.host.is_not(None))
    chosen = SERVERS.select.where(after, servers.c.id <= last, *used).order_by(servers.c.id)
    return SERVERS.all(connection, chosen), last


def advance(connection: sa.Connection, audit: UsageAudit, last_id: int, counts: Mapping[str, int]) -> None:
    """Record how far the audit is."""
    AUDITS.update(connection, {'last_id': last_id, 'counts': counts}, id=audit.id)


def finish(connection: sa.Connection, audit: UsageAudit, now: datetime) -> None:
    AUDITS.update(connection, {'ended_at': now}, id=audit.id)
