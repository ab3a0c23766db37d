"""From a task to the function that does it, and what follows when it does not."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

import sqlalchemy as sa

from computeapi.clock import utcnow
from computeapi.compute import states
from computeapi.compute.tasks import Task
from computeapi.compute.work.job import FAULT, WORK, Job, Superseded, Work
from computeapi.db import actions
from computeapi.db import servers as rows
from computeapi.db.servers import Server
from computeapi.errors import Error, Unavailable

if TYPE_CHECKING:
    from computeapi.compute.cloud import Cloud

LOG = logging.getLogger(__name__)
MOST_ATTEMPTS = 10
# What is no fault of the work: it is tried again.
TROUBLE = (Unavailable, sa.exc.OperationalError, sa.exc.InterfaceError, sa.exc.TimeoutError)


class Runner:
    """Does tasks: `runner(task)` is what a Worker calls. What it raises is trouble: the task is to be tried again."""

    def __init__(self, cloud: Cloud, clock: Callable[[], datetime] = utcnow):
        self.cloud, self.clock = cloud, clock

    def __call__(self, task: Task) -> None:
        work = WORK[task.kind]
        try:
            self.run(work, task)
        except Superseded:
            self.drop(work, task)

    def run(self, work: Work, task: Task) -> None:
        server = self.server_of(task)
        if server is None or work.during is not None and server.task_state not in work.during:
            raise Superseded()
        job = Job(task, server, self.cloud, self.clock)
        try:
            check_failure(task)
            work.function(job)
        except (Superseded, *TROUBLE):
            raise
        except Exception as error:
            LOG.warning('%s of server %s failed', task.kind, task.server_id, exc_info=error)
            self.fail(work, job, error)

    def server_of(self, task: Task) -> Server | None:
        with self.cloud.store.read() as connection:
            return rows.get(connection, task.server_id)

    def fail(self, work: Work, job: Job, error: Exception) -> None:
        """Once it has failed it does not begin again: that is noted before anything is given back."""
        if work.during is not None and not self.cloud.tasks.note(job.task, {FAULT: job.fault(error)}):
            return
        try:
            work.failed(job, error)
        except (Superseded, *TROUBLE):
            raise
        except Exception:
            LOG.exception('What %s of server %s did could not be undone', job.task.kind, job.task.server_id)
            job.fail(error, vm_state=states.ERROR)

    def drop(self, work: Work, task: Task) -> None:
        """There is nothing left to do, unless it is another worker's to do now."""
        if not self.cloud.tasks.holds(task):
            return
        server = self.server_of(task)
        if work.undo is not None:
            work.undo(self.cloud, task, server)
        with self.cloud.store.write() as connection:
            if self.cloud.tasks.done(connection, task) and task.action_id is not None:
                actions.finish(connection, task.action_id, self.clock(), None if server is None else 'Error')


def check_failure(task: Task) -> None:
    """An error for a task that failed before, or that nobody ever came to the end of."""
    if FAULT in task.arguments:
        raise Error(task.arguments[FAULT]['message'])
    if task.attempts > MOST_ATTEMPTS:
        raise Error(f'Gave up after {MOST_ATTEMPTS} attempts.')
