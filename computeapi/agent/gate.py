"""The gate to the consoles of this host: one port, on which a proxy says the word that it was given for a console."""

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
# A word opens the gate for as long; a console that is open by then stays so.
VALID_SECONDS = 3600.0
MOST_WORDS = 4096
# Who asks for one console again and again takes no words from others, and no memory: each is kept with its server.
MOST_WORDS_OF_ONE = 16
MOST_CONNECTIONS = 256
# How long nobody is let in where the machine has no room for one more.
REST_SECONDS = 0.5
LONGEST_WORD = 64
BLOCK = 65536


class Way(NamedTuple):
    """To a console, open until then."""

    server: Server
    protocol: str
    console: Console
    until: float


class ConsoleGate:
    """Where all consoles of a driver are said to be.

    address, port: where it listens (0: any that is free), and proxies find it.
    """

    def __init__(self, driver: Hypervisor, address: str, port: int):
        self.driver, self.address = driver, address
        self.ways, self.lock = dict[str, Way](), threading.Lock()
        self.places = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self.listener = listening_at(address, port, '[agent]console_port')
        self.port = self.listener.getsockname()[1]

    def start(self) -> None:
        threading.Thread(target=self._listen, name='console-gate', daemon=True).start()

    def close(self) -> None:
        self.listener.close()

    def guarded(self, server: Server, protocol: str, console: Console) -> Console:
        """The way to a console that the driver has, as a proxy on another machine goes it."""
        if protocol not in PROTOCOLS:
            return console
        word, now = secrets.token_hex(LONGEST_WORD // 2), time.monotonic()
        with self.lock:
            for old in [each for each, way in self.ways.items() if way.until < now]:
                del self.ways[old]
            own = [each for each, way in self.ways.items() if way.server.uuid == server.uuid]
            for old in own[: max(0, len(own) - MOST_WORDS_OF_ONE + 1)]:
                del self.ways[old]
            while len(self.ways) >= MOST_WORDS:
                del self.ways[next(iter(self.ways))]
            self.ways[word] = Way(server, protocol, console, now + VALID_SECONDS)
        return Console(self.address, self.port, internal_access_path=word)

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError as error:
                if self.listener.fileno() < 0:
                    # It was closed.
                    return
                LOG.warning('Consoles cannot be opened for a moment: %s', error)
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
                way = self._way(outside)
                if way is not None:
                    self._lead(outside, way)
        except OSError as error:
            LOG.info('A client of the console gate has disconnected: %s', error)
        finally:
            self.places.release()

    def _lead(self, outside: socket.socket, way: Way) -> None:
        """Let whoever is outside and the console hear each other, until either has had enough."""
        try:
            inside = self.driver.connect(way.server, way.protocol, way.console)
        except Error as error:
            LOG.info('A console of server %s was not opened: %s', way.server.uuid, error)
            outside.sendall(UNKNOWN if isinstance(error, NotSupported) else CLOSED)
            return
        with inside:
            outside.sendall(OPEN)
            outside.settimeout(None)
            back = threading.Thread(target=_pass_on, args=(inside, outside), name='console-back', daemon=True)
            back.start()
            _pass_on(outside, inside)
            back.join()

    def _way(self, outside: socket.socket) -> Way | None:
        """What the word opens that the other side says first."""
        said, deadline = b'', time.monotonic() + WORD_SECONDS
        while not said.endswith(END):
            outside.settimeout(max(0.01, deadline - time.monotonic()))
            block = outside.recv(LONGEST_WORD + 1 - len(said))
            if not block:
                return None
            said += block
        with self.lock:
            way = self.ways.get(said.decode('ascii', 'replace').rstrip())
        return way if way is not None and way.until >= time.monotonic() else None


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    """All that comes, until either side has had enough; then the other one is told so."""
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
