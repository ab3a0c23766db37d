"""The threads that do tasks."""

from __future__ import annotations

import logging
import threading
import traceback
from collections.abc import Callable

from computeapi.backends.hypervisor import Interrupted
from computeapi.compute.tasks.queue import Tasks
from computeapi.db.tasks import Task

LOG = logging.getLogger(__name__)


class Worker:
    """Threads that do the tasks of a store: `run(task)` for each, until `stop`."""

    def __init__(self, tasks: Tasks, run: Callable[[Task], None], threads: int, sweep_seconds: float):
        self.tasks, self.run, self.sweep_seconds = tasks, run, sweep_seconds
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self.work, name=f'worker-{n}', daemon=True) for n in range(threads)]
        self.threads.append(threading.Thread(target=self.keep, name='worker-lease', daemon=True))

    def start(self) -> None:
        for thread in self.threads:
            thread.start()

    def stop(self) -> None:
        """Finish what is under way and return."""
        self.stopping.set()
        self.tasks.wake()
        for thread in self.threads:
            thread.join()

    def work(self) -> None:
        while not self.stopping.is_set():
            generation = self.tasks.generation
            try:
                if not self.step():
                    self.tasks.wait(generation, self.sweep_seconds)
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
            self.do(task)
        finally:
            self.tasks.running.discard(task.id)
            self.tasks.wake()
        return True

    def do(self, task: Task) -> None:
        try:
            self.run(task)
        except Interrupted:
            self.tasks.put_off(task, 0)
        except Exception:
            LOG.error(
                '%s of server %s is tried again in %g s (attempt %d failed): %s',
                *(task.kind, task.server_id, self.sweep_seconds, task.attempts, traceback.format_exc()),
            )
            self.tasks.put_off(task, self.sweep_seconds)

    def keep(self) -> None:
        while not self.stopping.wait(self.tasks.lease_time.total_seconds() / 3):
            try:
                self.tasks.renew()
            except Exception:
                LOG.exception('The leases on tasks could not be renewed')
