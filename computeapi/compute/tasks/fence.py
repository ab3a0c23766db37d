"""What keeps a worker that was taken for dead from doing harm when it wakes up.

It works on a platform of its own: each change in the store holds only while the task is still its own, the driver
refuses it once it has heard of a later claim, and no other service is asked for anything without a look at the claim.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar, cast

import sqlalchemy as sa

from computeapi.backends.hypervisor import Outdated
from computeapi.backends.hypervisor.behaviour import at_once
from computeapi.compute.platform import Platform
from computeapi.db import tasks as rows
from computeapi.db.clock import elapsed
from computeapi.db.tasks import Task

# The argument of a task that had to wait: when it came to each step first.
BEGUN = 'begun'

T = TypeVar('T')


class Superseded(BaseException):
    """The task is another worker's, or the server is no longer what it was for: deleted, or its state was reset.

    No error, which a job could take back something for.
    """


OVERTAKEN = (Superseded, Outdated)
"""What ends work without a trace: it is another's now, or about what is so no more."""


class Fence:
    """Around one task in the hands of a worker, who is on `platform`, and can wait for the driver or not.

    settle: writes down what others must find before another service is asked for anything.
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
            images=self.before(platform.images),
            networks=self.before(platform.networks),
            volumes=self.before(platform.volumes),
            shares=self.before(platform.shares),
        )

    def check(self, connection: sa.Connection) -> None:
        """Superseded unless the task is still this worker's, or this worker came to its end. It is asked last: who
        changes a server locks its row first and its task's then."""
        if connection is self.closing:
            self.closed = True
        elif not self.closed and not rows.hold(connection, self.task):
            raise Superseded()
        self.looked = elapsed()

    def close(self, connection: sa.Connection) -> None:
        """Remove the task."""
        if not self.outside.tasks.done(connection, self.task):
            raise Superseded()
        self.closing = connection

    def before(self, neighbour: T) -> T:
        """The same service, asked for nothing on behalf of a task that is another worker's now."""
        return cast(T, Before(neighbour, self.look))

    def look(self) -> None:
        """Superseded when another worker has taken over. A lease that was seen just now has not run out yet."""
        self.settle()
        if not self.closed and elapsed() - self.looked > self.outside.tasks.lease_time.total_seconds() / 4:
            if not self.outside.tasks.is_mine(self.task):
                raise Superseded()
            self.looked = elapsed()

    def passed(self, step: str) -> float:
        """How many seconds ago the task came to this step first."""
        begun, now = self.task.arguments.get(BEGUN, {}), self.outside.clock()
        if step in begun:
            return (now - datetime.fromisoformat(begun[step])).total_seconds()
        if not self.outside.tasks.note(self.task, {BEGUN: begun | {step: now.isoformat()}}):
            raise Superseded()
        return 0


class Before:
    """Something that is looked before at each use of it."""

    def __init__(self, thing: Any, look: Any):
        self._thing, self._look = thing, look

    def __getattr__(self, name: str) -> Any:
        self._look()
        return getattr(self._thing, name)
