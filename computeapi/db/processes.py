"""The processes of this service, as rows: each sends heartbeats."""

from datetime import datetime

import sqlalchemy as sa

from computeapi.db.records import Rows, upsert
from computeapi.db.tables.compute import Process, processes

__all__ = ['Process']

PROCESSES = Rows(Process, processes)


def is_seen(connection: sa.Connection, process: Process) -> None:
    """Record the heartbeat of a process, even if it is new or was taken for dead."""
    upsert(connection, processes, [process._asdict()])


def is_gone(connection: sa.Connection, process_id: str) -> None:
    PROCESSES.delete(connection, id=process_id)


def forget(connection: sa.Connection, before: datetime) -> None:
    """Remove processes that were last seen before that moment."""
    connection.execute(sa.delete(processes).where(processes.c.seen_at < before))


def select(connection: sa.Connection) -> list[Process]:
    """All processes, oldest first."""
    return PROCESSES.all(connection, PROCESSES.select.order_by(processes.c.started_at, processes.c.id))


def working_since(connection: sa.Connection, moment: datetime) -> list[str]:
    """The processes with workers that were seen since then, oldest first."""
    seen = sa.select(processes.c.id).where(processes.c.seen_at >= moment, processes.c.workers > 0)
    return list(connection.scalars(seen.order_by(processes.c.started_at, processes.c.id)))


def works_since(connection: sa.Connection, host: str, moment: datetime) -> bool:
    """Whether a process with workers on that machine was seen since then."""
    there = (processes.c.host == host) & (processes.c.seen_at >= moment) & (processes.c.workers > 0)
    return connection.execute(sa.select(processes.c.id).where(there).limit(1)).first() is not None


def workers_since(connection: sa.Connection, moment: datetime) -> int:
    """The total number of workers of processes that were seen since then."""
    seen = sa.select(sa.func.sum(processes.c.workers)).where(processes.c.seen_at >= moment)
    return int(connection.scalar(seen) or 0)
