"""Connections to consoles: one end of a socket pair each; a thread of this process serves the other end."""

import socket
import threading
from collections.abc import Callable, Mapping

from computeapi.backends.hypervisor import HypervisorError
from computeapi.backends.hypervisor.simulated_consoles import rfb, serial, spice
from computeapi.backends.hypervisor.simulated_consoles.terminal import SimulatedMachines, Terminal
from computeapi.db.servers import Server
from computeapi.errors import DatabaseError, NotSupported

Speak = Callable[[socket.socket, Terminal], None]

SPEAKERS: Mapping[str, Speak] = {'serial': serial.speak, 'vnc': rfb.speak, 'spice': spice.speak}


def connect(machines: SimulatedMachines, server: Server, protocol: str) -> socket.socket:
    """A connection to the console of a server among those *machines*; HypervisorError, NotSupported."""
    if protocol not in SPEAKERS:
        raise NotSupported(f'No {protocol} server answers for simulated servers.')
    terminal = Terminal(machines, server)
    terminal.look()
    ours, theirs = socket.socketpair()
    name = f'{protocol} console of {server.uuid}'
    threading.Thread(target=_speak, args=(SPEAKERS[protocol], ours, terminal), name=name, daemon=True).start()
    return theirs


def _speak(speak: Speak, connection: socket.socket, terminal: Terminal) -> None:
    """Serves the connection until either side ends it."""
    with connection:
        try:
            speak(connection, terminal)
        except (OSError, EOFError, HypervisorError, DatabaseError):
            # The client notices that the connection ends.
            pass
