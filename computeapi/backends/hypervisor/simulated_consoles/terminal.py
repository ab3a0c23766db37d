"""What is on a console, and the line that somebody types there."""

import select
import socket
import time
from collections.abc import Callable, Iterator, MutableMapping
from typing import Protocol

from computeapi.backends.hypervisor import HypervisorError, PowerState
from computeapi.db.domains import VirtualMachine
from computeapi.db.servers import Server

LONGEST_LINE = 200
LOOK_SECONDS = 0.5
MOST_AT_ONCE = 4096

ENTER, BACKSPACE, ABANDON = '\r\n', '\b\x7f', '\x03\x15'
"""Characters that are keys: the last ones, Ctrl+C and Ctrl+U, take the line back."""


class SimulatedMachines(Protocol):
    """The virtual machines of a host, as their consoles see them."""

    @property
    def terminals(self) -> MutableMapping[int, 'Terminal']:
        """Those that a viewer has several connections to, by a number that it is told."""

    def machine(self, server: Server) -> VirtualMachine | None: ...

    def write(self, server: Server, *lines: str) -> None: ...


class Terminal:
    """The console log of a server that runs, and what is typed below it.

    log: what the server wrote so far.  line: what was typed since the last Enter.
    show: called by those who typed, or saw what is new, where others show it.
    """

    def __init__(self, machines: SimulatedMachines, server: Server):
        self.machines, self.server = machines, server
        self.log, self.line, self.takes_keys = '', '', False
        self.show: Callable[[], None] = lambda: None

    @property
    def prompt(self) -> str:
        return f'{self.server.name}> {self.line}'

    def look(self) -> None:
        """See what is new; HypervisorError when the server does not run here any more."""
        machine = self.machines.machine(self.server)
        if machine is None or machine.power_state not in (PowerState.RUNNING, PowerState.PAUSED):
            raise HypervisorError(f'{self.server.name} does not run.')
        self.log, self.takes_keys = machine.console_log, machine.power_state == PowerState.RUNNING

    def type(self, character: str) -> None:
        """A key is pressed; a guest that is paused does not notice."""
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
        elif character.isprintable() and len(self.line) < LONGEST_LINE:
            self.line += character


def controlled(character: str) -> str:
    """What a key types while Ctrl is held that types the character alone."""
    return chr(ord(character.upper()) & 0x1F) if character.isascii() and character.isalpha() else character


def received(connection: socket.socket, terminal: Terminal) -> Iterator[bytes]:
    """What comes in, and nothing now and then, so that the terminal has seen what is new; EOFError at the end,
    HypervisorError when the server does not run any more."""
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
    """What comes in in that time, if anything does; EOFError."""
    # A timeout of the connection would be one of sending, too, which another thread may be at.
    waiting = select.poll()
    waiting.register(connection, select.POLLIN)
    if not waiting.poll(max(seconds, 0) * 1000):
        return b''
    data = connection.recv(MOST_AT_ONCE)
    if not data:
        raise EOFError
    return data
