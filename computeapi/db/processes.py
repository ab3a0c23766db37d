"""The processes of this service, as rows: each says now and then that it lives."""

from datetime import datetime

import sqlalchemy as sa

from computeapi.db.records import Rows, upsert
from computeapi.db.tables.compute import Process, processes

__all__ = ['Process']

PROCESSES = Rows(Process, processes)


def is_seen(connection: sa.Connection, process: Process) -> None:
    """Write down that the process lived at its `seen_at`, though it is new, or was held for dead."""
    upsert(connection, processes, [process._asdict()])


def is_gone(connection: sa.Connection, process_id: str) -> None:
    PROCESSES.delete(connection, id=process_id)


def forget(connection: sa.Connection, before: datetime) -> None:
    """Remove those that were seen last before that moment."""
    connection.execute(sa.delete(processes).where(processes.c.seen_at < before))


def select(connection: sa.Connection) -> list[Process]:
    """All of them, the oldest first."""
    return PROCESSES.all(connection, PROCESSES.select.order_by(processes.c.started_at, processes.c.id))


def working_since(connection: sa.Connection, moment: datetime) -> list[str]:
    """The processes with workers that were seen since, the oldest first."""
    seen = sa.select(processes.c.id).where(processes.c.seen_at >= moment, processes.c.workers > 0)
    return list(connection.scalars(seen.order_by(processes.c.started_at, processes.c.id)))


def works_since(connection: sa.Connection, host: str, moment: datetime) -> bool:
    """Whether a process with workers on that machine was seen since."""
    there = (processes.c.host == host) & (processes.c.seen_at >= moment) & (processes.c.workers > 0)
    return connection.execute(sa.select(processes.c.id).where(there).limit(1)).first() is not None


def workers_since(connection: sa.Connection, moment: datetime) -> int:
    """On how many tasks those work at a time that were seen since."""
    seen = sa.select(sa.func.sum(processes.c.workers)).where(processes.c.seen_at >= moment)
    return int(connection.scalar(seen) or 0)
