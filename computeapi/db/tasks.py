"""Work that outlives its request, as rows: claims, leases, and due work.

A row is claimed by setting `owner` and `lease_until` and increasing `attempts`, and deleted when the work is done. The
number of attempts therefore identifies the claim: an earlier claimant no longer finds its row. Outside the database,
the fencing token is the number of claims on the server's tasks, which only grows.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from computeapi.db import wakeups
from computeapi.db.records import Rows, insertion
from computeapi.db.tables.servers import Task, servers, tasks

__all__ = ['Task']

TASKS = Rows(Task, tasks)
NOW: sa.BindParameter[Any] = sa.bindparam('now')


def _leased(table: sa.FromClause) -> sa.ColumnElement[bool]:
    return table.c.owner.is_not(None) & (table.c.lease_until >= NOW)


def _timely(table: sa.FromClause) -> sa.ColumnElement[bool]:
    return sa.or_(table.c.not_before.is_(None), table.c.not_before <= NOW)


def _due() -> sa.Select[Any]:
    """The tasks that can be claimed, oldest first: not those that must wait for another task of the same server."""
    other = tasks.alias('other')
    first = (other.c.id < tasks.c.id) & _timely(other) | _leased(other)
    blocked = sa.exists().where(other.c.server_id == tasks.c.server_id, other.c.id != tasks.c.id, first)
    return sa.select(tasks.c.id).where(~_leased(tasks), _timely(tasks), ~blocked).order_by(tasks.c.id)


# Used all the time, so built once.
MINE = (tasks.c.id == sa.bindparam('task')) & (tasks.c.attempts == sa.bindparam('attempt'))
DUE = _due()
OLDEST_DUE = DUE.limit(16)
STILL_DUE = (
    DUE.with_only_columns(*TASKS.columns, sa.func.coalesce(servers.c.claims, 0))
    .outerjoin_from(tasks, servers, servers.c.uuid == tasks.c.server_id)
    .where(tasks.c.id == sa.bindparam('task'))
)
FREE = (
    sa.select(tasks.c.id)
    .join_from(tasks, servers, servers.c.uuid == tasks.c.server_id)
    .where(tasks.c.id.in_(sa.bindparam('tasks', expanding=True)), ~_leased(tasks))
    .order_by(tasks.c.id)
    .limit(1)
    .with_for_update(of=servers, skip_locked=True)
)
# A lease that has expired.
LONG_AGO = datetime(1970, 1, 1)


ITS_SERVER = sa.select(tasks.c.server_id).where(tasks.c.id == sa.bindparam('task')).scalar_subquery()
LOCK_ITS_SERVER = sa.select(servers.c.uuid).where(servers.c.uuid == ITS_SERVER).with_for_update()
COUNT_CLAIM = sa.update(servers).values(claims=servers.c.claims + 1).where(servers.c.uuid == sa.bindparam('server'))
# If the server does not exist there is no row to wait for, so the task itself is checked again.
CLAIM = sa.update(tasks).where(MINE, ~_leased(tasks)).values(attempts=tasks.c.attempts + 1)
HELD_OF = sa.select(tasks.c.id).where(tasks.c.server_id == sa.bindparam('server'), tasks.c.owner.is_not(None)).limit(1)
HELD = sa.select(tasks.c.id).where(MINE)
HOLD = HELD.with_for_update()


def insert(connection: sa.Connection, values: Mapping[str, Any]) -> Task:
    """Insert a task. One that its request owns at once does not wait for other work on the server and so invalidates
    none: it gets the token of the latest claim."""
    task = Task(id=TASKS.add(connection, **values), **values)
    if task.owner is None:
        return task
    return task._replace(token=newest_claim(connection, task.server_id))


def newest_claim(connection: sa.Connection, server_id: str) -> int:
    """The token of the latest claim on the server's work, even if the server is deleted; 0: there was none."""
    return connection.scalar(sa.select(servers.c.claims).where(servers.c.uuid == server_id)) or 0


def insert_all(connection: sa.Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert tasks that have no owner and are due, with values for the same columns; listeners are notified."""
    connection.execute(wakeups.notifying(connection, insertion(tasks)), rows)


def is_waiting(connection: sa.Connection, kind: str, server_id: str) -> bool:
    """Whether there is a task of this kind for the server that was never claimed."""
    fresh = (tasks.c.kind == kind) & (tasks.c.server_id == server_id) & (tasks.c.attempts == 0)
    return connection.execute(sa.select(tasks.c.id).where(fresh).limit(1)).first() is not None


def update(connection: sa.Connection, task: Task, values: Mapping[str, Any]) -> bool:
    """Change the row; False if somebody else has claimed the task since."""
    return connection.execute(sa.update(tasks).where(_mine(task)).values(**values)).rowcount == 1


def put_back(connection: sa.Connection, task: Task, values: Mapping[str, Any]) -> bool:
    """The same, but also False if the task was hastened since."""
    unhurried = tasks.c.not_before.is_not_distinct_from(task.not_before)
    return connection.execute(sa.update(tasks).where(_mine(task), unhurried).values(**values)).rowcount == 1


def hasten(connection: sa.Connection, server_id: str, waiting: str, now: datetime) -> bool:
    """Make the server's tasks that have this *waiting* owner due, and signal to a worker that runs one not to wait;
    returns whether there were any such tasks."""
    over = sa.case((tasks.c.owner == waiting, LONG_AGO), else_=tasks.c.lease_until)
    held = tasks.c.owner.is_not(None)
    if not is_held(connection, server_id):
        return False
    hurried = sa.update(tasks).where(_among(connection, server_id, held), held)
    return connection.execute(hurried.values(not_before=now, lease_until=over)).rowcount > 0


def is_held(connection: sa.Connection, server_id: str) -> bool:
    """Whether a task of the server has an owner, working or waiting."""
    return connection.execute(HELD_OF, {'server': server_id}).first() is not None


def held_servers(connection: sa.Connection) -> list[str]:
    """The servers with tasks that have an owner, working or waiting."""
    return list(connection.scalars(sa.select(tasks.c.server_id).where(tasks.c.owner.is_not(None)).distinct()))


def delete(connection: sa.Connection, task: Task) -> bool:
    """Delete the row; False if somebody else has claimed the task since."""
    return connection.execute(sa.delete(tasks).where(MINE), _named(task)).rowcount == 1


def is_claimed(connection: sa.Connection, task: Task) -> bool:
    """Whether the claim still holds: nobody else has claimed the task since."""
    return connection.execute(HELD, _named(task)).first() is not None


def hold(connection: sa.Connection, task: Task) -> bool:
    """The same, and locks the row so that it stays so until the transaction ends."""
    return connection.execute(HOLD, _named(task)).first() is not None


def due(connection: sa.Connection, now: datetime) -> list[int]:
    """Some tasks that can be claimed, oldest first."""
    return list(connection.scalars(OLDEST_DUE, {'now': now}))


def choose(connection: sa.Connection, task_ids: Sequence[int], now: datetime, *, wait: bool) -> int | None:
    """The first of these tasks that nobody else is about to claim, if the database can skip locked rows: None if all
    are locked, or their servers are gone. Otherwise (or with *wait*) the first one, after waiting for its lock.

    Others who want a task of the same server wait until this transaction ends."""
    if wait or connection.dialect.name != 'postgresql':
        _lock(connection, task_ids[0])
        return task_ids[0]
    found: int | None = connection.scalar(FREE, {'tasks': list(task_ids), 'now': now})
    return found


def _lock(connection: sa.Connection, task_id: int) -> None:
    if connection.dialect.name != 'sqlite':
        # On SQLite a write transaction is exclusive anyway.
        connection.execute(LOCK_ITS_SERVER, {'task': task_id})


def claim(connection: sa.Connection, task_id: int, owner: str, now: datetime, lease_until: datetime) -> Task | None:
    """Claim the task, whose server must be locked, for a new owner; None if it is no longer due."""
    found = connection.execute(STILL_DUE, {'now': now, 'task': task_id}).first()
    if found is None:
        return None
    *facts, claims = found
    task = Task(*facts)
    taken = {'owner': owner, 'lease_until': lease_until, 'now': now}
    if connection.execute(CLAIM, {**taken, **_named(task)}).rowcount == 0:
        return None
    token = claims + connection.execute(COUNT_CLAIM, {'server': task.server_id}).rowcount
    before, attempts = task.owner, task.attempts + 1
    return task._replace(owner=owner, lease_until=lease_until, attempts=attempts, taken_from=before, token=token)


def renew(connection: sa.Connection, task_ids: Collection[int], owner: str, lease_until: datetime) -> None:
    """Extend the leases of those of the tasks that the owner still has."""
    mine = tasks.c.id.in_(task_ids) & (tasks.c.owner == owner)
    connection.execute(sa.update(tasks).where(mine).values(lease_until=lease_until))


def next_lapse(connection: sa.Connection, before: datetime) -> datetime | None:
    """The next expiry of a lease, among those before that moment."""
    soon = tasks.c.owner.is_not(None) & (tasks.c.lease_until < before)
    found: datetime | None = connection.scalar(sa.select(sa.func.min(tasks.c.lease_until)).where(soon))
    return found


def cancel(connection: sa.Connection, server_id: str) -> None:
    """Delete the server's scheduled tasks that have no owner."""
    waiting = tasks.c.not_before.is_not(None) & tasks.c.owner.is_(None)
    connection.execute(sa.delete(tasks).where(_among(connection, server_id, waiting), waiting))


def remove(connection: sa.Connection, kind: str, server_id: str) -> list[int]:
    """Delete a server's tasks of that kind, whoever owns them; returns the IDs of their actions."""
    found = _among(connection, server_id, tasks.c.kind == kind)
    action_ids = connection.scalars(sa.select(tasks.c.action_id).where(found, tasks.c.action_id.is_not(None))).all()
    connection.execute(sa.delete(tasks).where(found))
    return list(action_ids)


def release_all(connection: sa.Connection) -> None:
    """Let all leases expire."""
    connection.execute(sa.update(tasks).where(tasks.c.owner.is_not(None)).values(lease_until=LONG_AGO))


def is_empty(connection: sa.Connection, now: datetime) -> bool:
    """Whether there are no tasks except scheduled ones whose time has not come."""
    later = sa.and_(tasks.c.owner.is_(None), tasks.c.not_before.is_not(None), tasks.c.not_before > now)
    return connection.execute(sa.select(tasks.c.id).where(sa.not_(later)).limit(1)).first() is None


def load(connection: sa.Connection, now: datetime) -> tuple[int, datetime | None]:
    """The number of tasks, and since when the oldest one that is due but not being worked on has been waiting."""
    since = sa.func.coalesce(tasks.c.not_before, tasks.c.lease_until, tasks.c.created_at)
    waiting = sa.select(sa.func.min(since)).where(~_leased(tasks), _timely(tasks))
    oldest: datetime | None = connection.scalar(waiting, {'now': now})
    return connection.scalar(sa.select(sa.func.count()).select_from(tasks)) or 0, oldest


def _among(connection: sa.Connection, server_id: str, *where: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
    """Those of the server's tasks, selected by ID, which may have changed since: by another index InnoDB would lock its
    entries before the rows, whereas a deletion locks the row first."""
    found = connection.scalars(sa.select(tasks.c.id).where(tasks.c.server_id == server_id, *where)).all()
    return tasks.c.id.in_(found)


def _mine(task: Task) -> sa.ColumnElement[bool]:
    return (tasks.c.id == task.id) & (tasks.c.attempts == task.attempts)


def _named(task: Task) -> dict[str, int]:
    return {'task': task.id, 'attempt': task.attempts}
