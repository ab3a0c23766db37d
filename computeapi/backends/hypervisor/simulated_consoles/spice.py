"""A SPICE console: the main channel, the screen as raw pixels, and keys; each channel is a connection of its own."""

import secrets
import socket
import struct
import threading
from collections.abc import Callable

from computeapi.backends.hypervisor.simulated_consoles import spice_link
from computeapi.backends.hypervisor.simulated_consoles.conversation import Parsing, ProtocolViolation, converse
from computeapi.backends.hypervisor.simulated_consoles.screen import (
    CELL_HEIGHT,
    COLUMNS,
    PAPER,
    PIXEL_HEIGHT,
    PIXEL_WIDTH,
    ROWS,
    USUAL,
    Painter,
    rows_of,
)
from computeapi.backends.hypervisor.simulated_consoles.spice_keys import Keyboard
from computeapi.backends.hypervisor.simulated_consoles.spice_link import LinkRefused, LinkRequest
from computeapi.backends.hypervisor.simulated_consoles.terminal import Terminal

MAIN, DISPLAY, INPUTS = 1, 2, 3
MAX_BYTES = 4096
"""The limit for a message of a client; all of them are short."""
HEADER = struct.Struct('<HI')

# The server's messages on the main, display and inputs channels.
MAIN_INIT, CHANNELS, NAME = 103, 104, 113
MARK, COPY_BITS, FILL, COPY, CREATE_SURFACE = 102, 104, 302, 304, 314
KEYS_INIT, MOTION_ACK = 101, 111
# The messages of clients that are handled.
ATTACH_CHANNELS = 104
DISPLAY_INIT = 101
KEY_DOWN, KEY_UP, MOTION, POSITION = 101, 102, 111, 112

SHOWS_NAME = 1 << 1
POINTER_BY_PLACE = 2
MOTIONS_AT_A_TIME = 4
SCREEN, PRIMARY, PIXELS_OF_32_BITS = 0, 1, 32
PUT, SOLID = 1 << 3, 1
BITMAP, BITMAP_OF_32_BITS, TOP_DOWN = 0, 8, 4
BLANK = ' ' * COLUMNS


def speak(connection: socket.socket, terminal: Terminal) -> None:
    """Open the requested channel, and serve it."""
    channel = Channel(connection.sendall, terminal)
    converse(connection, terminal, channel.conversation(), lambda: channel.update())


class Channel:
    """terminal: the one that all connections of a viewer show, which belongs to its first connection."""

    def __init__(self, send_bytes: Callable[[bytes], None], terminal: Terminal):
        self.send_bytes, self.terminal = send_bytes, terminal
        self.update: Callable[[], None] = lambda: None

    def send(self, kind: int, *parts: bytes) -> None:
        body = b''.join(parts)
        self.send_bytes(HEADER.pack(kind, len(body)) + body)

    def conversation(self) -> Parsing:
        """Parses everything that the client sends."""
        try:
            request = yield from spice_link.requested()
            self.check(request)
        except LinkRefused as refused:
            self.send_bytes(spice_link.reply(refused.status))
            raise
        yield from spice_link.admitted(self.send_bytes)
        handle = BEGINNINGS[request.kind](self, request)
        while True:
            kind, size = HEADER.unpack((yield HEADER.size))
            if size > MAX_BYTES:
                raise ProtocolViolation
            handle(kind, (yield size))

    def check(self, request: LinkRequest) -> None:
        """Check that the channel exists and that the session is one of this server; LinkRefused."""
        if request.kind not in BEGINNINGS or request.number:
            raise LinkRefused(spice_link.NO_SUCH_CHANNEL)
        if (request.kind == MAIN) != (request.session == 0):
            raise LinkRefused(spice_link.UNKNOWN_SESSION)
        if request.session:
            found = self.terminal.machines.terminals.get(request.session)
            if found is None or found.server.uuid != self.terminal.server.uuid:
                raise LinkRefused(spice_link.UNKNOWN_SESSION)
            self.terminal = found


def begin_main(channel: Channel, request: LinkRequest) -> Callable[[int, bytes], None]:
    """Announce the session's number and its other channels."""
    terminal, session = channel.terminal, secrets.randbits(32) | 1
    terminal.machines.terminals[session] = terminal
    facts = (session, 1, POINTER_BY_PLACE, POINTER_BY_PLACE, 0, 0, 0, 0)
    channel.send(MAIN_INIT, struct.pack('<8I', *facts))
    if request.able & SHOWS_NAME:
        name = terminal.server.name.encode() + b'\0'
        channel.send(NAME, struct.pack('<I', len(name)), name)
    # Only this thread looks for changes of the terminal.
    channel.update = lambda: terminal.show()

    def handle(kind: int, body: bytes) -> None:
        if kind == ATTACH_CHANNELS:
            channel.send(CHANNELS, struct.pack('<I4B', 2, DISPLAY, 0, INPUTS, 0))

    return handle


def begin_display(channel: Channel, request: LinkRequest) -> Callable[[int, bytes], None]:
    display = Display(channel)

    def handle(kind: int, body: bytes) -> None:
        if kind == DISPLAY_INIT:
            display.begin()
            channel.terminal.show = display.update

    return handle


def begin_inputs(channel: Channel, request: LinkRequest) -> Callable[[int, bytes], None]:
    channel.send(KEYS_INIT, bytes(2))
    keyboard, terminal, motions = Keyboard(), channel.terminal, 0

    def handle(kind: int, body: bytes) -> None:
        nonlocal motions
        if kind in (KEY_DOWN, KEY_UP):
            if len(body) != 4:
                raise ProtocolViolation
            [code] = struct.unpack('<I', body)
            if kind == KEY_DOWN:
                terminal.type(keyboard.press(code))
                terminal.show()
            else:
                keyboard.release(code)
        elif kind in (MOTION, POSITION):
            motions += 1
            if motions % MOTIONS_AT_A_TIME == 0:
                channel.send(MOTION_ACK)

    return handle


BEGINNINGS = {MAIN: begin_main, DISPLAY: begin_display, INPUTS: begin_inputs}


class Display:
    """The display of a viewer, which may be updated from any of its threads."""

    def __init__(self, channel: Channel):
        self.channel, self.terminal = channel, channel.terminal
        self.painter, self.lock = Painter(USUAL), threading.Lock()
        self.shown: list[str] = []

    def begin(self) -> None:
        """Start with an empty screen, then show the text."""
        send = self.channel.send
        with self.lock:
            send(CREATE_SURFACE, struct.pack('<5I', SCREEN, PIXEL_WIDTH, PIXEL_HEIGHT, PIXELS_OF_32_BITS, PRIMARY))
            brush = struct.pack('<B4sH', SOLID, USUAL.pixel(PAPER), PUT)
            send(FILL, place(0, ROWS), brush, NO_MASK)
            send(MARK)
            self.shown = [BLANK] * ROWS
        self.update()

    def update(self) -> None:
        """Send the rows that have changed; rows that have only moved are copied by the viewer."""
        with self.lock:
            rows = rows_of(self.terminal.log, self.terminal.prompt)
            moved = scrolled(self.shown, rows)
            if moved:
                source = struct.pack('<ii', 0, moved * CELL_HEIGHT)
                self.channel.send(COPY_BITS, place(0, ROWS - moved), source)
                self.shown = [*self.shown[moved:], *self.shown[-moved:]]
            for number, row in enumerate(rows):
                if row != self.shown[number]:
                    self.draw(number, row)
            self.shown = rows

    def draw(self, number: int, row: str) -> None:
        where = place(number, 1)
        # The bitmap follows its description; offsets are relative to the start of the message.
        at = len(where) + SOURCE.size + len(NO_MASK)
        source = SOURCE.pack(at, 0, 0, CELL_HEIGHT, PIXEL_WIDTH, PUT, 0)
        picture = PICTURE.pack(number, BITMAP, 0, PIXEL_WIDTH, CELL_HEIGHT)
        bitmap = PIXELS.pack(BITMAP_OF_32_BITS, TOP_DOWN, PIXEL_WIDTH, CELL_HEIGHT, PIXEL_WIDTH * 4, 0)
        self.channel.send(COPY, where, source, NO_MASK, picture, bitmap, self.painter.paint(row))


SOURCE = struct.Struct('<IiiiiHB')
NO_MASK = bytes(13)
PICTURE = struct.Struct('<QBBII')
PIXELS = struct.Struct('<BBIIII')


def place(row: int, count: int) -> bytes:
    """A rectangle of full rows of the screen."""
    return struct.pack('<IiiiiB', SCREEN, row * CELL_HEIGHT, 0, (row + count) * CELL_HEIGHT, PIXEL_WIDTH, 0)


def scrolled(shown: list[str], rows: list[str]) -> int:
    """By how many rows the text has scrolled up, ignoring the last row, which has the prompt; 0: it has not."""
    if rows[:-1] == shown[:-1]:
        return 0
    kept = ((number, shown[number:-1]) for number in range(1, len(rows) - 1))
    return next((number for number, some in kept if any(map(str.strip, some)) and rows[: len(some)] == some), 0)
