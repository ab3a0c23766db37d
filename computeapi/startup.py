"""Starts the work of a process as soon as its database is available, however long that takes."""

import itertools
import logging
import threading

from computeapi.compute.tasks.runner import TRANSIENT_ERRORS, reason_of
from computeapi.db import schema
from computeapi.main import Service

LOG = logging.getLogger(__name__)
RETRY_SECONDS = 1
# The log repeats what is being waited for after this many attempts.
ATTEMPTS_PER_LINE = 30
# A thread that hangs in the database must not keep the process from ending.
STOP_TIMEOUT_SECONDS = 10


class Startup:
    """Starts a service in a thread of its own; `stop` ends the service, or gives up waiting for the start."""

    def __init__(self, service: Service):
        self.service = service
        self.stopping, self.begun = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.run, name='startup', daemon=True)
        # Why requests cannot be answered either.
        self.obstacle: schema.WrongTables | None = None
        # Created here, so that errors in the configuration are reported at once.
        self.worker, self.publishers = service.worker, service.publishers if service.conf.workers else []

    def start(self) -> None:
        self.thread.start()

    def run(self) -> None:
        for attempt in itertools.count():
            if self.stopping.is_set():
                return
            try:
                self.begin()
                return
            except Exception as error:
                self.obstacle = error if isinstance(error, schema.WrongTables) else None
                if attempt % ATTEMPTS_PER_LINE == 0:
                    bug = None if isinstance(error, TRANSIENT_ERRORS) else error
                    LOG.warning('The workers are waiting for the database: %s', reason_of(error), exc_info=bug)
            self.stopping.wait(RETRY_SECONDS)

    def begin(self) -> None:
        schema.check(self.service.store)
        self.obstacle = None
        self.service.start()
        self.begun.set()
        LOG.info('%d workers have started', len(self.worker.threads))

    def stop(self) -> None:
        self.stopping.set()
        self.thread.join(STOP_TIMEOUT_SECONDS)
        if self.begun.is_set():
            self.service.stop()
        self.service.close()
