"""`computeapi consoleproxy`: a process that connects clients to the consoles of servers, by their tokens."""

import asyncio
import logging
from contextlib import ExitStack, closing

from oslo_config import cfg

from computeapi import log
from computeapi.backends import registry
from computeapi.compute.consoles import Consoles
from computeapi.consoles import listeners
from computeapi.consoles.proxy import ConsoleProxy
from computeapi.db.engine import store_of
from computeapi.shutdown import ShutdownSignals

LOG = logging.getLogger(__name__)


def run(conf: cfg.ConfigOpts) -> None:
    """Serve until SIGTERM or SIGINT; OSError if an address is not available, cfg.Error without console types."""
    log.start(conf)
    tls = listeners.tls(conf)
    with ExitStack() as stack:
        opened = listeners.open_listeners(conf, stack)
        if not opened:
            raise cfg.ConfigFileValueError(
                'Servers have no consoles: none of [vnc], [serial_console], [spice] is enabled'
            )
        store = stack.enter_context(closing(store_of(conf)))
        images = registry.maker(registry.IMAGE, conf.image.backend)(conf, store)
        hypervisor = registry.maker(registry.HYPERVISOR, conf.hypervisor.backend)(conf, store, images)
        consoles = Consoles(store, conf, hypervisor)
        shutdown = ShutdownSignals()
        for listener in opened:
            LOG.info('Consoles of type %s are at %s port %d', listener.kind, *listener.socket.getsockname()[:2])
        # Event loops restore the signal handlers at their end, when a second signal would kill the process.
        asyncio.run(ConsoleProxy(consoles, conf).run(opened, tls, asyncio.to_thread(shutdown.wait)))
