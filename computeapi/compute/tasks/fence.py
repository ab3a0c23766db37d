"""Fencing: keeps a worker that was presumed dead from doing harm when it resumes.

It works on a platform of its own: changes in the store hold only while the task is still its own, the driver refuses
it once it has seen a later claim, and the claim is checked before each call to another service.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar, cast

import sqlalchemy as sa

from computeapi.backends.hypervisor import Outdated
from computeapi.backends.hypervisor.behaviour import at_once
from computeapi.compute.platform import Platform
from computeapi.db import tasks
from computeapi.db.clock import elapsed
from computeapi.db.tasks import Task

# The argument of a task that had to wait: the time at which it first reached each step.
BEGUN = 'begun'

T = TypeVar('T')


class Superseded(BaseException):
    """The task belongs to another worker, or the server has changed: it is deleted, or its state was reset.

    Not an Error, so that a job does not clean up after it.
    """


OVERTAKEN = (Superseded, Outdated)
"""These end work without a trace: another worker has the task, or its premises no longer hold."""


class Fence:
    """Protects one task in the hands of a worker, with its own `platform`.

    waits: whether the worker can wait for the driver.
    settle: writes what others must find before another service is called.
    """

    def __init__(
        self, platform: Platform, task: Task, *, waits: bool = True, settle: Callable[[], None] = lambda: None
    ):
        self.task, self.outside, self.settle = task, platform, settle
        self.looked = elapsed()
        self.closing: sa.Connection | None = None
        self.closed = False
        store = platform.store.checked(self.check)
        self.platform = replace(
            platform,
            store=store,
            scheduler=platform.scheduler.on(store),
            hypervisor=platform.hypervisor.during(self.passed if waits else at_once, task.token, task.id),
            images=self.checked(platform.images),
            networks=self.checked(platform.networks),
            volumes=self.checked(platform.volumes),
            shares=self.checked(platform.shares),
        )

    def check(self, connection: sa.Connection) -> None:
        """Superseded unless the task is still this worker's, or this worker has finished it. It is the last check:
        changes of a server lock its row first, and the row of the task afterwards."""
        if connection is self.closing:
            self.closed = True
        elif not self.closed and not tasks.hold(connection, self.task):
            raise Superseded()
        self.looked = elapsed()

    def close(self, connection: sa.Connection) -> None:
        """Remove the task."""
        if not self.outside.tasks.done(connection, self.task):
            raise Superseded()
        self.closing = connection

    def checked(self, neighbour: T) -> T:
        """The same service, which is not called for a task that belongs to another worker by now."""
        return cast(T, CheckedProxy(neighbour, self.look))

    def look(self) -> None:
        """Superseded if another worker has taken over. The claim is looked up at most once per quarter of the lease."""
        self.settle()
        if not self.closed and elapsed() - self.looked > self.outside.tasks.lease_time.total_seconds() / 4:
            if not self.outside.tasks.is_mine(self.task):
                raise Superseded()
            self.looked = elapsed()

    def passed(self, step: str) -> float:
        """The seconds since the task first reached this step."""
        begun, now = self.task.arguments.get(BEGUN, {}), self.outside.clock()
        if step in begun:
            return (now - datetime.fromisoformat(begun[step])).total_seconds()
        if not self.outside.tasks.note(self.task, {BEGUN: begun | {step: now.isoformat()}}):
            raise Superseded()
        return 0


class CheckedProxy:
    """A proxy that calls a check before each use of the object."""

    def __init__(self, thing: Any, look: Any):
        self._thing, self._look = thing, look

    def __getattr__(self, name: str) -> Any:
        self._look()
        return getattr(self._thing, name)
