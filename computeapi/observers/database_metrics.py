"""Metrics from the database, about the whole cloud.

The queue is examined when metrics are requested, at most once in a few seconds. Servers and hosts are counted at most
every `count_interval`, by one process for all, in a thread that requests only wait for briefly. The last count and its
age are reported.
"""

import platform
import threading
import time
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import prometheus_client
import sqlalchemy as sa
from oslo_config import cfg
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector, CollectorRegistry

from computeapi import __version__
from computeapi.backends import registry
from computeapi.compute.notifications.outbox import formats_of
from computeapi.compute.quotas import Quotas
from computeapi.db import counts, notifications, placement_changes, tasks
from computeapi.db.engine import Store
from computeapi.errors import DatabaseError
from computeapi.observers.families import FROM_DATABASE

KEPT_SECONDS = 5.0
TIMEOUT_SECONDS = 2.0
NEARLY_FULL = 0.9
"""The part of a quota from which on it is reported as full."""

Value = float | Mapping[str, float]
"""The value of a metric, or of each value of its label."""


class DatabaseMetrics:
    """Queries the database, as rarely as possible."""

    def __init__(self, conf: cfg.ConfigOpts, store: Store):
        self.conf, self.store, self.bus = conf, store, registry.bus_of(conf)
        self.lock = threading.Lock()
        self.text, self.until = b'', 0.0

    def exposition(self) -> bytes:
        """The metrics in the format of Prometheus. One request at a time queries the database, and the result is
        cached."""
        with self.lock:
            if time.monotonic() >= self.until:
                registry = CollectorRegistry()
                registry.register(DatabaseCollector(self.found()))
                self.text = prometheus_client.generate_latest(registry)
                self.until = time.monotonic() + KEPT_SECONDS
            return self.text

    def found(self) -> dict[str, Value]:
        """Values by metric; only that the database is down if it is unreachable or lacks tables of this release."""
        try:
            return {'database_up': 1, **self.broker(), **self.queue(), **self.last_count()}
        except (DatabaseError, sa.exc.DBAPIError):
            return {'database_up': 0, **self.broker()}

    def broker(self) -> dict[str, Value]:
        """Whether this process can reach the broker, if there is one."""
        return {} if self.bus is None else {'broker_up': int(self.bus.obstacle(TIMEOUT_SECONDS) is None)}

    def queue(self) -> dict[str, Value]:
        now = self.store.clock()
        number, oldest = self.store.query(tasks.load, now)
        living = self.store.query(counts.processes_by_binary, now - timedelta(seconds=self.conf.task_lease))
        found: dict[str, Value] = {
            'tasks': number,
            'oldest_task_seconds': 0 if oldest is None else max(0.0, (now - oldest).total_seconds()),
            'processes': living,
        }
        if self.conf.placement.enabled:
            found['placement_changes'] = self.store.query(placement_changes.waiting)
        if formats_of(self.conf):
            found['notifications_waiting'] = self.store.query(notifications.waiting)
        return found

    def last_count(self) -> dict[str, Value]:
        now, last = self.store.clock(), self.store.query(counts.get)
        if last is None or last.due_at <= now:
            counting = threading.Thread(target=self.count, args=[now], name='count', daemon=True)
            counting.start()
            counting.join(TIMEOUT_SECONDS)
            last = self.store.query(counts.get)
        if last is None or last.contents is None or last.counted_at is None:
            return {}
        return {**last.contents, 'count_age_seconds': max(0.0, (self.store.clock() - last.counted_at).total_seconds())}

    def count(self, now: datetime) -> None:
        """Count everything, if it is the turn of this process. The store logs errors."""
        try:
            if self.store.query(counts.get) is None:
                self.store.change(counts.begin, now)
            if not self.store.change(counts.take_turn, now, now + timedelta(seconds=self.conf.metrics.count_interval)):
                return
            limits = Quotas(self.store, self.conf).class_limits()
            quotas = self.store.query(counts.quotas_by_resource, limits, NEARLY_FULL)
            contents: dict[str, Any] = {
                **{f'quota_{name}': amounts for name, amounts in quotas.items()},
                'servers': self.store.query(counts.servers_by_state),
                'hosts': self.store.query(counts.hosts_by_state, now - timedelta(seconds=self.conf.service_down_time)),
            }
            self.store.change(counts.put, contents, self.store.clock())
        except DatabaseError:
            return


class DatabaseCollector(Collector):
    """The metrics in FROM_DATABASE whose values are known."""

    def __init__(self, found: Mapping[str, Value]):
        self.values = found

    def collect(self) -> Iterator[GaugeMetricFamily]:
        build = GaugeMetricFamily(
            'computeapi_build_info', FROM_DATABASE['computeapi_build_info'].help, labels=['version', 'python']
        )
        build.add_metric([__version__, platform.python_version()], 1)
        yield build
        for name, family in FROM_DATABASE.items():
            value = self.values.get(name.removeprefix('computeapi_'))
            if value is not None:
                yield _gauge(name, family.help, family.labels, value)


def _gauge(name: str, text: str, labels: tuple[str, ...], value: Value) -> GaugeMetricFamily:
    if not isinstance(value, Mapping):
        return GaugeMetricFamily(name, text, value)
    made = GaugeMetricFamily(name, text, labels=labels)
    for label, number in value.items():
        made.add_metric([label], number)
    return made
