"""Whether the service can do its work now, for probes of `/readyz` and for `computeapi status`."""

import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from wsgiref.types import StartResponse, WSGIEnvironment

import orjson
from oslo_config import cfg

from computeapi.db import processes, schema
from computeapi.db.engine import Store
from computeapi.errors import DatabaseError

KEPT_SECONDS = 1.0
# A slower database is unusable, and probes do not wait longer.
MAX_SECONDS = 5.0


@dataclass(frozen=True)
class Condition:
    """The state of one thing, in words that anybody may read."""

    ok: bool
    why: str


UNKNOWN = Condition(False, 'Unknown without the database.')
Conditions = dict[str, Condition]


class Readiness:
    """The conditions of a service, by name: its database, the tables, workers in any process, free disk space.

    frank: report database errors in words meant for operators only.
    """

    def __init__(self, conf: cfg.ConfigOpts, store: Store, *, frank: bool = False):
        self.conf, self.store, self.frank = conf, store, frank

    def check(self) -> Conditions:
        return {**self.of_database(), 'disk': self.of_disk()}

    def of_database(self) -> Conditions:
        try:
            found = schema.version(self.store)
            answers, obstacle = Condition(True, 'It responds.'), schema.obstacle(found)
            # Processes that started before an upgrade of the tables go on working; ones that start now answer nothing.
            if obstacle is not None and not schema.is_later(found):
                return {'database': answers, 'schema': Condition(False, obstacle), 'workers': UNKNOWN}
            current = Condition(True, f'The tables are at revision {found}.')
            return {'database': answers, 'schema': current, 'workers': self.of_workers()}
        except DatabaseError as error:
            why = error.reason if self.frank else str(error)
            return {'database': Condition(False, why), 'schema': UNKNOWN, 'workers': UNKNOWN}

    def of_workers(self) -> Condition:
        """The workers of all processes; each process with workers sends a heartbeat within the time of a lease."""
        seconds = self.conf.task_lease
        seen = self.store.query(processes.workers_since, self.store.clock() - timedelta(seconds=seconds))
        if seen:
            return Condition(True, f'{seen} are running.')
        return Condition(False, f'None was seen in the last {seconds} s: start `computeapi worker`.')

    def of_disk(self) -> Condition:
        wanted = self.conf.min_free_disk_mb
        free = min((shutil.disk_usage(folder).free // 2**20 for folder in self.folders()), default=None)
        if free is None:
            return Condition(True, 'Nothing is stored on this machine.')
        return Condition(free >= wanted, f'{free} MiB are free; [DEFAULT]min_free_disk_mb is {wanted}.')

    def folders(self) -> Iterator[Path]:
        """The directories on this machine that data is kept in; for one that does not exist yet, its nearest parent."""
        kept = []
        if self.conf.image.backend == 'local':
            kept.append(Path(self.conf.standalone.data_dir))
        if self.store.dialect == 'sqlite' and self.store.url.database:
            kept.append(Path(self.store.url.database).parent)
        for path in kept:
            yield next(each for each in (path.absolute(), *path.absolute().parents) if each.is_dir())


class RecentConditions:
    """The result of a check, at most a second old. However often it is called, it checks once at a time, in a thread
    that is not waited for if it takes too long."""

    def __init__(self, check: Callable[[], Conditions], clock: Callable[[], float] = time.monotonic):
        self.check, self.clock, self.lock = check, clock, threading.Lock()
        self.found: Future[Conditions] | None = None
        self.ended = 0.0

    def __call__(self) -> Conditions:
        with self.lock:
            if self.found is None or self.found.done() and self.clock() - self.ended > KEPT_SECONDS:
                self.found = Future()
                threading.Thread(target=self.look, args=[self.found], name='readiness', daemon=True).start()
            found = self.found
        try:
            return found.result(MAX_SECONDS)
        except TimeoutError:
            return {'database': Condition(False, f'No response for {MAX_SECONDS:g} s.')}

    def look(self, found: Future[Conditions]) -> None:
        try:
            conditions = self.check()
        except Exception as error:
            conditions = {'service': Condition(False, f'The check failed: {type(error).__name__}.')}
        self.ended = self.clock()
        found.set_result(conditions)


class ReadinessApp:
    """Answers 200 or 503, with every condition."""

    def __init__(self, check: Callable[[], Conditions]):
        self.check = RecentConditions(check)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        conditions = self.check()
        ready = is_ready(conditions)
        body = orjson.dumps({'ready': ready, 'checks': {name: asdict(each) for name, each in conditions.items()}})
        headers = {'Content-Type': 'application/json', 'Content-Length': str(len(body)), 'Cache-Control': 'no-store'}
        start_response('200 OK' if ready else '503 Service Unavailable', list(headers.items()))
        return [] if environ['REQUEST_METHOD'] == 'HEAD' else [body]


def is_ready(conditions: Conditions) -> bool:
    return all(each.ok for each in conditions.values())
