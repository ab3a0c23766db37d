"""`computeapi worker`: a process that runs tasks and answers no requests."""

from oslo_config import cfg

from computeapi import log
from computeapi.db.engine import store_of
from computeapi.ending import Ending
from computeapi.main import Service
from computeapi.observers.worker import told
from computeapi.startup import Startup

# The threads that renew leases and report hosts use the database, too.
BESIDE_WORKERS = 2


def run(conf: cfg.ConfigOpts) -> None:
    """Work until SIGTERM or SIGINT; tasks in progress are finished first."""
    log.start(conf)
    pool_size = max(conf.database.max_pool_size, conf.workers + BESIDE_WORKERS)
    service = Service(conf, store_of(conf, pool_size=pool_size), binary='computeapi-worker')
    startup = Startup(service)
    ending = Ending()
    with told(service):
        startup.start()
        ending.wait()
        startup.stop()
    if service.bus is not None:
        from computeapi.bus import leave

        leave()
