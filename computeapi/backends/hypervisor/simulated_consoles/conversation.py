"""Parses the messages of clients, in protocols in which the lengths of messages are known."""

import socket
from collections.abc import Callable, Generator

from computeapi.backends.hypervisor.simulated_consoles.terminal import Terminal, received

Parsing = Generator[int, bytes, None]
"""A generator that yields the number of bytes that it needs, and is sent them."""


class ProtocolViolation(EOFError):
    """The client violated the protocol."""


def converse(connection: socket.socket, terminal: Terminal, parsing: Parsing, update: Callable[[], None]) -> None:
    """Runs until either side ends the connection. update: called when the terminal may have changed."""
    buffer, wanted = bytearray(), next(parsing)
    for data in received(connection, terminal):
        buffer += data
        while len(buffer) >= wanted:
            piece = bytes(buffer[:wanted])
            del buffer[:wanted]
            wanted = parsing.send(piece)
        update()
