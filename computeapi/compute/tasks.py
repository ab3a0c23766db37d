"""Work that outlives its request.

A change is written in one transaction: the server's new task_state, the action that clients can read,
and a row in `tasks`. The row is the truth; waking a worker only saves it the wait. A worker claims a
row by compare-and-set for the time of a lease, which it renews; whoever finds a lease that ran out
takes the work over. A worker that was taken for dead can do no harm: how often a task was claimed tells
whose it is. The tasks of one server are done one after the other, in the order they came.
"""

from __future__ import annotations

import logging
import threading
import traceback
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import sqlalchemy as sa

from computeapi.backends.hypervisor import Interrupted
from computeapi.clock import utcnow
from computeapi.context import Context
from computeapi.db.engine import Store
from computeapi.db.tables.compute import servers, tasks

LOG = logging.getLogger(__name__)
# Who holds a task that failed for want of something, e.g. the store, until it is tried again.
NOBODY = ''


class Task(NamedTuple):
    """A row of `tasks`, in its order."""

    id: int
    kind: str
    server_id: str
    host: str | None
    context: dict[str, Any]
    arguments: dict[str, Any]
    action_id: int | None
    owner: str | None
    lease_until: datetime | None
    not_before: datetime | None
    attempts: int
    created_at: datetime


class Tasks:
    """The queue of a store: add to it inside a transaction, `wake` after it."""

    def __init__(self, store: Store, lease_seconds: float, clock: Callable[[], datetime] = utcnow):
        self.store, self.clock = store, clock
        self.lease = timedelta(seconds=lease_seconds)
        self.owner = str(uuid.uuid4())
        # What the workers of this process are doing.
        self.running: set[int] = set()
        self.waiting = threading.Condition()
        self.generation = 0

    def add(
        self,
        connection: sa.Connection,
        kind: str,
        server_id: str,
        context: Context,
        arguments: Mapping[str, Any] | None = None,
        *,
        action_id: int | None = None,
        host: str | None = None,
        not_before: datetime | None = None,
        held: bool = False,
    ) -> Task:
        """Queue work in the caller's transaction. The caller's token is not kept.

        held: this process does the work itself, or part of it before it lets go; should it die, another takes over.
        """
        now = self.clock()
        values = {
            'kind': kind,
            'server_id': server_id,
            'host': host,
            'context': _frozen(context),
            'arguments': dict(arguments or {}),
            'action_id': action_id,
            'owner': self.owner if held else None,
            'lease_until': now + self.lease if held else None,
            'not_before': not_before,
            'attempts': int(held),
            'created_at': now,
        }
        made = connection.execute(sa.insert(tasks).values(**values))
        return Task(made.inserted_primary_key[0], **values)  # type: ignore[index, arg-type]

    @contextmanager
    def held(
        self,
        kind: str,
        server_id: str,
        context: Context,
        arguments: Mapping[str, Any],
        undo: Callable[[], None],
    ) -> Iterator[Task]:
        """For a request that makes things elsewhere before it can write down what they are for.

        The block ends with `let_go` or `done`. If it fails `undo` takes back what it made; if this process dies in
        it, a worker does, as the kind of work says.
        """
        with self.store.write() as connection:
            task = self.add(connection, kind, server_id, context, arguments, held=True)
        try:
            yield task
        except Exception:
            undo()
            with self.store.write() as connection:
                self.done(connection, task)
            raise
        finally:
            self.wake()

    def let_go(self, connection: sa.Connection, task: Task, action_id: int | None) -> bool:
        """Leave the rest of a task that this process held to the workers; False when one of them took it over."""
        free = {'action_id': action_id, 'arguments': task.arguments, 'owner': None, 'lease_until': None}
        return connection.execute(sa.update(tasks).where(_mine(task)).values(**free)).rowcount == 1

    def note(self, task: Task, facts: Mapping[str, Any]) -> bool:
        """Add to the arguments what whoever runs the task again must know; False when that is another one now."""
        task.arguments.update(facts)
        with self.store.write() as connection:
            noted = sa.update(tasks).where(_mine(task)).values(arguments=task.arguments)
            return connection.execute(noted).rowcount == 1

    def holds(self, task: Task) -> bool:
        """Whether nobody took the task over from whoever claimed it as it is here."""
        with self.store.read() as connection:
            return connection.execute(sa.select(tasks.c.id).where(_mine(task))).first() is not None

    def wake(self) -> None:
        """Tell the workers of this process that there may be something to do."""
        with self.waiting:
            self.generation += 1
            self.waiting.notify_all()

    def wait(self, generation: int, seconds: float) -> None:
        """Until `wake` was called after *generation* was read, or the time is over."""
        with self.waiting:
            self.waiting.wait_for(lambda: self.generation != generation, seconds)

    def claim(self) -> Task | None:
        """One task that is due, now this worker's; None when there is none."""
        while True:
            now = self.clock()
            with self.store.read() as connection:
                candidates = connection.execute(_due(now).limit(8)).scalars().all()
            if not candidates:
                return None
            for task_id in candidates:
                with self.store.write() as connection:
                    if task := self._take(connection, task_id, now):
                        return task

    def _take(self, connection: sa.Connection, task_id: int, now: datetime) -> Task | None:
        """The task, if it is still due: others who want one of the same server wait until that is sure."""
        server = sa.select(tasks.c.server_id).where(tasks.c.id == task_id).scalar_subquery()
        connection.execute(sa.select(servers.c.id).where(servers.c.uuid == server).with_for_update()).all()
        if connection.execute(_due(now).where(tasks.c.id == task_id)).first() is None:
            return None
        taken = {'owner': self.owner, 'lease_until': now + self.lease, 'attempts': tasks.c.attempts + 1}
        # A server that is not there makes nobody wait, so the task is looked at again.
        free = (tasks.c.id == task_id) & ~_held(tasks, now)
        if connection.execute(sa.update(tasks).where(free).values(**taken)).rowcount == 0:
            return None
        return Task(*connection.execute(sa.select(tasks).where(tasks.c.id == task_id)).one())

    def renew(self) -> None:
        """Keep what the workers of this process are doing."""
        running = list(self.running)
        if running:
            with self.store.write() as connection:
                mine = tasks.c.id.in_(running) & (tasks.c.owner == self.owner)
                connection.execute(sa.update(tasks).where(mine).values(lease_until=self.clock() + self.lease))

    def done(self, connection: sa.Connection, task: Task) -> bool:
        """Remove the task; False when another worker took it over."""
        return connection.execute(sa.delete(tasks).where(_mine(task))).rowcount == 1

    def put_off(self, task: Task, seconds: float) -> None:
        """Let go of a task, to be taken up again after a while; those of the server that follow wait, too."""
        later = {'owner': NOBODY, 'lease_until': self.clock() + timedelta(seconds=seconds)}
        with self.store.write() as connection:
            connection.execute(sa.update(tasks).where(_mine(task)).values(**later))

    def cancel(self, connection: sa.Connection, server_id: str) -> None:
        """Forget what waits for its time: the server has gone another way."""
        waiting = tasks.c.not_before.is_not(None) & tasks.c.owner.is_(None)
        connection.execute(sa.delete(tasks).where(tasks.c.server_id == server_id, waiting))

    def release_all(self) -> None:
        """Take the work of every other worker over at once; only for a store that no other process uses."""
        with self.store.write() as connection:
            connection.execute(sa.update(tasks).values(owner=None, lease_until=None))

    def idle(self) -> bool:
        """Whether there is nothing left that is due."""
        now = self.clock()
        with self.store.read() as connection:
            later = sa.and_(tasks.c.owner.is_(None), tasks.c.not_before.is_not(None), tasks.c.not_before > now)
            return connection.execute(sa.select(tasks.c.id).where(sa.not_(later)).limit(1)).first() is None


def _mine(task: Task) -> sa.ColumnElement[bool]:
    """The row of the task, unless somebody else has claimed it since."""
    return (tasks.c.id == task.id) & (tasks.c.attempts == task.attempts)


def _due(now: datetime) -> sa.Select:
    """What can be claimed, oldest first: not what another task of the same server has to be done before."""
    other = tasks.alias('other')
    first = (other.c.id < tasks.c.id) & _timely(other, now) | _held(other, now)
    blocked = sa.exists().where(other.c.server_id == tasks.c.server_id, other.c.id != tasks.c.id, first)
    return sa.select(tasks.c.id).where(~_held(tasks, now), _timely(tasks, now), ~blocked).order_by(tasks.c.id)


def _held(table: Any, now: datetime) -> sa.ColumnElement[bool]:
    return table.c.owner.is_not(None) & (table.c.lease_until >= now)


def _timely(table: Any, now: datetime) -> sa.ColumnElement[bool]:
    return sa.or_(table.c.not_before.is_(None), table.c.not_before <= now)


def _frozen(context: Context) -> dict[str, Any]:
    facts = asdict(context) | {'auth_token': None, 'roles': sorted(context.roles)}
    return {name: value for name, value in facts.items() if value is not None}


def thawed(facts: Mapping[str, Any]) -> Context:
    """The caller that a task was queued for."""
    return Context(**{**facts, 'roles': frozenset(facts.get('roles', ()))})


class Worker:
    """Threads that do the tasks of a store: `run(task)` for each, until `stop`."""

    def __init__(self, tasks: Tasks, run: Callable[[Task], None], threads: int, sweep_seconds: float):
        self.tasks, self.run, self.sweep_seconds = tasks, run, sweep_seconds
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self.work, name=f'worker-{n}', daemon=True) for n in range(threads)]
        self.threads.append(threading.Thread(target=self.keep, name='worker-lease', daemon=True))

    def start(self) -> None:
        for thread in self.threads:
            thread.start()

    def stop(self) -> None:
        """Finish what is under way and return."""
        self.stopping.set()
        self.tasks.wake()
        for thread in self.threads:
            thread.join()

    def work(self) -> None:
        while not self.stopping.is_set():
            generation = self.tasks.generation
            try:
                if not self.step():
                    self.tasks.wait(generation, self.sweep_seconds)
            except Exception:
                LOG.exception('A worker could not reach the store')
                self.stopping.wait(self.sweep_seconds)

    def step(self) -> bool:
        """Do one task; whether there was one."""
        task = self.tasks.claim()
        if task is None:
            return False
        self.tasks.running.add(task.id)
        try:
            self.do(task)
        finally:
            self.tasks.running.discard(task.id)
            self.tasks.wake()
        return True

    def do(self, task: Task) -> None:
        try:
            self.run(task)
        except Interrupted:
            self.tasks.put_off(task, 0)
        except Exception:
            LOG.error('Task %s (%s) of server %s: %s', task.id, task.kind, task.server_id, traceback.format_exc())
            self.tasks.put_off(task, self.sweep_seconds)

    def keep(self) -> None:
        while not self.stopping.wait(self.tasks.lease.total_seconds() / 3):
            try:
                self.tasks.renew()
            except Exception:
                LOG.exception('Leases could not be renewed')
