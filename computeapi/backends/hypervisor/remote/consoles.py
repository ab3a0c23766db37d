"""How a proxy gets to a console on another machine: through the gate of the agent there, with a word that opens it."""

import socket

from computeapi.backends.hypervisor import Console, HypervisorError
from computeapi.errors import Error, NotSupported

CONNECT_SECONDS = 5.0
PROTOCOLS = frozenset({'vnc', 'serial', 'spice'})
"""What a proxy of this service speaks; clients connect to the others themselves."""
END = b'\n'
"""Of the word."""
OPEN, CLOSED, UNKNOWN = b'+', b'-', b'?'
"""What the gate answers."""

SILENT_SECONDS, PROBE_SECONDS, PROBES = 60, 10, 6
"""After how long one asks whether the other machine is still there, how often, and how many questions it may miss."""


def connect(console: Console, protocol: str) -> socket.socket:
    """A connection to a console whose `internal_access_path` is the word; HypervisorError, NotSupported."""
    if protocol not in PROTOCOLS or not console.internal_access_path:
        raise NotSupported(f'Consoles that speak {protocol} are behind no gate.')
    try:
        connection = socket.create_connection((console.host, console.port), CONNECT_SECONDS)
    except OSError as error:
        raise HypervisorError(f'Nobody answers at the console: {error.strerror or error}.') from error
    try:
        connection.sendall(console.internal_access_path.encode() + END)
        answer = connection.recv(1)
        if answer == UNKNOWN:
            raise NotSupported(f'The host cannot connect to consoles that speak {protocol}.')
        if answer != OPEN:
            raise HypervisorError('The server does not run there any more.')
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
    """Let it break when the other machine is gone, which says nothing any more: not all consoles do while nobody
    types."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, SILENT_SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, PROBE_SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, PROBES)
