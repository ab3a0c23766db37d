"""The queue of tasks.

A worker claims a task by compare-and-set, for the duration of a lease that it renews; when a lease expires, another
worker takes over. A worker that was presumed dead cannot finish its task: the number of claims is a fencing token. The
tasks of one server run one after the other, in order of creation.
"""

import heapq
import itertools
import logging
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from datetime import datetime, timedelta
from typing import Any, Protocol

import sqlalchemy as sa

from computeapi.backends.encryption import Cipher
from computeapi.clock import utcnow
from computeapi.context import Context
from computeapi.db import tasks, wakeups
from computeapi.db.engine import Store
from computeapi.db.tasks import Task
from computeapi.errors import Error

LOG = logging.getLogger(__name__)
PATIENT_LOOK, PAUSE_SECONDS = 3, 0.005
"""The attempt from which on a search for work waits for a lock on a server, because its holder may not be a worker that
claims one of its tasks; and the pause before the next attempt."""
# The owner of a task that waits to be resumed, e.g. for the store or for the driver.
NOBODY = ''
# The argument of a task that counts how often it was put back.
WAITS = 'waits'
# The argument of a task whose request is not accepted yet.
PREPARING = 'preparing'


class Queueable(Protocol):
    """Something that can be queued: workers know it by its kind."""

    kind: str


class Tasks:
    """The queue of a store: call `add` in a transaction of `adding`, or else `wake` after it. cipher: encrypts the
    tokens of callers.

    Other processes are notified through the database, if it supports that. mark: returns arguments that are added to
    all new tasks.
    """

    def __init__(
        self,
        store: Store,
        lease_seconds: float,
        clock: Callable[[], datetime] = utcnow,
        cipher: Cipher | None = None,
        mark: Callable[[], Mapping[str, Any]] = dict,
    ):
        self.store, self.clock, self.cipher, self.mark = store, clock, cipher or Cipher(), mark
        self.lease_time = timedelta(seconds=lease_seconds)
        self.owner = str(uuid.uuid4())
        self.waiting = threading.Condition()
        self.generation = 0
        # Held by the thread that looks for due tasks.
        self.looking = threading.RLock()
        # The times at which tasks become due, as far as this process knows them, soonest first.
        self.due: list[datetime] = []

    @contextmanager
    def adding(self) -> Iterator[sa.Connection]:
        """A transaction after which a worker looks for work."""
        with self.store.write() as connection:
            yield connection
        self.wake()

    def add(
        self,
        connection: sa.Connection,
        work: Queueable,
        server_id: str,
        context: Context,
        arguments: Mapping[str, Any] | None = None,
        *,
        action_id: int | None = None,
        not_before: datetime | None = None,
        leased: bool = False,
    ) -> Task:
        """Queue work in the caller's transaction. If the caller's token can be encrypted, it is stored with the task.

        leased: to this process, which does the work itself, or part of it before it releases the task; if it dies,
        another takes over.
        """
        now = self.clock()
        self.hasten(connection, server_id)
        if not_before is not None:
            self._expect(not_before)
        elif not leased:
            wakeups.notify(connection)
        values = {
            'kind': work.kind,
            'server_id': server_id,
            'context': self.frozen(context),
            'arguments': {**(arguments or {}), **self.mark()},
            'action_id': action_id,
            'owner': self.owner if leased else None,
            'lease_until': now + self.lease_time if leased else None,
            'not_before': not_before,
            'attempts': int(leased),
            'created_at': now,
        }
        return tasks.insert(connection, values)

    def add_all(
        self,
        connection: sa.Connection,
        work: Queueable,
        action_ids: Mapping[str, int],
        context: Context,
        arguments: Mapping[str, Any],
    ) -> None:
        """Queue the same work for several new servers, each with its action."""
        facts: dict[str, Any] = {'kind': work.kind, 'context': self.frozen(context), 'attempts': 0}
        facts |= {'arguments': {**arguments, **self.mark()}, 'created_at': self.clock()}
        tasks.insert_all(
            connection, [{**facts, 'server_id': server_id, 'action_id': id} for server_id, id in action_ids.items()]
        )

    def add_once(self, connection: sa.Connection, work: Queueable, server_id: str, context: Context) -> None:
        """Queue work whose tasks are all alike: once is enough if none has begun."""
        if tasks.is_waiting(connection, work.kind, server_id):
            self.hasten(connection, server_id)
        else:
            self.add(connection, work, server_id, context)

    @contextmanager
    def leased(
        self,
        work: Queueable,
        server_id: str,
        context: Context,
        arguments: Mapping[str, Any],
        undo: Callable[[], None],
    ) -> Iterator[Task]:
        """For a request that creates things elsewhere before it can record what they are for.

        The block ends with `release` or `done`. If it fails, `undo` takes back what it created; if that fails, too, or
        this process dies in the block, a worker does so, as defined by that kind of work.
        """
        task = self.store.change(self.add, work, server_id, context, arguments, leased=True)
        try:
            yield task
        except Exception:
            try:
                undo()
            except Exception as error:
                bug = None if isinstance(error, Error) else error
                message = 'The cleanup after %s of server %s is left to a worker: %s'
                LOG.warning(message, task.kind, server_id, error, exc_info=bug)
                self.store.change(self.release, task, None)
            else:
                self.store.change(self.done, task)
            raise
        finally:
            self.wake()

    def frozen(self, context: Context) -> dict[str, Any]:
        token = context.sealed_token or self.cipher.encrypt(context.auth_token)
        facts = {**vars(context), 'auth_token': None, 'sealed_token': token, 'roles': sorted(context.roles)}
        del facts['service_roles']
        return {name: value for name, value in facts.items() if value is not None}

    def release(self, connection: sa.Connection, task: Task, action_id: int | None) -> bool:
        """Leave the rest of a leased task to the workers; False if one of them has taken it over."""
        wakeups.notify(connection)
        nobodys = {'owner': None, 'lease_until': None, 'not_before': None}
        return tasks.update(connection, task, {'action_id': action_id, 'arguments': task.arguments, **nobodys})

    def note(self, task: Task, facts: Mapping[str, Any]) -> bool:
        """Add facts that later runs of the task need to its arguments; False if another worker has it."""
        return self.store.change(self.note_in, task, facts)

    def note_in(self, connection: sa.Connection, task: Task, facts: Mapping[str, Any]) -> bool:
        """The same, in the caller's transaction."""
        task.arguments.update(facts)
        return tasks.update(connection, task, {'arguments': task.arguments})

    def is_mine(self, task: Task) -> bool:
        """Whether nobody has taken the task over since the claim recorded in *task*."""
        return self.store.query(tasks.is_claimed, task)

    def wake(self) -> None:
        """Notify a worker of this process that there may be work; if there is, it notifies the next one."""
        with self.waiting:
            self.generation += 1
            self.waiting.notify()

    def wake_all(self) -> None:
        """Let all workers of this process look for work."""
        with self.waiting:
            self.generation += 1
            self.waiting.notify_all()

    def wait(self, generation: int, seconds: float) -> None:
        """Wait until `wake` was called after *generation* was read, a task is due, or the time is over."""
        with self.waiting:
            now = self.clock()
            self._forget_past(now)
            if self.due:
                # A lease is valid to its last microsecond.
                seconds = min(seconds, (self.due[0] - now).total_seconds() + 0.001)
            self.waiting.wait_for(lambda: self.generation != generation, seconds)

    def claim(self) -> Task | None:
        """Claim one due task; None if there is none."""
        for look in itertools.count(1):
            patient = look >= PATIENT_LOOK
            # Threads that look at the same time find the same tasks. One that waits for a lock delays no other.
            with nullcontext() if patient else self.looking:
                now = self.clock()
                candidates = self.store.query(tasks.due, now)
                if not candidates:
                    break
                if len(candidates) > 1:
                    # There may be more tasks than this thread can run.
                    self.wake()
                with self.store.write() as connection:
                    # Other processes look, too; waiting for one of them would only show that it has taken the task.
                    task_id = tasks.choose(connection, candidates, now, wait=patient)
                    if task_id is not None and (
                        task := tasks.claim(connection, task_id, self.owner, now, now + self.lease_time)
                    ):
                        return task
            if task_id is None:
                time.sleep(PAUSE_SECONDS)
        return None

    def renew(self, task_ids: Collection[int]) -> None:
        """Renew the leases of these tasks, which workers of this process are running."""
        if task_ids:
            self.store.change(tasks.renew, task_ids, self.owner, self.clock() + self.lease_time)

    def expect_dead(self) -> None:
        """Wake the workers as soon as a lease expires whose owner has not renewed it in time."""
        due = self.store.query(tasks.next_lapse, self.clock() + self.lease_time / 2)
        if due is not None:
            self._expect(due)
            self.wake()

    def give_up(self, task: Task, facts: Mapping[str, Any]) -> bool:
        """Take a task from its worker and leave it to the next, with these facts; False if it was taken over
        already."""
        left = {'owner': NOBODY, 'lease_until': tasks.LONG_AGO, 'arguments': {**task.arguments, **facts}}
        return self.store.change(tasks.update, task, left)

    def done(self, connection: sa.Connection, task: Task) -> bool:
        """Remove the task; False if another worker has taken it over."""
        return tasks.delete(connection, task)

    def put_off(self, task: Task, seconds: float) -> None:
        """Release a task that is to be resumed after a while; later tasks of the server wait, too."""
        self.store.change(tasks.update, task, self._until(task, seconds))

    def put_back(self, task: Task, seconds: float) -> None:
        """The same for a task that waits for the driver, which does not count as an attempt."""
        task.arguments[WAITS] = task.arguments.get(WAITS, 0) + 1
        if not self.store.change(tasks.put_back, task, self._until(task, seconds)):
            self.put_off(task, 0)

    def _until(self, task: Task, seconds: float) -> dict[str, Any]:
        due = self.clock() + timedelta(seconds=seconds)
        self._expect(due)
        return {'owner': NOBODY, 'lease_until': due, 'arguments': task.arguments}

    def _expect(self, due: datetime) -> None:
        with self.waiting:
            # In a process without workers nobody waits.
            self._forget_past(self.clock())
            heapq.heappush(self.due, due)
            # A thread that is waiting already would wait for longer.
            self.wake()

    def _forget_past(self, now: datetime) -> None:
        while self.due and self.due[0] < now:
            heapq.heappop(self.due)

    def hasten(self, connection: sa.Connection, server_id: str) -> None:
        """Let waiting tasks of the server check it at once, because something else was requested for it."""
        if tasks.hasten(connection, server_id, NOBODY, self.clock()):
            wakeups.notify(connection)

    def hasten_all(self) -> None:
        """Let all waiting tasks check at once, because something that they may wait for is gone."""
        with self.adding() as connection:
            for server_id in tasks.held_servers(connection):
                self.hasten(connection, server_id)

    def remove(self, connection: sa.Connection, work: Queueable, server_id: str) -> list[int]:
        """Remove work on a server, even if a worker is running it; returns the actions that it was for."""
        return tasks.remove(connection, work.kind, server_id)

    def cancel(self, connection: sa.Connection, server_id: str) -> None:
        """Remove tasks that are not due yet, because the server took another course."""
        tasks.cancel(connection, server_id)

    def release_all(self) -> None:
        """Take over the work of every other worker at once; only for a store that no other process uses."""
        self.store.change(tasks.release_all)

    def idle(self) -> bool:
        """Whether no task is due."""
        return self.store.query(tasks.is_empty, self.clock())


def tries(task: Task) -> int:
    """How often the task was attempted, without the runs that only waited."""
    return task.attempts - int(task.arguments.get(WAITS, 0))


def thawed(facts: Mapping[str, Any]) -> Context:
    """The caller that a task was queued for."""
    return Context(**{**facts, 'roles': frozenset(facts.get('roles', ()))})
