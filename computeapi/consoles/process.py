"""`computeapi consoleproxy`: a process that lets clients to the consoles of servers, wherever their tokens lead."""

import asyncio
import logging
import signal
from contextlib import ExitStack, closing
from ssl import SSLContext

from oslo_config import cfg

from computeapi import log
from computeapi.backends import registry
from computeapi.compute.consoles import Consoles
from computeapi.consoles import doors
from computeapi.consoles.proxy import ConsoleProxy
from computeapi.db.engine import store_of

LOG = logging.getLogger(__name__)


def run(conf: cfg.ConfigOpts) -> None:
    """Let in until SIGTERM or SIGINT; OSError when an address cannot be had, cfg.Error without anything to do."""
    log.start(conf)
    tls = doors.tls(conf)
    with ExitStack() as stack:
        opened = doors.opened(conf, stack)
        if not opened:
            raise cfg.ConfigFileValueError(
                'Servers have no consoles: none of [vnc], [serial_console], [spice] is enabled'
            )
        store = stack.enter_context(closing(store_of(conf)))
        images = registry.maker(registry.IMAGE, conf.image.backend)(conf, store)
        hypervisor = registry.maker(registry.HYPERVISOR, conf.hypervisor.backend)(conf, store, images)
        consoles = Consoles(store, conf, hypervisor, store.clock)
        for door in opened:
            LOG.info('Consoles of type %s are at %s port %d', door.kind, *door.socket.getsockname()[:2])
        asyncio.run(_until_told(ConsoleProxy(consoles, conf), opened, tls))


async def _until_told(proxy: ConsoleProxy, opened: list[doors.OpenDoor], tls: SSLContext | None) -> None:
    stop = asyncio.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, stop.set)
    await proxy.run(opened, tls, stop.wait())
