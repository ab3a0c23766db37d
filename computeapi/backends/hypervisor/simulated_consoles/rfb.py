"""A VNC console: a server of RFB 3.8 (RFC 6143) that shows a terminal as raw pixels and accepts keys."""

import socket
import struct
from collections.abc import Callable

from computeapi.backends.hypervisor.simulated_consoles.conversation import Parsing, ProtocolViolation, converse
from computeapi.backends.hypervisor.simulated_consoles.screen import (
    CELL_HEIGHT,
    DEPTHS,
    PIXEL_HEIGHT,
    PIXEL_WIDTH,
    USUAL,
    Painter,
    PixelFormat,
    rows_of,
)
from computeapi.backends.hypervisor.simulated_consoles.terminal import Terminal, controlled

VERSION = b'RFB 003.008\n'
NO_SECURITY, ACCEPTED, RAW = 1, 0, 0
MAX_PASTED = 1024 * 1024

CONTROL_KEYS = {0xFFE3, 0xFFE4}
UNICODE = 0x01000000
KEYS = {0xFF08: '\b', 0xFF0D: '\r', 0xFF8D: '\r', 0xFFFF: '\b'}
"""Keysyms of keys that are not letters."""


def speak(connection: socket.socket, terminal: Terminal) -> None:
    """Greet the client, then answer its update requests with the rows that have changed."""
    session = Session(connection.sendall, terminal)
    converse(connection, terminal, session.conversation(), session.update)


class Session:
    """The state of one client: what it has been shown, and in which pixel format."""

    def __init__(self, send: Callable[[bytes], None], terminal: Terminal):
        self.send, self.terminal = send, terminal
        self.painter = Painter(USUAL)
        # The rows that the client has, None for those that it lacks; `waits`: it has requested an update.
        self.shown: list[str | None] = []
        self.waits = self.control = False

    def conversation(self) -> Parsing:
        """Parses everything that the client sends."""
        self.send(VERSION)
        if (yield len(VERSION)) != VERSION:
            raise ProtocolViolation
        self.send(bytes([1, NO_SECURITY]))
        if (yield 1) != bytes([NO_SECURITY]):
            raise ProtocolViolation
        self.send(struct.pack('>I', ACCEPTED))
        # The shared flag, which is ignored: everybody shares the screen.
        yield 1
        name = self.terminal.server.name.encode()
        self.send(struct.pack('>HH', PIXEL_WIDTH, PIXEL_HEIGHT) + USUAL.packed() + struct.pack('>I', len(name)) + name)
        while True:
            [kind] = yield 1
            if kind not in MESSAGES:
                raise ProtocolViolation
            yield from MESSAGES[kind](self)

    # ------------------------------------------------------------------ messages of clients

    def set_pixel_format(self) -> Parsing:
        pixels = PixelFormat.unpacked((yield 19)[3:])
        if pixels.bits not in DEPTHS or not pixels.true_colour:
            raise ProtocolViolation
        self.painter = Painter(pixels)

    def set_encodings(self) -> Parsing:
        """Ignored: raw pixels may be sent to any client."""
        [count] = struct.unpack('>xH', (yield 3))
        yield 4 * count

    def request_update(self) -> Parsing:
        [incremental] = struct.unpack('>?8x', (yield 9))
        if not incremental:
            self.shown = []
        self.waits = True

    def press_key(self) -> Parsing:
        down, keysym = struct.unpack('>?2xI', (yield 7))
        if keysym in CONTROL_KEYS:
            self.control = down
        elif down:
            self.terminal.type(character_of(keysym, self.control))

    def move_pointer(self) -> Parsing:
        yield 5

    def paste(self) -> Parsing:
        """Clipboard text of the client is ignored."""
        [length] = struct.unpack('>3xI', (yield 7))
        if length > MAX_PASTED:
            raise ProtocolViolation
        yield length

    # ------------------------------------------------------------------ updates

    def update(self) -> None:
        """Send the rows that have changed, if the client has requested an update."""
        if not self.waits:
            return
        rows = rows_of(self.terminal.log, self.terminal.prompt)
        known = self.shown or [None] * len(rows)
        changed = [number for number, row in enumerate(rows) if row != known[number]]
        if changed:
            self.send(struct.pack('>BxH', 0, len(changed)) + b''.join(self.rectangle(at, rows[at]) for at in changed))
            self.shown, self.waits = list(rows), False

    def rectangle(self, number: int, row: str) -> bytes:
        """A row of characters, as wide as the screen."""
        header = struct.pack('>HHHHi', 0, number * CELL_HEIGHT, PIXEL_WIDTH, CELL_HEIGHT, RAW)
        return header + self.painter.paint(row)


MESSAGES: dict[int, Callable[[Session], Parsing]] = {
    0: Session.set_pixel_format,
    2: Session.set_encodings,
    3: Session.request_update,
    4: Session.press_key,
    5: Session.move_pointer,
    6: Session.paste,
}
"""By message type."""


def character_of(keysym: int, control: bool) -> str:
    """The character of a key; '' if it has none."""
    if keysym in KEYS:
        return KEYS[keysym]
    if keysym >= UNICODE:
        keysym -= UNICODE
    elif not (0x20 <= keysym <= 0x7E or 0xA0 <= keysym <= 0xFF):
        return ''
    if keysym > 0x10FFFF:
        return ''
    character = chr(keysym)
    return controlled(character) if control else character
