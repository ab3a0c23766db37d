"""`computeapi worker`: a process that does what requests leave to be done, and answers none itself."""

from oslo_config import cfg

from computeapi import log
from computeapi.db.engine import store_of
from computeapi.ending import Ending
from computeapi.main import Service
from computeapi.observers.worker import told
from computeapi.startup import Startup

# The threads that keep leases and hosts alive ask the database, too.
BESIDE_WORKERS = 2


def run(conf: cfg.ConfigOpts) -> None:
    """Work until SIGTERM or SIGINT; what is under way then is done first."""
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
