"""The threads in which the app works."""

import queue
import threading
import time
from collections.abc import Callable

Job = Callable[[], None]


class Threads:
    """So many threads that do what is given to them, in turn. Jobs raise nothing."""

    def __init__(self, name: str, number: int):
        self.jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        # Daemons, because one that does not end must not keep the process from ending.
        self.threads = [
            threading.Thread(target=self._work, name=f'{name}-{number}', daemon=True) for number in range(number)
        ]
        for thread in self.threads:
            thread.start()

    def run(self, job: Job) -> None:
        self.jobs.put(job)

    def stop(self, seconds: float) -> None:
        """End after the jobs that were given so far, or when the seconds are over."""
        until = time.monotonic() + seconds
        for _ in self.threads:
            self.jobs.put(None)
        for thread in self.threads:
            thread.join(max(0, until - time.monotonic()))

    def _work(self) -> None:
        while (job := self.jobs.get()) is not None:
            job()
