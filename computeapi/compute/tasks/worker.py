"""The threads that run tasks."""

import logging
import math
import threading
from collections.abc import Callable

from computeapi.backends.hypervisor import NotYet
from computeapi.compute.periodic import Periodic
from computeapi.compute.tasks.job import FAULT, fault_of
from computeapi.compute.tasks.queue import Tasks, thawed, tries
from computeapi.compute.tasks.runner import TRANSIENT_ERRORS, TooLong, reason_of
from computeapi.context import acting_for
from computeapi.db.clock import elapsed
from computeapi.db.tasks import Task
from computeapi.db.wakeups import Listener
from computeapi.errors import DatabaseError, NeighbourAway
from computeapi.gate import Gate

LOG = logging.getLogger(__name__)
HEAD_START_SECONDS = 0.003
"""The seconds, for each of its tasks in progress, by which a process delays its search for work that all processes were
notified of."""


class Worker:
    """Threads that run the tasks of a store: `run(task)` for each, until `stop`.

    beat: sends the heartbeat of this process; called three times per lease, even without threads.
    timeout_seconds: a task that takes longer has failed; its thread is abandoned.
    """

    def __init__(
        self,
        tasks: Tasks,
        run: Callable[[Task], None],
        threads: int,
        sweep_seconds: float,
        beat: Callable[[], None] = lambda: None,
        timeout_seconds: float = math.inf,
    ):
        self.tasks, self.run, self.sweep_seconds, self.beat = tasks, run, sweep_seconds, beat
        self.timeout_seconds = timeout_seconds
        self.stopping = threading.Event()
        # Closed by code that needs all work to be paused.
        self.gate = Gate()
        self.threads = [self.thread() for _ in range(threads)]
        # The task of each thread, and since when.
        self.at: dict[threading.Thread, tuple[Task, float]] = {}
        self.listener = Listener(tasks.store, self.wake)
        # Started at once, and again when the connection is lost.
        listens, now = bool(threads) and self.listener.possible, threading.Event()
        now.set()
        self.listening = Periodic('worker-listener', self.listener.listen, sweep_seconds if listens else 0, now)
        self.keeper = Periodic('worker-lease', self.maintain, tasks.lease_time.total_seconds() / 3)

    def thread(self) -> threading.Thread:
        return threading.Thread(target=self.work, name='worker', daemon=True)

    def start(self) -> None:
        for thread in self.threads:
            thread.start()
        self.listening.start()
        self.keeper.start()

    def stop(self) -> None:
        """Finish the tasks in progress, which stay leased to this process until then, and return."""
        self.stopping.set()
        self.listener.stop()
        self.listening.stop()
        self.tasks.wake_all()
        for thread in self.threads:
            thread.join()
        self.keeper.stop()

    def wake(self) -> None:
        """Let a thread look for work that all processes were notified of. The least busy process is first, because
        processes that look at the same time get in each other's way."""
        self.stopping.wait(len(self.at) * HEAD_START_SECONDS)
        self.tasks.wake()

    def work(self) -> None:
        while not self.stopping.is_set() and threading.current_thread() in self.threads:
            generation = self.tasks.generation
            try:
                with self.gate.passing():
                    found = self.step()
                if not found:
                    self.tasks.wait(generation, self.sweep_seconds)
            except DatabaseError:
                # The store has already logged it.
                self.stopping.wait(self.sweep_seconds)
            except Exception:
                LOG.exception('The database could not be queried for tasks; retrying in %g s', self.sweep_seconds)
                self.stopping.wait(self.sweep_seconds)

    def step(self) -> bool:
        """Run one task; returns whether there was one."""
        task = self.tasks.claim()
        if task is None:
            return False
        thread = threading.current_thread()
        self.at[thread] = task, elapsed()
        try:
            with acting_for(thawed(task.context)):
                self.do(task)
        finally:
            self.at.pop(thread, None)
            if thread not in self.threads:
                # This thread does not look for further tasks.
                self.tasks.wake()
        return True

    def do(self, task: Task) -> None:
        if task.taken_from:
            LOG.warning(
                '%s of server %s is taken over from a worker that died (attempt %d)',
                *(task.kind, task.server_id, tries(task)),
            )
        try:
            self.run(task)
        except NotYet as wait:
            self.tasks.put_back(task, wait.seconds)
        except NeighbourAway as away:
            LOG.warning('%s of server %s waits: %s', task.kind, task.server_id, away)
            self.tasks.put_back(task, self.sweep_seconds)
        except Exception as error:
            LOG.error(
                '%s of server %s is retried in %g s (attempt %d failed): %s',
                *(task.kind, task.server_id, self.sweep_seconds, tries(task), reason_of(error)),
                exc_info=None if isinstance(error, TRANSIENT_ERRORS) else error,
            )
            self.tasks.put_off(task, self.sweep_seconds)

    def maintain(self) -> None:
        """Renew the leases of the tasks in progress, and handle tasks of dead processes and hung threads."""
        self.tasks.renew([task.id for task, _ in [*self.at.values()]])
        self.leave_hung()
        self.tasks.expect_dead()
        self.beat()

    def leave_hung(self) -> None:
        """Fail tasks that exceed the time limit, and replace the threads that do not return from them."""
        for thread, (task, since) in [*self.at.items()]:
            if elapsed() - since < self.timeout_seconds:
                continue
            error = TooLong(seconds=self.timeout_seconds)
            LOG.error('%s of server %s is abandoned, together with its thread: %s', task.kind, task.server_id, error)
            self.tasks.give_up(task, {FAULT: fault_of(error, self.tasks.clock())})
            self.tasks.wake()
            if self.at.get(thread) != (task, since):
                # It has returned meanwhile, and is idle or has another task.
                continue
            self.at.pop(thread, None)
            if thread in self.threads:
                self.threads[self.threads.index(thread)] = another = self.thread()
                another.start()
