"""What clients of a protocol with messages of known lengths say, piece by piece."""

import socket
from collections.abc import Callable, Generator

from computeapi.backends.hypervisor.simulated_consoles.terminal import Terminal, received

Parsing = Generator[int, bytes, None]
"""Asks for so many bytes, and is given them."""


class Unspeakable(EOFError):
    """The client says what a client of the protocol does not say."""


def converse(connection: socket.socket, terminal: Terminal, parsing: Parsing, update: Callable[[], None]) -> None:
    """Until either side has had enough. update: called when something may be new on the terminal."""
    buffer, wanted = bytearray(), next(parsing)
    for data in received(connection, terminal):
        buffer += data
        while len(buffer) >= wanted:
            piece = bytes(buffer[:wanted])
            del buffer[:wanted]
            wanted = parsing.send(piece)
        update()
