"""The queue of tasks.

A worker claims a task by compare-and-set for the time of a lease, which it renews; whoever finds a lease that ran out
takes the work over. A worker that was taken for dead cannot finish what it began: how often a task was claimed tells
whose it is. The tasks of one server are done one after the other, in the order they came.
"""

import heapq
import itertools
import logging
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any, Protocol

import sqlalchemy as sa

from computeapi.backends.seal import Seal
from computeapi.clock import utcnow
from computeapi.context import Context
from computeapi.db import tasks as rows
from computeapi.db import wakeups
from computeapi.db.engine import Store
from computeapi.db.tasks import Task
from computeapi.errors import Error

LOG = logging.getLogger(__name__)
PATIENT_LOOK, PAUSE_SECONDS = 3, 0.005
"""The look for work that waits for who has locked a server, for that may be nobody who claims a task of it; and how
long it is waited before another one."""
# Who has a task that waits until it is taken up again: for something that it wants, e.g. the store, or for the driver.
NOBODY = ''
# The argument of a task that says how often it was put back.
WAITS = 'waits'
# The argument of a task that says that its request was not accepted yet.
PREPARING = 'preparing'


class Doable(Protocol):
    """What can be queued: something that workers know by its kind."""

    kind: str


class Tasks:
    """The queue of a store: add to it inside a transaction, `wake` after it. seal: of the tokens of those who ask.

    Other processes are told by the database, if it can. mark: gives arguments that all tasks have which are added now.
    """

    def __init__(
        self,
        store: Store,
        lease_seconds: float,
        clock: Callable[[], datetime] = utcnow,
        seal: Seal | None = None,
        mark: Callable[[], Mapping[str, Any]] = dict,
    ):
        self.store, self.clock, self.seal, self.mark = store, clock, seal or Seal(), mark
        self.lease_time = timedelta(seconds=lease_seconds)
        self.owner = str(uuid.uuid4())
        self.waiting = threading.Condition()
        self.generation = 0
        # Held by the thread that looks for what is due.
        self.looking = threading.RLock()
        # When something is due that this process knows of, the soonest first.
        self.due: list[datetime] = []

    def add(
        self,
        connection: sa.Connection,
        work: Doable,
        server_id: str,
        context: Context,
        arguments: Mapping[str, Any] | None = None,
        *,
        action_id: int | None = None,
        not_before: datetime | None = None,
        leased: bool = False,
    ) -> Task:
        """Queue work in the caller's transaction. The caller's token is kept if it can be sealed, for as long.

        leased: to this process, which does the work itself, or part of it before it releases the task; should it die,
        another takes over.
        """
        now = self.clock()
        self.hasten(connection, server_id)
        if not_before is not None:
            self._expect(not_before)
        elif not leased:
            wakeups.tell(connection)
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
        return rows.insert(connection, values)

    def add_all(
        self,
        connection: sa.Connection,
        work: Doable,
        action_ids: Mapping[str, int],
        context: Context,
        arguments: Mapping[str, Any],
    ) -> None:
        """The same work on several new servers, each with its action."""
        facts: dict[str, Any] = {'kind': work.kind, 'context': self.frozen(context), 'attempts': 0}
        facts |= {'arguments': {**arguments, **self.mark()}, 'created_at': self.clock()}
        rows.insert_all(
            connection, [{**facts, 'server_id': server_id, 'action_id': id} for server_id, id in action_ids.items()]
        )

    def add_once(self, connection: sa.Connection, work: Doable, server_id: str, context: Context) -> None:
        """The same for work that tells nothing from other work of its kind: once is enough if nobody has begun."""
        if rows.is_waiting(connection, work.kind, server_id):
            self.hasten(connection, server_id)
        else:
            self.add(connection, work, server_id, context)

    @contextmanager
    def leased(
        self,
        work: Doable,
        server_id: str,
        context: Context,
        arguments: Mapping[str, Any],
        undo: Callable[[], None],
    ) -> Iterator[Task]:
        """For a request that makes things elsewhere before it can write down what they are for.

        The block ends with `release` or `done`. If it fails `undo` takes back what it made; if that fails, too, or this
        process dies in it, a worker does, as the kind of work says.
        """
        task = self.store.tell(self.add, work, server_id, context, arguments, leased=True)
        try:
            yield task
        except Exception:
            try:
                undo()
            except Error as error:
                LOG.warning('The cleanup after %s of server %s is left to a worker: %s', task.kind, server_id, error)
                self.store.tell(self.release, task, None)
            else:
                self.store.tell(self.done, task)
            raise
        finally:
            self.wake()

    def frozen(self, context: Context) -> dict[str, Any]:
        token = context.sealed_token or self.seal.closed(context.auth_token)
        facts = asdict(context) | {'auth_token': None, 'sealed_token': token, 'roles': sorted(context.roles)}
        del facts['service_roles']
        return {name: value for name, value in facts.items() if value is not None}

    def release(self, connection: sa.Connection, task: Task, action_id: int | None) -> bool:
        """Leave the rest of a task that this process has to the workers; False when one of them took it over."""
        wakeups.tell(connection)
        nobodys = {'owner': None, 'lease_until': None, 'not_before': None}
        return rows.update(connection, task, {'action_id': action_id, 'arguments': task.arguments, **nobodys})

    def note(self, task: Task, facts: Mapping[str, Any]) -> bool:
        """Add to the arguments what whoever runs the task again must know; False when that is another one now."""
        return self.store.tell(self.note_in, task, facts)

    def note_in(self, connection: sa.Connection, task: Task, facts: Mapping[str, Any]) -> bool:
        """The same in the caller's transaction."""
        task.arguments.update(facts)
        return rows.update(connection, task, {'arguments': task.arguments})

    def is_mine(self, task: Task) -> bool:
        """Whether nobody took the task over from whoever claimed it as it is here."""
        return self.store.ask(rows.is_claimed, task)

    def wake(self) -> None:
        """Tell a worker of this process that there may be something to do; if there is, it tells the next one."""
        with self.waiting:
            self.generation += 1
            self.waiting.notify()

    def wake_all(self) -> None:
        """Let all workers of this process look."""
        with self.waiting:
            self.generation += 1
            self.waiting.notify_all()

    def wait(self, generation: int, seconds: float) -> None:
        """Until `wake` was called after *generation* was read, something is due, or the time is over."""
        with self.waiting:
            now = self.clock()
            while self.due and self.due[0] < now:
                heapq.heappop(self.due)
            if self.due:
                # A lease counts to its last microsecond.
                seconds = min(seconds, (self.due[0] - now).total_seconds() + 0.001)
            self.waiting.wait_for(lambda: self.generation != generation, seconds)

    def claim(self) -> Task | None:
        """One task that is due, now this worker's; None when there is none."""
        for look in itertools.count(1):
            patient = look >= PATIENT_LOOK
            # Threads that look at the same time find the same. Who waits for somebody else keeps none of them waiting.
            with nullcontext() if patient else self.looking:
                now = self.clock()
                candidates = self.store.ask(rows.due, now)
                if not candidates:
                    break
                if len(candidates) > 1:
                    # There may be more than one thread has time for.
                    self.wake()
                with self.store.write() as connection:
                    # Other processes look, too, and who waited for one of them would be told that it is taken.
                    task_id = rows.choose(connection, candidates, now, wait=patient)
                    if task_id is not None and (
                        task := rows.claim(connection, task_id, self.owner, now, now + self.lease_time)
                    ):
                        return task
            if task_id is None:
                time.sleep(PAUSE_SECONDS)
        return None

    def renew(self, task_ids: Collection[int]) -> None:
        """Keep these tasks, which the workers of this process are doing."""
        if task_ids:
            self.store.tell(rows.renew, task_ids, self.owner, self.clock() + self.lease_time)

    def expect_dead(self) -> None:
        """Let the workers look at once when a lease runs out that its owner has not renewed when it should have."""
        due = self.store.ask(rows.next_lapse, self.clock() + self.lease_time / 2)
        if due is not None:
            self._expect(due)
            self.wake()

    def give_up(self, task: Task, facts: Mapping[str, Any]) -> bool:
        """Take a task from whoever is at it and leave it to the next, who must know these facts; False when another
        one has it already."""
        left = {'owner': NOBODY, 'lease_until': rows.LONG_AGO, 'arguments': {**task.arguments, **facts}}
        return self.store.tell(rows.update, task, left)

    def done(self, connection: sa.Connection, task: Task) -> bool:
        """Remove the task; False when another worker took it over."""
        return rows.delete(connection, task)

    def put_off(self, task: Task, seconds: float) -> None:
        """Release a task that is to be taken up again after a while; those of the server that follow wait, too."""
        self.store.tell(rows.update, task, self._until(task, seconds))

    def put_back(self, task: Task, seconds: float) -> None:
        """The same for one that waits for the driver, which is none of its attempts."""
        task.arguments[WAITS] = task.arguments.get(WAITS, 0) + 1
        if not self.store.tell(rows.put_back, task, self._until(task, seconds)):
            self.put_off(task, 0)

    def _until(self, task: Task, seconds: float) -> dict[str, Any]:
        due = self.clock() + timedelta(seconds=seconds)
        self._expect(due)
        return {'owner': NOBODY, 'lease_until': due, 'arguments': task.arguments}

    def _expect(self, due: datetime) -> None:
        with self.waiting:
            heapq.heappush(self.due, due)
            # Whoever waits already would wait for longer.
            self.wake()

    def hasten(self, connection: sa.Connection, server_id: str) -> None:
        """Let what waits look at once what becomes of the server: it was asked for something else."""
        if rows.hasten(connection, server_id, NOBODY, self.clock()):
            wakeups.tell(connection)

    def hasten_all(self) -> None:
        """Let all that waits look at once: something that it may wait for is no more."""
        with self.store.write() as connection:
            for server_id in rows.held_servers(connection):
                self.hasten(connection, server_id)
        self.wake()

    def remove(self, connection: sa.Connection, work: Doable, server_id: str) -> list[int]:
        """Forget work on a server, though a worker may be at it; the actions that it was for."""
        return rows.remove(connection, work.kind, server_id)

    def cancel(self, connection: sa.Connection, server_id: str) -> None:
        """Forget what waits for its time: the server has gone another way."""
        rows.cancel(connection, server_id)

    def release_all(self) -> None:
        """Take the work of every other worker over at once; only for a store that no other process uses."""
        self.store.tell(rows.release_all)

    def idle(self) -> bool:
        """Whether there is nothing left that is due."""
        return self.store.ask(rows.is_empty, self.clock())


def tries(task: Task) -> int:
    """How often somebody began with it who did not just wait."""
    return task.attempts - int(task.arguments.get(WAITS, 0))


def thawed(facts: Mapping[str, Any]) -> Context:
    """The caller that a task was queued for."""
    return Context(**{**facts, 'roles': frozenset(facts.get('roles', ()))})
