"""Counts what this process does, with prometheus_client."""

import functools
import os
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import prometheus_client
from oslo_config import cfg
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, values
from prometheus_client.multiprocess import MultiProcessCollector

from computeapi.backends.hypervisor import Hypervisor, NotYet
from computeapi.compute.periodic import Periodic
from computeapi.compute.tasks.job import FAULT
from computeapi.db.engine import Store
from computeapi.db.tasks import Task
from computeapi.errors import ConnectionLost, DatabaseError, Deadlock, Error, NeighbourAway
from computeapi.observers import Ask, Names, Work
from computeapi.observers.families import COUNTED, Family
from computeapi.observers.slots import Slot
from computeapi.versions import APIVersionRequest
from computeapi.web.filters import Environ, PasteFilter, WSGIApp
from computeapi.web.request import LEGACY_V2, OPERATION, VERSION

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
"""In seconds."""
SAMPLE_SECONDS = 5
NONE = 'none'
KINDS: dict[str, Callable[..., Any]] = {
    'counter': Counter,
    'gauge': functools.partial(Gauge, multiprocess_mode='livesum'),
    'histogram': functools.partial(Histogram, buckets=BUCKETS),
}
AWAY_STATUSES = frozenset({502, 503, 504})

Count = Callable[[float], None]
Key = tuple[int, APIVersionRequest | str, str]


class Metrics:
    """The metrics of this process or, if processes collect them in a directory, of all of them.

    Raises cfg.ConfigFileValueError for a directory that cannot be used.
    """

    def __init__(self, options: cfg.ConfigOpts.GroupAttr, store: Store):
        self.store = store
        self.slot = None if options.directory is None else _shared(Path(options.directory))
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self.families = {name: _made(name, family, self.registry) for name, family in COUNTED.items()}
        store.error_log.on_error = self.count_database_error
        self.sampler = Periodic('metrics', self.sample, SAMPLE_SECONDS)

    def exposition(self) -> bytes:
        """The metrics in the format of Prometheus."""
        self.sample()
        if self.slot is None:
            return prometheus_client.generate_latest(self.registry)
        self.slot.tidy()
        together = CollectorRegistry()
        MultiProcessCollector(together, str(self.slot.directory))  # type: ignore[no-untyped-call]
        return prometheus_client.generate_latest(together)

    def end(self) -> None:
        """Stop counting."""
        self.sampler.stop()
        if self.slot is not None:
            self.slot.leave()

    def sample(self) -> None:
        """Update gauges."""
        found, connections = self.store.connections(), self.families['computeapi_database_connections']
        connections.labels('in_use').set(found.in_use)
        connections.labels('idle').set(found.idle)
        self.families['computeapi_database_connections_kept'].set(found.kept)

    def count_database_error(self, error: DatabaseError) -> None:
        kinds = {Deadlock: 'deadlock', ConnectionLost: 'lost'}
        self.families['computeapi_database_errors_total'].labels(kinds.get(type(error), 'other')).inc()

    def requests(self, app: WSGIApp) -> WSGIApp:
        return CountedRequests(
            app, self.families['computeapi_requests_total'], self.families['computeapi_request_seconds']
        )

    def tasks(self, work: Work) -> Work:
        attempts, takeovers, seconds = (
            self.families[f'computeapi_task_{name}'] for name in ('attempts_total', 'takeovers_total', 'seconds')
        )

        def do(task: Task) -> None:
            if task.taken_from:
                takeovers.labels(task.kind).inc()
            began, outcome = time.perf_counter(), 'retried'
            try:
                work(task)
                outcome = 'failed' if FAULT in task.arguments else 'done'
            except (NotYet, NeighbourAway):
                outcome = 'waiting'
                raise
            finally:
                seconds.labels(task.kind).observe(time.perf_counter() - began)
                attempts.labels(task.kind, outcome).inc()

        return do

    def hypervisor(self, driver: Hypervisor) -> Hypervisor:
        """Not wrapped: the work of the hypervisor is counted as tasks."""
        return driver

    def neighbours(self, name_of: Names, ask: Ask) -> Ask:
        calls, seconds = (self.families[f'computeapi_neighbour_call{name}'] for name in ('s_total', '_seconds'))

        def count(name: str, began: float, status: int | None) -> None:
            seconds.labels(name).observe(time.perf_counter() - began)
            calls.labels(name, outcome_of(status)).inc()

        def ask_and_count(url: str, method: str, *args: Any, **kwargs: Any) -> Any:
            began, name = time.perf_counter(), name_of(url)
            try:
                answer = ask(url, method, *args, **kwargs)
            except Error:
                # The request was not sent: the one that logs in failed, and was counted.
                raise
            except Exception as error:
                count(name, began, getattr(error, 'http_status', None))
                raise
            count(name, began, answer.status_code)
            return answer

        return ask_and_count


class CountedRequests(PasteFilter):
    """metrics: counts requests and their duration."""

    def __init__(self, app: WSGIApp, requests: Counter, seconds: Histogram):
        super().__init__(app)
        self.total, self.seconds = requests, seconds
        # By operation, version and status, the counters of a request; there are few, as there are few labels.
        self.known: dict[Key, tuple[Callable[[], None], Count]] = {}

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        began, status = time.perf_counter(), '500'

        def start(line: str, headers: Any, exc_info: Any = None) -> Any:
            nonlocal status
            status = line[:3]
            return start_response(line, headers, exc_info)

        try:
            return self.app(environ, start)
        finally:
            key = id(environ.get(OPERATION)), version_of(environ), status
            count, observe = self.known.get(key) or self.know(environ, key)
            count()
            observe(time.perf_counter() - began)

    def know(self, environ: Environ, key: Key) -> tuple[Callable[[], None], Count]:
        operation, (_, version, status) = str(environ.get(OPERATION) or NONE), key
        found = self.known[key] = (
            self.total.labels(operation, str(version), status).inc,
            self.seconds.labels(operation).observe,
        )
        return found


def version_of(environ: Mapping[str, Any]) -> APIVersionRequest | str:
    """The negotiated version; that of /v2 is 2.0."""
    version = environ.get(VERSION)
    if isinstance(version, APIVersionRequest):
        return version
    return '2.0' if LEGACY_V2 in environ else NONE


def outcome_of(status: int | None) -> str:
    """The outcome of a request to a neighbour. status: None if there was no response."""
    if status is None or status in AWAY_STATUSES:
        return 'away'
    if status >= 500:
        return 'failed'
    return 'refused' if status >= 400 else 'ok'


def _shared(directory: Path) -> Slot:
    """A slot in the directory, in which all metrics of this process are kept from now on."""
    slot = Slot(directory)
    os.environ['PROMETHEUS_MULTIPROC_DIR'] = str(directory)
    kind = values.MultiProcessValue(process_identifier=lambda: slot.number)  # type: ignore[no-untyped-call]
    values.ValueClass = kind
    return slot


def _made(name: str, family: Family, registry: CollectorRegistry) -> Any:
    return KINDS[family.kind](name, family.help, family.labels, registry=registry)
