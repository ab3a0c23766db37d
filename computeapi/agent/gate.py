"""The gate to the consoles of this host: one port, on which a proxy first sends the secret word for a console."""

import logging
import secrets
import socket
import threading
import time
from typing import NamedTuple

from computeapi.backends.hypervisor import Console, Hypervisor
from computeapi.backends.hypervisor.remote.consoles import CLOSED, END, OPEN, PROTOCOLS, UNKNOWN, keep_alive
from computeapi.db.servers import Server
from computeapi.errors import Error, NotSupported
from computeapi.listening import listening_at

LOG = logging.getLogger(__name__)
WORD_SECONDS = 10.0
# How long a word is valid; a console that is open by then stays open.
VALID_SECONDS = 3600.0
MAX_WORDS = 4096
# Repeated requests for one console must not displace the words of others, nor use up memory: each holds its server.
MAX_WORDS_OF_ONE = 16
MAX_CONNECTIONS = 256
# How long the gate pauses if the machine has no resources for another connection.
REST_SECONDS = 0.5
MAX_WORD_LENGTH = 64
BLOCK = 65536


class ConsoleRoute(NamedTuple):
    """The route to a console, valid until then."""

    server: Server
    protocol: str
    console: Console
    until: float


class ConsoleGate:
    """The address of all consoles of a driver, for callers elsewhere.

    address, port: where it listens (port 0: any free one), and where proxies connect to.
    """

    def __init__(self, driver: Hypervisor, address: str, port: int):
        self.driver, self.address = driver, address
        self.routes, self.lock = dict[str, ConsoleRoute](), threading.Lock()
        self.places = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self.listener = listening_at(address, port, '[agent]console_port')
        self.port = self.listener.getsockname()[1]

    def start(self) -> None:
        threading.Thread(target=self._listen, name='console-gate', daemon=True).start()

    def close(self) -> None:
        self.listener.close()

    def guarded(self, server: Server, protocol: str, console: Console) -> Console:
        """The address of a console of the driver for proxies on other machines."""
        if protocol not in PROTOCOLS:
            return console
        word, now = secrets.token_hex(MAX_WORD_LENGTH // 2), time.monotonic()
        with self.lock:
            for old in [each for each, route in self.routes.items() if route.until < now]:
                del self.routes[old]
            own = [each for each, route in self.routes.items() if route.server.uuid == server.uuid]
            for old in own[: max(0, len(own) - MAX_WORDS_OF_ONE + 1)]:
                del self.routes[old]
            while len(self.routes) >= MAX_WORDS:
                del self.routes[next(iter(self.routes))]
            self.routes[word] = ConsoleRoute(server, protocol, console, now + VALID_SECONDS)
        return Console(self.address, self.port, internal_access_path=word)

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError as error:
                if self.listener.fileno() < 0:
                    # The gate was closed.
                    return
                LOG.warning('Connections to consoles cannot be accepted; retrying in %g s: %s', REST_SECONDS, error)
                time.sleep(REST_SECONDS)
                continue
            if self.places.acquire(blocking=False):
                self._begin(connection)
            else:
                connection.close()

    def _begin(self, connection: socket.socket) -> None:
        try:
            threading.Thread(target=self._admit, args=[connection], name='console', daemon=True).start()
        except RuntimeError as error:
            LOG.warning('A request for a console is rejected: %s', error)
            self.places.release()
            connection.close()

    def _admit(self, outside: socket.socket) -> None:
        try:
            with outside:
                keep_alive(outside)
                route = self._route(outside)
                if route is not None:
                    self._connect(outside, route)
        except OSError as error:
            LOG.info('A client of the console gate has disconnected: %s', error)
        finally:
            self.places.release()

    def _connect(self, outside: socket.socket, route: ConsoleRoute) -> None:
        """Connect the client and the console, until either side closes."""
        try:
            inside = self.driver.connect(route.server, route.protocol, route.console)
        except Error as error:
            LOG.info('A console of server %s was not opened: %s', route.server.uuid, error)
            outside.sendall(UNKNOWN if isinstance(error, NotSupported) else CLOSED)
            return
        with inside:
            outside.sendall(OPEN)
            outside.settimeout(None)
            back = threading.Thread(target=_pass_on, args=(inside, outside), name='console-back', daemon=True)
            back.start()
            _pass_on(outside, inside)
            back.join()

    def _route(self, outside: socket.socket) -> ConsoleRoute | None:
        """The route for the word that the other side sends first."""
        received, deadline = b'', time.monotonic() + WORD_SECONDS
        while not received.endswith(END):
            outside.settimeout(max(0.01, deadline - time.monotonic()))
            block = outside.recv(MAX_WORD_LENGTH + 1 - len(received))
            if not block:
                return None
            received += block
        with self.lock:
            route = self.routes.get(received.decode('ascii', 'replace').rstrip())
        return route if route is not None and route.until >= time.monotonic() else None


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    """Forward data until either side closes; then shut both down."""
    try:
        while block := source.recv(BLOCK):
            target.sendall(block)
    except OSError:
        pass
    for each in (source, target):
        try:
            each.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
