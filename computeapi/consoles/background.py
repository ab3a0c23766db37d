"""The console proxy in a thread of a process with other work."""

import asyncio
import selectors
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from computeapi.consoles.listeners import ConsoleListener, tls

if TYPE_CHECKING:
    from oslo_config import cfg

    from computeapi.compute.consoles import Consoles


@contextmanager
def accepting_clients(
    listeners: Sequence[ConsoleListener], consoles: Callable[[], 'Consoles'], conf: 'cfg.ConfigOpts'
) -> Iterator[None]:
    """Accept clients at the listeners within the block; the proxy is loaded when the first one connects."""
    context, (ending, end) = tls(conf), socket.socketpair()

    def work() -> None:
        if not _client_connected(listeners, ending):
            return
        from computeapi.consoles.proxy import ConsoleProxy

        async def run() -> None:
            # The other end is closed at the end of the block.
            stop = asyncio.get_running_loop().sock_recv(ending, 1)
            await ConsoleProxy(consoles(), conf).run(listeners, context, stop)

        ending.setblocking(False)
        asyncio.run(run())

    thread = threading.Thread(target=work, name='consoles', daemon=True)
    thread.start()
    try:
        yield
    finally:
        end.close()
        thread.join()
        ending.close()


def _client_connected(listeners: Sequence[ConsoleListener], ending: socket.socket) -> bool:
    """Whether a client connected before the end."""
    with selectors.DefaultSelector() as selector:
        for each in (ending, *(listener.socket for listener in listeners)):
            selector.register(each, selectors.EVENT_READ)
        return all(key.fileobj is not ending for key, _ in selector.select())
