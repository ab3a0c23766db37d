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
from typing import Any

import sqlalchemy as sa

from computeapi.backends.hypervisor import Interrupted
from computeapi.clock import utcnow
from computeapi.context import Context
from computeapi.db import tasks as rows
from computeapi.db.engine import Store
from computeapi.db.tasks import Task

LOG = logging.getLogger(__name__)
# Who holds a task that failed for want of something, e.g. the store, until it is tried again.
NOBODY = ''


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
        return rows.insert(connection, values)

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
        return rows.update(connection, task, free)

    def note(self, task: Task, facts: Mapping[str, Any]) -> bool:
        """Add to the arguments what whoever runs the task again must know; False when that is another one now."""
        task.arguments.update(facts)
        with self.store.write() as connection:
            return rows.update(connection, task, {'arguments': task.arguments})

    def holds(self, task: Task) -> bool:
        """Whether nobody took the task over from whoever claimed it as it is here."""
        with self.store.read() as connection:
            return rows.is_claimed(connection, task)

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
                candidates = rows.due(connection, now)
            if not candidates:
                return None
            for task_id in candidates:
                with self.store.write() as connection:
                    if task := rows.claim(connection, task_id, self.owner, now, now + self.lease):
                        return task

    def renew(self) -> None:
        """Keep what the workers of this process are doing."""
        running = list(self.running)
        if running:
            with self.store.write() as connection:
                rows.renew(connection, running, self.owner, self.clock() + self.lease)

    def done(self, connection: sa.Connection, task: Task) -> bool:
        """Remove the task; False when another worker took it over."""
        return rows.delete(connection, task)

    def put_off(self, task: Task, seconds: float) -> None:
        """Let go of a task, to be taken up again after a while; those of the server that follow wait, too."""
        later = {'owner': NOBODY, 'lease_until': self.clock() + timedelta(seconds=seconds)}
        with self.store.write() as connection:
            rows.update(connection, task, later)

    def cancel(self, connection: sa.Connection, server_id: str) -> None:
        """Forget what waits for its time: the server has gone another way."""
        rows.cancel(connection, server_id)

    def release_all(self) -> None:
        """Take the work of every other worker over at once; only for a store that no other process uses."""
        with self.store.write() as connection:
            rows.release_all(connection)

    def idle(self) -> bool:
        """Whether there is nothing left that is due."""
        with self.store.read() as connection:
            return rows.is_empty(connection, self.clock())


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
