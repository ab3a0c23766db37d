"""The contents of a console, and the line that is being typed there."""

import select
import socket
import time
from collections.abc import Callable, Iterator, MutableMapping
from typing import Protocol

from computeapi.backends.hypervisor import HypervisorError, PowerState
from computeapi.db.servers import Server
from computeapi.db.virtual_machines import VirtualMachine

MAX_LINE_LENGTH = 200
LOOK_SECONDS = 0.5
MAX_AT_ONCE = 4096

ENTER, BACKSPACE, ABANDON = '\r\n', '\b\x7f', '\x03\x15'
"""Characters of special keys; ABANDON (Ctrl+C, Ctrl+U) discards the line."""


class SimulatedMachines(Protocol):
    """The virtual machines of a host, as far as consoles need them."""

    @property
    def terminals(self) -> MutableMapping[int, 'Terminal']:
        """Terminals that several connections of a viewer share, by a session number."""

    def machine(self, server: Server) -> VirtualMachine | None: ...

    def write(self, server: Server, *lines: str) -> None: ...


class Terminal:
    """The console log of a running server, and the text typed below it.

    log: the server's output so far.  line: what was typed since the last Enter.
    show: called after typing, or after a change was seen, to update other connections' displays.
    """

    def __init__(self, machines: SimulatedMachines, server: Server):
        self.machines, self.server = machines, server
        self.log, self.line, self.takes_keys = '', '', False
        self.show: Callable[[], None] = lambda: None

    @property
    def prompt(self) -> str:
        return f'{self.server.name}> {self.line}'

    def look(self) -> None:
        """Load the current state; HypervisorError if the server no longer runs here."""
        machine = self.machines.machine(self.server)
        if machine is None or machine.power_state not in (PowerState.RUNNING, PowerState.PAUSED):
            raise HypervisorError(f'{self.server.name} is not running.')
        self.log, self.takes_keys = machine.console_log, machine.power_state == PowerState.RUNNING

    def type(self, character: str) -> None:
        """Handle a key; a guest that is paused ignores it."""
        if not character or not self.takes_keys:
            return
        if character in ENTER:
            entered, self.line = self.prompt, ''
            self.machines.write(self.server, entered)
            self.look()
        elif character in BACKSPACE:
            self.line = self.line[:-1]
        elif character in ABANDON:
            self.line = ''
        elif character.isprintable() and len(self.line) < MAX_LINE_LENGTH:
            self.line += character


def controlled(character: str) -> str:
    """The control character for a key pressed with Ctrl."""
    return chr(ord(character.upper()) & 0x1F) if character.isascii() and character.isalpha() else character


def received(connection: socket.socket, terminal: Terminal) -> Iterator[bytes]:
    """Yields the received data, and b'' at regular intervals after the terminal was refreshed; EOFError at the end of
    the connection, HypervisorError if the server no longer runs."""
    look_at = time.monotonic() + LOOK_SECONDS
    while True:
        data = _within(connection, look_at - time.monotonic())
        if data:
            yield data
        if time.monotonic() >= look_at:
            terminal.look()
            look_at = time.monotonic() + LOOK_SECONDS
            yield b''


def _within(connection: socket.socket, seconds: float) -> bytes:
    """The data received within that time, if any; EOFError."""
    # A socket timeout would also apply to sending, which another thread may be doing.
    waiting = select.poll()
    waiting.register(connection, select.POLLIN)
    if not waiting.poll(max(seconds, 0) * 1000):
        return b''
    data = connection.recv(MAX_AT_ONCE)
    if not data:
        raise EOFError
    return data
