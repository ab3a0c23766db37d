"""`computeapi worker`: a process that runs tasks and answers no requests."""

from collections.abc import Iterator
from contextlib import contextmanager

from oslo_config import cfg

from computeapi import log
from computeapi.db.engine import store_of
from computeapi.listening import listening_at
from computeapi.main import Service
from computeapi.observers.app import metrics_app
from computeapi.serve.http.server import HTTPServer
from computeapi.shutdown import ShutdownSignals
from computeapi.startup import Startup

# The threads that renew leases and report hosts use the database, too.
BESIDE_WORKERS = 2


def run(conf: cfg.ConfigOpts) -> None:
    """Work until SIGTERM or SIGINT; tasks in progress are finished first."""
    log.start(conf)
    pool_size = max(conf.database.max_pool_size, conf.workers + BESIDE_WORKERS)
    service = Service(conf, store_of(conf, pool_size=pool_size), binary='computeapi-worker')
    startup = Startup(service)
    shutdown = ShutdownSignals()
    with telling_metrics(service):
        startup.start()
        shutdown.wait()
        startup.stop()
    if service.bus is not None or service.platform.notifications.are_on:
        from computeapi.bus import leave

        leave()


@contextmanager
def telling_metrics(service: Service) -> Iterator[None]:
    """Serve metrics at [metrics]worker_port, if it is set, for the duration of the block. Raises OSError if the address
    is not available."""
    options = service.conf.metrics
    if service.metrics is None or options.worker_port is None:
        yield
        return
    with listening_at(options.worker_host, options.worker_port, '[metrics]worker_port') as listening:
        app = metrics_app(service.metrics, service.conf)
        with HTTPServer(app, [listening], service.conf.standalone, threads=1).in_background():
            yield
