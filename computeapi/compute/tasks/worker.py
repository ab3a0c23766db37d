"""The threads that do tasks: from a task to the function that does it, and what follows when it does not."""

import logging
import threading
from collections.abc import Callable, Iterable
from datetime import datetime

from computeapi.backends.hypervisor import NotYet
from computeapi.compute.platform import Platform
from computeapi.compute.tasks.job import BEGUN, FAULT, Job, Superseded, at_work
from computeapi.compute.tasks.queue import Tasks, thawed, tries
from computeapi.compute.tasks.transition import Transition
from computeapi.context import acting_for
from computeapi.db import actions
from computeapi.db import servers as rows
from computeapi.db.servers import Server
from computeapi.db.tasks import Task
from computeapi.errors import DatabaseTrouble, Error, Unavailable
from computeapi.states import VMState

LOG = logging.getLogger(__name__)
MOST_ATTEMPTS = 10
# What is no fault of the work: it is tried again.
TROUBLE = (Unavailable, DatabaseTrouble)


class Worker:
    """Threads that do the tasks of a store: `run(task)` for each, until `stop`.

    beat: says that this process lives; called three times in the time of a lease, also where there are no threads.
    """

    def __init__(
        self,
        tasks: Tasks,
        run: Callable[[Task], None],
        threads: int,
        sweep_seconds: float,
        beat: Callable[[], None] = lambda: None,
    ):
        self.tasks, self.run, self.sweep_seconds, self.beat = tasks, run, sweep_seconds, beat
        self.stopping, self.stopped = threading.Event(), threading.Event()
        self.threads = [threading.Thread(target=self.work, name=f'worker-{n}', daemon=True) for n in range(threads)]
        self.keeper = threading.Thread(target=self.keep, name='worker-lease', daemon=True)

    def start(self) -> None:
        for thread in (*self.threads, self.keeper):
            thread.start()

    def stop(self) -> None:
        """Finish what is under way, which stays this process's until then, and return."""
        self.stopping.set()
        self.tasks.wake()
        for thread in self.threads:
            thread.join()
        self.stopped.set()
        self.keeper.join()

    def work(self) -> None:
        while not self.stopping.is_set():
            generation = self.tasks.generation
            try:
                if not self.step():
                    self.tasks.wait(generation, self.sweep_seconds)
            except DatabaseTrouble:
                # The store has said so in the log.
                self.stopping.wait(self.sweep_seconds)
            except Exception:
                LOG.exception('The database could not be asked for work; trying again in %g s', self.sweep_seconds)
                self.stopping.wait(self.sweep_seconds)

    def step(self) -> bool:
        """Do one task; whether there was one."""
        task = self.tasks.claim()
        if task is None:
            return False
        self.tasks.running.add(task.id)
        try:
            with acting_for(thawed(task.context)):
                self.do(task)
        finally:
            self.tasks.running.discard(task.id)
            self.tasks.wake()
        return True

    def do(self, task: Task) -> None:
        if task.taken_from:
            LOG.warning(
                '%s of server %s is taken over from a worker that is gone (attempt %d)',
                *(task.kind, task.server_id, tries(task)),
            )
        try:
            self.run(task)
        except NotYet as wait:
            self.tasks.put_back(task, wait.seconds)
        except Exception as error:
            LOG.error(
                '%s of server %s is tried again in %g s (attempt %d failed): %s',
                *(task.kind, task.server_id, self.sweep_seconds, tries(task), reason_of(error)),
                exc_info=None if isinstance(error, TROUBLE) else error,
            )
            self.tasks.put_off(task, self.sweep_seconds)

    def keep(self) -> None:
        while not self.stopped.wait(self.tasks.lease_time.total_seconds() / 3):
            try:
                self.tasks.renew()
                self.tasks.expect_dead()
                self.beat()
            except DatabaseTrouble:
                pass
            except Exception:
                LOG.exception('The leases on tasks could not be renewed')


class Runner:
    """Does tasks: `runner(task)` is what a Worker calls. What it raises is trouble: the task is to be tried again."""

    def __init__(self, platform: Platform, transitions: Iterable[Transition]):
        """TypeError for a transition that nothing does, and for two of one kind."""
        self.platform = platform
        self.transitions: dict[str, Transition] = {}
        for each in transitions:
            if each.function is None or each.kind in self.transitions:
                raise TypeError(f'There must be one function that does {each.kind}')
            self.transitions[each.kind] = each

    def __call__(self, task: Task) -> None:
        transition = self.transitions[task.kind]
        try:
            self.run(transition, task)
        except Superseded:
            self.drop(transition, task)

    def run(self, transition: Transition, task: Task) -> None:
        server = self.server_of(task)
        if server is None or not (transition.beside or server.task_state in transition.doing):
            raise Superseded()
        job = Job(task, server, at_work(self.platform, task))
        assert transition.function is not None
        begun = self.platform.clock()
        try:
            check_failure(task)
            transition.function(job)
        except (Superseded, *TROUBLE):
            raise
        except Exception as error:
            # What the cloud refuses is no bug, and needs no traceback.
            bug = None if isinstance(error, Error) else error
            how = (task.kind, task.server_id, self.age(task, begun), reason_of(error))
            LOG.log(
                logging.ERROR if bug else logging.WARNING, '%s of server %s failed after %.3f s: %s', *how, exc_info=bug
            )
            self.fail(transition, job, error)
        else:
            LOG.info('%s of server %s is done after %.3f s', task.kind, task.server_id, self.age(task, begun))

    def age(self, task: Task, begun: datetime) -> float:
        """How many seconds the work has taken, with those for which it waited before it was begun this time."""
        steps = map(datetime.fromisoformat, task.arguments.get(BEGUN, {}).values())
        return (self.platform.clock() - min([begun, *steps])).total_seconds()

    def server_of(self, task: Task) -> Server | None:
        return self.platform.store.ask(rows.get, task.server_id)

    def fail(self, transition: Transition, job: Job, error: Exception) -> None:
        """Once it has failed it does not begin again: that is noted before anything is given back."""
        if not transition.beside and not self.platform.tasks.note(job.task, {FAULT: job.fault(error)}):
            return
        try:
            transition.failed(job, error)
        except (Superseded, *TROUBLE):
            raise
        except Exception:
            LOG.exception('Server %s: what %s had done could not be undone', job.task.server_id, transition.name)
            job.fail(error, vm_state=VMState.ERROR)

    def drop(self, transition: Transition, task: Task) -> None:
        """There is nothing left to do, unless it is another worker's to do now."""
        if not self.platform.tasks.is_mine(task):
            return
        LOG.info('%s of server %s is dropped: the server has gone another way', task.kind, task.server_id)
        server = self.server_of(task)
        if transition.undo is not None:
            transition.undo(at_work(self.platform, task), task, server)
        with self.platform.store.write() as connection:
            if self.platform.tasks.done(connection, task) and task.action_id is not None:
                actions.finish(connection, task.action_id, self.platform.clock(), None if server is None else 'Error')


def reason_of(error: Exception) -> str:
    """What went wrong, in a line; of the database its own words, without the statement."""
    return str(getattr(error, 'reason', None) or getattr(error, 'orig', None) or error) or type(error).__name__


def check_failure(task: Task) -> None:
    """An error for a task that failed before, or that nobody ever came to the end of."""
    if FAULT in task.arguments:
        raise Error(task.arguments[FAULT]['message'])
    if tries(task) > MOST_ATTEMPTS:
        raise Error(f'Gave up after {MOST_ATTEMPTS} attempts.')
