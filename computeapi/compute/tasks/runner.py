"""Runs the function of a task, and handles its failure."""

import logging
from collections.abc import Callable, Iterable
from datetime import datetime

from computeapi.compute.platform import Platform
from computeapi.compute.tasks.fence import BEGUN, OVERTAKEN, Fence
from computeapi.compute.tasks.job import FAULT, Job
from computeapi.compute.tasks.queue import PREPARING, thawed, tries
from computeapi.compute.tasks.transition import Transition
from computeapi.context import Context
from computeapi.db import actions, servers
from computeapi.db.servers import Server
from computeapi.db.tasks import Task
from computeapi.errors import DatabaseError, Error, NeighbourAway, Unavailable
from computeapi.states import VMState

LOG = logging.getLogger(__name__)
MAX_ATTEMPTS = 10
# How often work starts over at once because something else changed the server.
MAX_LOOKS = 3
# Errors that are not a fault of the work: it is retried.
TRANSIENT_ERRORS = (Unavailable, DatabaseError)
# The argument of a task whose failure clients already see: what it created is released as soon as possible.
SETTLING = 'settling'


class Abandoned(Error):
    """Something it needed did not come back in time."""


class TooLong(Error):
    text = 'The task did not end within {seconds:g} s.'


class Runner:
    """Runs tasks: a Worker calls `runner(task)`. An exception means that the task is to be retried.

    overtaken: follows work that another worker has taken over meanwhile.
    settle: the transition that follows when work failed because a neighbour was away for long; it makes the server and
    its neighbours consistent.
    """

    def __init__(
        self,
        platform: Platform,
        transitions: Iterable[Transition],
        overtaken: Callable[[Platform, Context, Server], None] = lambda platform, context, server: None,
        settle: Transition | None = None,
    ):
        """TypeError for a transition without a function, and for two of one kind."""
        self.platform, self.overtaken, self.settle = platform, overtaken, settle
        self.transitions: dict[str, Transition] = {}
        for each in transitions:
            if each.function is None or each.kind in self.transitions:
                raise TypeError(f'There must be one function that does {each.kind}')
            self.transitions[each.kind] = each

    def __call__(self, task: Task) -> None:
        transition = self.transitions[task.kind]
        seen = None
        for _ in range(MAX_LOOKS):
            server = self.server_of(task)
            if server is None or not is_due(transition, task, server):
                return self.drop(transition, task, server)
            before, seen = seen, (server.vm_state, server.task_state, server.host)
            if seen == before:
                # The server has not changed: the work was not meant for a server in this state.
                return self.drop(transition, task, server)
            try:
                return self.run(transition, task, server)
            except OVERTAKEN:
                # The server has changed since it was read, or another worker has the task.
                if not self.platform.tasks.is_mine(task):
                    return self.overtaken(self.platform, thawed(task.context), server)
        raise Unavailable('The server kept changing in the meantime.')

    def run(self, transition: Transition, task: Task, server: Server) -> None:
        job = Job(task, server, self.platform)
        begun = self.platform.clock()
        if SETTLING in task.arguments:
            return self.fail(transition, job, Error(task.arguments[FAULT]['message']))
        try:
            check_failure(task)
            self.check_time(task, begun)
            self.call(transition, job)
        except (*OVERTAKEN, *TRANSIENT_ERRORS):
            raise
        except Exception as error:
            # A refusal by the cloud is no bug, and needs no traceback.
            bug = None if isinstance(error, Error) else error
            how = (task.kind, task.server_id, self.age(task, begun), reason_of(error))
            LOG.log(
                logging.ERROR if bug else logging.WARNING, '%s of server %s failed after %.3f s: %s', *how, exc_info=bug
            )
            self.fail(transition, job, error)
        else:
            LOG.info('%s of server %s is done after %.3f s', task.kind, task.server_id, self.age(task, begun))

    def call(self, transition: Transition, job: Job) -> None:
        """Call the function. A neighbour that is away for longer than the time limit is an error like any other."""
        assert transition.function is not None
        try:
            transition.function(job)
        except NeighbourAway as away:
            seconds = self.platform.conf.neighbour_timeout
            if transition.patient or job.fence.passed(str(away)) < seconds:
                raise
            raise Abandoned(f'{away} Gave up after {seconds} s.') from away

    def check_time(self, task: Task, begun: datetime) -> None:
        """TooLong for a task that has waited for the driver for as long as allowed."""
        if self.age(task, begun) > self.platform.conf.task_timeout:
            raise TooLong(seconds=self.platform.conf.task_timeout)

    def age(self, task: Task, begun: datetime) -> float:
        """The seconds that the work has taken, including the waits before the current run."""
        steps = map(datetime.fromisoformat, task.arguments.get(BEGUN, {}).values())
        return (self.platform.clock() - min([begun, *steps])).total_seconds()

    def server_of(self, task: Task) -> Server | None:
        return self.platform.store.query(servers.get, task.server_id)

    def fail(self, transition: Transition, job: Job, error: Exception) -> None:
        """Handle a failure. It is recorded before anything is released, because failed work does not start again."""
        if not transition.beside and not self.note_failure(job, error):
            return
        try:
            transition.failed(job, error)
        except NeighbourAway:
            self.show_failure(transition, job, error)
            raise
        except (*OVERTAKEN, *TRANSIENT_ERRORS):
            raise
        except Exception:
            LOG.exception('Server %s: the changes of %s could not be rolled back', job.task.server_id, transition.name)
            job.fail(error, vm_state=VMState.ERROR)

    def note_failure(self, job: Job, error: Exception) -> bool:
        """Record the fault. If a neighbour was away, also queue the task that cleans up afterwards. Returns False if
        another worker has the task."""
        tasks = self.platform.tasks
        with self.platform.store.write() as connection:
            if FAULT not in job.arguments and isinstance(error, Abandoned) and self.settle is not None:
                tasks.add(connection, self.settle, job.task.server_id, job.elevated)
            return tasks.note_in(connection, job.task, {FAULT: job.arguments.get(FAULT) or job.fault(error)})

    def show_failure(self, transition: Transition, job: Job, error: Exception) -> None:
        """Let clients see the failure, although what was created cannot be released before a neighbour is back."""
        fault = job.arguments.get(FAULT) or job.fault(error)
        if not self.platform.tasks.note(job.task, {FAULT: fault, SETTLING: True}):
            return
        if transition.beside or job.server.task_state is None:
            return
        with self.platform.store.write() as connection:
            state = {} if transition.harmless else {'vm_state': VMState.ERROR}
            job.write(connection, task_state=None, fault=fault, **state)
            if job.task.action_id is not None:
                actions.finish(connection, job.task.action_id, job.clock(), 'Error')

    def drop(self, transition: Transition, task: Task, server: Server | None) -> None:
        """End the task; only what was created for it is taken back, unless another worker has it now."""
        if not self.platform.tasks.is_mine(task):
            return
        LOG.info('%s of server %s is dropped: another task has superseded it', task.kind, task.server_id)
        try:
            self.undo(transition, task, server)
        except OVERTAKEN:
            return
        with self.platform.store.write() as connection:
            if self.platform.tasks.done(connection, task) and task.action_id is not None:
                actions.finish(connection, task.action_id, self.platform.clock(), None if server is None else 'Error')

    def undo(self, transition: Transition, task: Task, server: Server | None) -> None:
        """Take back what was created for the work. If that keeps failing, it is left to the audit, because all other
        requests about the server wait for this task."""
        if transition.undo is None:
            return
        try:
            transition.undo(Fence(self.platform, task).platform, task, server)
        except (*OVERTAKEN, *TRANSIENT_ERRORS):
            raise
        except Exception:
            if tries(task) <= MAX_ATTEMPTS:
                raise
            LOG.exception(
                'Server %s: the resources created for %s were not cleaned up', task.server_id, transition.name
            )


def is_due(transition: Transition, task: Task, server: Server) -> bool:
    """Whether the server is still in a state for the task: in the transition, or, after a failure, in no other one. A
    task whose request was refused is not due, although an equal request may have begun the same transition."""
    if transition.beside:
        return True
    if PREPARING in task.arguments:
        return False
    return server.task_state in ({None} if SETTLING in task.arguments else transition.doing)


def reason_of(error: Exception) -> str:
    """The error in one line; for the database, its own message without the statement."""
    return str(getattr(error, 'reason', None) or getattr(error, 'orig', None) or error) or type(error).__name__


def check_failure(task: Task) -> None:
    """Raise an error for a task that failed before, or that used up its attempts."""
    if FAULT in task.arguments:
        raise Error(task.arguments[FAULT]['message'])
    if tries(task) > MAX_ATTEMPTS:
        raise Error(f'Gave up after {MAX_ATTEMPTS} attempts.')
