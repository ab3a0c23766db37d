"""One task in the hands of a worker."""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import sqlalchemy as sa

from computeapi.backends.hypervisor import Hypervisor, Interrupted
from computeapi.compute import states
from computeapi.compute.tasks import Task, thawed
from computeapi.db import actions
from computeapi.db import servers as rows
from computeapi.db.servers import BlockDevice, Server, is_volume_backed
from computeapi.errors import Error

if TYPE_CHECKING:
    from computeapi.compute.cloud import Cloud

LONGEST_MESSAGE = 255
# The argument of a task that failed: what becomes of the server is not settled yet.
FAULT = 'fault'


class Superseded(Exception):
    """The server is no longer what this task was for: it was deleted, or its state was reset."""


class Job:
    """A task, its server, and what is needed to do it."""

    def __init__(self, task: Task, server: Server, cloud: Cloud, clock: Callable[[], datetime]):
        self.task, self.server, self.cloud, self.clock = task, server, cloud, clock
        self.arguments = task.arguments
        self.context = thawed(task.context)
        # What compute does for a server on its owner's behalf does not depend on the owner's roles.
        self.elevated = self.context.elevated()
        self.driver: Hypervisor = cloud.hypervisor
        self.store = cloud.store

    @contextmanager
    def event(self, name: str, host: str | None = None) -> Iterator[None]:
        """Record a step of the action, with how it went."""
        action_id = self.task.action_id
        if action_id is None:
            yield
            return
        with self.store.write() as connection:
            event_id = actions.start_event(connection, action_id, name, host or self.server.host, self.clock())
        try:
            yield
        except Interrupted:
            # Whoever goes on with the task goes on with the event.
            raise
        except BaseException as error:
            with self.store.write() as connection:
                actions.finish_event(
                    connection,
                    event_id,
                    self.clock(),
                    result='Error',
                    traceback=''.join(traceback.format_tb(error.__traceback__)),
                    details=message_of(error),
                    host=host or self.server.host,
                )
            raise
        with self.store.write() as connection:
            actions.finish_event(connection, event_id, self.clock(), host=host or self.server.host)

    def save(self, **values: Any) -> None:
        """Change the server, unless its task_state is no longer the one this job left it in: Superseded."""
        with self.store.write() as connection:
            self.write(connection, **values)

    def write(self, connection: sa.Connection, **values: Any) -> None:
        expected = self.server.task_state
        values.setdefault('updated_at', self.clock())
        if not rows.change(connection, self.server.uuid, values, task_states=(expected,)):
            raise Superseded()
        for name, value in values.items():
            setattr(self.server, name, value)

    def finish(self, **values: Any) -> None:
        """The outcome: change the server (task_state to None), close the action, remove the task."""
        with self.store.write() as connection:
            self.conclude(connection, **values)

    def conclude(self, connection: sa.Connection, **values: Any) -> None:
        self.write(connection, **({'task_state': None} | values))
        self.close(connection)

    def close(self, connection: sa.Connection, message: str | None = None) -> None:
        """Close the action and remove the task, whatever becomes of the server; Superseded if it is another's now."""
        if not self.cloud.tasks.done(connection, self.task):
            raise Superseded()
        if self.task.action_id is not None:
            actions.finish(connection, self.task.action_id, self.clock(), message)

    def fail(self, error: BaseException, **values: Any) -> None:
        """Record the error as the server's fault; *values* are what becomes of the server."""
        fault = self.arguments.get(FAULT) or self.fault(error)
        with self.store.write() as connection:
            self.write(connection, **({'fault': fault, 'task_state': None} | values))
            self.close(connection, 'Error')

    def fault(self, error: BaseException) -> dict[str, Any]:
        """The error as clients see it."""
        return {
            'code': 500,
            'message': message_of(error),
            'details': ''.join(traceback.format_exception(error)),
            'created': self.clock().isoformat(),
        }

    def power(self) -> int:
        """The power state of the server's machine."""
        found = None if self.server.host is None else self.driver.power_state(self.server)
        return states.NOSTATE if found is None else int(found)

    @functools.cached_property
    def on_volume(self) -> bool:
        """Whether the server's root disk is a volume."""
        return is_volume_backed(self.server, self.devices())

    def devices(self) -> list[BlockDevice]:
        """The server's disks, in the order in which they were attached."""
        with self.store.read() as connection:
            return rows.block_devices_of(connection, [self.server.uuid])


def message_of(error: BaseException) -> str:
    """What clients may read: the text of a domain error, no more than the class of any other."""
    text = str(error) if isinstance(error, Error) else type(error).__name__
    return text[:LONGEST_MESSAGE]


class Work(NamedTuple):
    """What does a kind of task.

    during: the task_states in which the server may be when it begins (None: any).
    failed: what becomes of the server when the function raises an error.
    undo: takes back what the request made for this task, when nobody will do it: the server is gone (None) or is
    doing something else.
    """

    function: Callable[[Job], None]
    during: frozenset[str | None] | None
    failed: Callable[[Job, Exception], None]
    undo: Callable[[Cloud, Task, Server | None], None] | None


WORK: dict[str, Work] = {}


def into_error(job: Job, error: Exception) -> None:
    """The server is in ERROR, and clients read why."""
    job.fail(error, vm_state=states.ERROR, power_state=job.power())


def unchanged(job: Job, error: Exception) -> None:
    """The server is what it was before."""
    job.fail(error, power_state=job.power())


def abandon(job: Job, error: Exception) -> None:
    """The server has nothing to do with it."""
    with job.store.write() as connection:
        job.close(connection, 'Error')


def work(
    kind: str,
    *during: str | None,
    failed: Callable[[Job, Exception], None] = into_error,
    undo: Callable[[Cloud, Task, Server | None], None] | None = None,
) -> Callable[[Callable[[Job], None]], Callable[[Job], None]]:
    """Note that this function does the tasks of *kind*, while the server is in one of these task_states.

    In another one somebody has overtaken the task (the server is being deleted, its state was reset): it is dropped.
    """

    def note(function: Callable[[Job], None]) -> Callable[[Job], None]:
        WORK[kind] = Work(function, frozenset(during), failed, undo)
        return function

    return note


def aside(
    kind: str, undo: Callable[[Cloud, Task, Server | None], None] | None = None
) -> Callable[[Callable[[Job], None]], Callable[[Job], None]]:
    """Note that this function does the tasks of *kind* beside whatever the server is doing.

    It leaves the states of the server alone and ends with `job.close`; when it fails, that is no fault of the server.
    """

    def note(function: Callable[[Job], None]) -> Callable[[Job], None]:
        WORK[kind] = Work(function, None, abandon, undo)
        return function

    return note
