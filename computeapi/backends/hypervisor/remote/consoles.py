"""Connects a proxy to a console on another machine: through the gateway of the agent there, with a secret word."""

import re
import socket

from computeapi.backends.hypervisor import Console, HypervisorError
from computeapi.errors import Error, NotSupported

CONNECT_SECONDS = 5.0
PROTOCOLS = frozenset({'vnc', 'serial', 'spice'})
"""The protocols that this service's proxies speak; for others, clients connect to the console themselves."""
WORD = re.compile('[0-9a-f]{64}')
"""The secret word for a console. Nothing else is sent to an address that an agent has chosen."""
END = b'\n'
"""Ends the word."""
OPEN, CLOSED, UNKNOWN = b'+', b'-', b'?'
"""The answers of the gateway."""

SILENT_SECONDS, PROBE_SECONDS, PROBES = 60, 10, 6
"""TCP keepalive: seconds of silence before the first probe, seconds between probes, and unanswered probes allowed."""


def is_sound(console: Console, protocol: str) -> bool:
    """Whether an agent answers this when it is asked for a console."""
    word = console.internal_access_path or ''
    ports = (console.port, console.port if console.tls_port is None else console.tls_port)
    if not all(isinstance(port, int) and 0 < port < 2**16 for port in ports):
        return False
    return WORD.fullmatch(word) is not None if protocol in PROTOCOLS else len(word) <= 255


def connect(console: Console, protocol: str) -> socket.socket:
    """A connection to a console whose `internal_access_path` is the word; HypervisorError, NotSupported."""
    if protocol not in PROTOCOLS or not console.internal_access_path:
        raise NotSupported(f'There is no gate for {protocol} consoles.')
    try:
        connection = socket.create_connection((console.host, console.port), CONNECT_SECONDS)
    except OSError as error:
        raise HypervisorError(f'Nothing answers at the console: {error.strerror or error}.') from error
    try:
        connection.sendall(console.internal_access_path.encode() + END)
        answer = connection.recv(1)
        if answer == UNKNOWN:
            raise NotSupported(f'The host does not support {protocol} consoles.')
        if answer != OPEN:
            raise HypervisorError('The server is no longer running there.')
    except OSError as error:
        connection.close()
        raise HypervisorError(f'The console does not answer: {error.strerror or error}.') from error
    except Error:
        connection.close()
        raise
    connection.settimeout(None)
    keep_alive(connection)
    return connection


def keep_alive(connection: socket.socket) -> None:
    """Detect that the other machine has vanished: not every console sends data while nobody types."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, SILENT_SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, PROBE_SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, PROBES)
