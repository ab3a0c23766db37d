"""The heartbeat with which a process of the service shows the others that it is alive."""

import os
from datetime import datetime, timedelta

import sqlalchemy as sa

from computeapi.compute.tasks.queue import Tasks
from computeapi.db import processes, services
from computeapi.db.processes import Process

# How long the row of a dead process is kept, so that its death can be seen.
REMEMBERED = timedelta(hours=1)


class Heartbeat:
    """The row of this process: it exists from `begin` to `end`, and is updated by each `beat`.

    host: the name of its machine among the control services.  workers: how many tasks it runs at a time.
    """

    def __init__(self, tasks: Tasks, binary: str, host: str, workers: int):
        self.tasks, self.binary, self.host, self.workers = tasks, binary, host, workers
        self.started_at: datetime | None = None

    def begin(self, *, alone: bool = False) -> None:
        """Register this process. `alone`: all others are dead."""
        now = self.started_at = self.tasks.clock()
        self.tasks.store.change(processes.forget, now if alone else now - REMEMBERED)
        self.beat()

    def beat(self) -> None:
        now = self.tasks.clock()
        process = Process(
            id=self.tasks.owner,
            binary=self.binary,
            host=self.host,
            pid=os.getpid(),
            workers=self.workers,
            started_at=self.started_at or now,
            seen_at=now,
        )
        self.tasks.store.change(processes.is_seen, process)

    def is_first(self) -> bool:
        """Whether this is the oldest live process with workers; it does the work that one process does for all."""
        alive = self.tasks.store.query(processes.working_since, self._still_alive())
        return alive[:1] == [self.tasks.owner]

    def end(self) -> None:
        """Unregister; the last process with workers on its machine also unregisters the control services there."""
        self.tasks.store.change(self._end)

    def _end(self, connection: sa.Connection) -> None:
        processes.is_gone(connection, self.tasks.owner)
        if self.workers and not processes.works_since(connection, self.host, self._still_alive()):
            services.control_is_gone(connection, self.host)

    def _still_alive(self) -> datetime:
        """Processes seen since this time are alive."""
        return self.tasks.clock() - self.tasks.lease_time
