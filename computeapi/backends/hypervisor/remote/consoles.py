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
    return connection
