"""One task in the hands of a worker, and how it ends."""

import functools
import operator
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from computeapi.backends.hypervisor import Hypervisor, NotYet, PowerState
from computeapi.compute.hosts import is_host_up
from computeapi.compute.notifications.actions import ActionNotices
from computeapi.compute.notifications.subject import States
from computeapi.compute.platform import Platform
from computeapi.compute.tasks.fence import OVERTAKEN, Fence, Superseded
from computeapi.compute.tasks.queue import thawed
from computeapi.context import STEPS
from computeapi.db import actions, block_devices, servers
from computeapi.db.servers import BlockDevice, Server, is_volume_backed
from computeapi.db.tasks import Task
from computeapi.errors import DatabaseError, Error
from computeapi.states import VMState


class UnwrittenStep(NamedTuple):
    """A change of the server, with its states before the change."""

    vm_state: str
    task_state: str | None
    values: dict[str, Any]


MAX_MESSAGE_LENGTH = 255
# The argument of a task that failed: the fault, while the outcome for the server is not settled yet.
FAULT = 'fault'
# Arguments of a task: the events without rows that it has begun, and those of them that are over.
BEGUN_EVENTS, ENDED_EVENTS = 'begun_events', 'ended_events'


@dataclass
class BegunEvent:
    """A step of an action. host: where it happens, if stated; where: the host as known when it begins.

    is_listed: whether clients can list it.  id: of its row; 0 without one.
    """

    name: str
    host: str | None
    where: str | None
    begun_at: datetime
    is_listed: bool
    id: int = 0
    is_over: bool = False


class Job:
    """A task, its server, and what is needed to run it.

    Work as the caller uses `context`; work that compute does on the owner's behalf, whatever the owner's roles, uses
    `elevated`.
    """

    def __init__(self, task: Task, server: Server, platform: Platform, *, waits: bool = True):
        """waits: whether the job can be resumed when the driver raises NotYet; else the driver never does so."""
        self.task, self.server, self.fence = task, server, Fence(platform, task, waits=waits, settle=self.settle)
        self.platform = platform = self.fence.platform
        self.arguments = task.arguments
        self.context = thawed(task.context)
        self.elevated = self.context.elevated()
        self.store, self.clock = platform.store, platform.clock
        self.notices = ActionNotices(platform.notifications, task.server_id, self.context, task.arguments)
        # The events in progress, by name.
        self.open: dict[str, BegunEvent] = {}
        # Changes that are not written yet.
        self.unwritten: list[UnwrittenStep] = []
        self.beginning: list[BegunEvent] = []
        # The names of the events that this job has begun.
        self.begun_events: set[str] = set()
        # Unlisted events of earlier attempts.
        self.begun_before, self.ended_before = (
            frozenset(self.arguments.get(name, ())) for name in (BEGUN_EVENTS, ENDED_EVENTS)
        )

    @property
    def driver(self) -> Hypervisor:
        """The hypervisor of the server; it is not called before pending changes are written."""
        self.settle()
        return self.platform.hypervisor

    @contextmanager
    def event(self, name: str, host: str | None = None, *, soon: bool = False, listed: bool = True) -> Iterator[None]:
        """Record a step of the action, with its result, and notify others of it.

        soon: write its beginning together with the next change.  listed: whether clients can list it, if the work is an
        action at all.
        """
        listed = listed and self.task.action_id is not None
        if not listed and not self.platform.notifications.are_on:
            yield
            return
        event = BegunEvent(name, host, host or self.server.host, self.clock(), listed)
        if soon:
            self.beginning.append(event)
        else:
            self.store.change(self._begin, event)
            self._open(event)
        try:
            with STEPS.get()(name):
                yield
        except (NotYet, DatabaseError, *OVERTAKEN):
            # The worker that continues the task continues the event.
            raise
        except BaseException as error:
            with self.store.write() as connection:
                self._write(connection, [])
                self.open.pop(event.name, None)
                self._fail_event(connection, event, error)
            raise
        if event in self.beginning:
            self.settle()
        if event.name in self.open and not self.fence.closed:
            # The event was not ended together with the job.
            self.store.change(self._finish_event, event)
            del self.open[event.name]

    def _begin(self, connection: sa.Connection, event: BegunEvent) -> None:
        # In the first attempt, no events can exist that would have to be continued.
        new = self.task.attempts == 1 and event.name not in self.begun_events
        self.begun_events.add(event.name)
        if event.is_listed:
            facts = (self.task.action_id or 0, event.name, event.where, event.begun_at)
            event.id, new, event.is_over = actions.start_event(connection, *facts, new=new)
        else:
            new, event.is_over = event.name not in self.begun_before, event.name in self.ended_before
            self.platform.tasks.note_in(connection, self.task, {BEGUN_EVENTS: [*self.begun_before | self.begun_events]})
        self.notices.begun(connection, event.name, event.where, new=new)

    def _open(self, event: BegunEvent) -> None:
        if not event.is_over:
            self.open[event.name] = event

    def _finish_event(self, connection: sa.Connection, event: BegunEvent) -> None:
        if event.is_listed:
            actions.finish_event(connection, event.id, self.clock(), host=event.host or self.server.host)
        else:
            ended = [*self.arguments.get(ENDED_EVENTS, ()), event.name]
            self.platform.tasks.note_in(connection, self.task, {ENDED_EVENTS: ended})
        self.notices.ended(connection, event.name)

    def _fail_event(self, connection: sa.Connection, event: BegunEvent, error: BaseException) -> None:
        if event.is_listed:
            actions.finish_event(
                connection,
                event.id,
                self.clock(),
                result='Error',
                traceback=''.join(traceback.format_tb(error.__traceback__)),
                details=message_of(error),
                host=event.host or self.server.host,
            )
        self.notices.failed(connection, event.name, error)

    def save(self, **values: Any) -> None:
        """Change the server, unless its task_state is no longer the one this job left it in: Superseded."""
        with self.store.write() as connection:
            self.write(connection, **values)

    def later(self, **values: Any) -> None:
        """Like `save`, but written together with the next change, and before any other service is called: for a step
        that creates nothing elsewhere, or nothing that cannot be found again. The driver is not called before it is
        written."""
        self.unwritten.append(self._step(values))
        self._show(values)

    def settle(self) -> None:
        """Write the pending changes."""
        if self.unwritten or self.beginning:
            with self.store.write() as connection:
                self._write(connection, [])

    def write(self, connection: sa.Connection, **values: Any) -> None:
        self._write(connection, [self._step(values)])
        self._show(values)

    def _step(self, values: dict[str, Any]) -> UnwrittenStep:
        values.setdefault('updated_at', self.clock())
        return UnwrittenStep(self.server.vm_state, self.server.task_state, values)

    def _write(self, connection: sa.Connection, more: list[UnwrittenStep]) -> None:
        for vm_state, task_state, values in self._changes([*self.unwritten, *more]):
            # If the vm_state is known, the counted usage need not be read.
            vm_states = (vm_state,) if 'vm_state' in values and task_state else None
            if not servers.change(connection, self.server.uuid, values, vm_states=vm_states, task_states=(task_state,)):
                raise Superseded()
            after = States(values.get('vm_state', vm_state), values.get('task_state', task_state))
            self.notices.moved_on(connection, States(vm_state, task_state), after)
        for event in self.beginning:
            self._begin(connection, event)
            self._open(event)
        self.unwritten.clear()
        self.beginning.clear()

    def _changes(self, steps: list[UnwrittenStep]) -> list[UnwrittenStep]:
        """Merge all steps into one, because the states between them are not visible; followers get each step."""
        if len(steps) < 2 or self.store.followed():
            return steps
        values = functools.reduce(operator.or_, (step.values for step in steps))
        return [steps[0]._replace(values=values)]

    def _show(self, values: dict[str, Any]) -> None:
        for name, value in values.items():
            setattr(self.server, name, value)

    def finish(self, **values: Any) -> None:
        """Write the outcome: change the server (task_state to None), close the action, remove the task."""
        with self.store.write() as connection:
            self.conclude(connection, **values)

    def conclude(self, connection: sa.Connection, **values: Any) -> None:
        self.write(connection, **({'task_state': None} | values))
        self.close(connection)

    def close(self, connection: sa.Connection, message: str | None = None) -> None:
        """Close the action and remove the task, whatever the server's state; Superseded if another worker has it."""
        self.fence.close(connection)
        # They stay open here, because a transaction that ran into a conflict is repeated.
        events = [*self.open.values()]
        last = events.pop() if events and message is None else None
        for event in events:
            self._finish_event(connection, event)
        if self.task.action_id is not None:
            where = (last.id, last.host or self.server.host) if last is not None and last.is_listed else None
            actions.finish(connection, self.task.action_id, self.clock(), message, where=where)
        if message is None:
            if last is not None:
                self.notices.ended(connection, last.name)
            self.notices.all_ended(connection)

    def end(self, message: str | None = None) -> None:
        """`close`, in a transaction of its own: for work that leaves the states of the server alone."""
        self.store.change(self.close, message)

    def fail(self, error: BaseException, **values: Any) -> None:
        """Record the error as the server's fault; *values* are further changes of the server."""
        fault = self.arguments.get(FAULT) or self.fault(error)
        with self.store.write() as connection:
            self.write(connection, **({'fault': fault, 'task_state': None} | values))
            self.close(connection, 'Error')
            self.notices.all_failed(connection, error)

    def fault(self, error: BaseException) -> dict[str, Any]:
        """The error as clients see it."""
        return fault_of(error, self.clock())

    def power(self) -> PowerState:
        """The power state of the machine; the last known one if its host is down and cannot be asked."""
        if self.server.host is None:
            return PowerState.NOSTATE
        if not is_host_up(self.platform, self.server.host):
            return PowerState(self.server.power_state)
        found = self.driver.power_state(self.server)
        return PowerState.NOSTATE if found is None else found

    @functools.cached_property
    def on_volume(self) -> bool:
        """Whether the server's root disk is a volume."""
        return is_volume_backed(self.server, self.first_devices)

    @functools.cached_property
    def first_devices(self) -> list[BlockDevice]:
        """The server's disks as they were on first access, and as this job changes them."""
        return self.devices()

    def devices(self) -> list[BlockDevice]:
        """The server's disks, in the order in which they were attached."""
        return self.store.query(block_devices.of_servers, [self.server.uuid])


def fault_of(error: BaseException, now: datetime) -> dict[str, Any]:
    """The error as clients see it."""
    details = ''.join(traceback.format_exception(error))
    return {'code': 500, 'message': message_of(error), 'details': details, 'created': now.isoformat()}


def message_of(error: BaseException) -> str:
    """A message that clients may read: the text of a domain error, or only the class of any other."""
    text = str(error) if isinstance(error, Error) else type(error).__name__
    return text[:MAX_MESSAGE_LENGTH]


# ------------------------------------------------------------------ the server after a failed job


def into_error(job: Job, error: Exception) -> None:
    """The server is in ERROR, and clients can read the fault."""
    job.fail(error, vm_state=VMState.ERROR, power_state=job.power())


def unchanged(job: Job, error: Exception) -> None:
    """The server keeps its previous state."""
    job.fail(error, power_state=job.power())


def abandon(job: Job, error: Exception) -> None:
    """The server is not affected."""
    job.end('Error')
