"""A SPICE console: its main channel, the screen in raw pixels, and keys; each a connection of its own."""

import secrets
import socket
import struct
import threading
from collections.abc import Callable

from computeapi.backends.hypervisor.simulated_consoles import spice_link
from computeapi.backends.hypervisor.simulated_consoles.conversation import Parsing, Unspeakable, converse
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
MOST_BYTES = 4096
"""Of a message of a client, none of which says much."""
HEADER = struct.Struct('<HI')

# What the server says on the main channel, on the one of the screen and on the one of the keys.
MAIN_INIT, CHANNELS, NAME = 103, 104, 113
MARK, COPY_BITS, FILL, COPY, CREATE_SURFACE = 102, 104, 302, 304, 314
KEYS_INIT, MOTION_ACK = 101, 111
# What clients say that is heeded.
ATTACH_CHANNELS = 104
DISPLAY_INIT = 101
KEY_DOWN, KEY_UP, MOTION, POSITION = 101, 102, 111, 112

NAMES = 1 << 1
POINTER_BY_PLACE = 2
MOTIONS_AT_A_TIME = 4
SCREEN, PRIMARY, PIXELS_OF_32_BITS = 0, 1, 32
PUT, SOLID = 1 << 3, 1
BITMAP, BITMAP_OF_32_BITS, TOP_DOWN = 0, 8, 4
BLANK = ' ' * COLUMNS


def speak(connection: socket.socket, terminal: Terminal) -> None:
    """Open the channel that the client asks for, and go on as that one does."""
    channel = Channel(connection.sendall, terminal)
    converse(connection, terminal, channel.conversation(), lambda: channel.update())


class Channel:
    """terminal: the one that all connections of a viewer show, its first one's."""

    def __init__(self, send_bytes: Callable[[bytes], None], terminal: Terminal):
        self.send_bytes, self.terminal = send_bytes, terminal
        self.update: Callable[[], None] = lambda: None

    def send(self, kind: int, *parts: bytes) -> None:
        body = b''.join(parts)
        self.send_bytes(HEADER.pack(kind, len(body)) + body)

    def conversation(self) -> Parsing:
        """All that the client says."""
        try:
            request = yield from spice_link.requested()
            self.check(request)
        except LinkRefused as refused:
            self.send_bytes(spice_link.reply(refused.status))
            raise
        yield from spice_link.admitted(self.send_bytes)
        hear = BEGINNINGS[request.kind](self, request)
        while True:
            kind, size = HEADER.unpack((yield HEADER.size))
            if size > MOST_BYTES:
                raise Unspeakable
            hear(kind, (yield size))

    def check(self, request: LinkRequest) -> None:
        """See that there is such a channel, and whose it is; LinkRefused."""
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
    """Say the number of the session, and on which channels there is more of it."""
    terminal, session = channel.terminal, secrets.randbits(32) | 1
    terminal.machines.terminals[session] = terminal
    facts = (session, 1, POINTER_BY_PLACE, POINTER_BY_PLACE, 0, 0, 0, 0)
    channel.send(MAIN_INIT, struct.pack('<8I', *facts))
    if request.able & NAMES:
        name = terminal.server.name.encode() + b'\0'
        channel.send(NAME, struct.pack('<I', len(name)), name)
    # This thread alone looks what is new on the terminal.
    channel.update = lambda: terminal.show()

    def hear(kind: int, body: bytes) -> None:
        if kind == ATTACH_CHANNELS:
            channel.send(CHANNELS, struct.pack('<I4B', 2, DISPLAY, 0, INPUTS, 0))

    return hear


def begin_display(channel: Channel, request: LinkRequest) -> Callable[[int, bytes], None]:
    display = Display(channel)

    def hear(kind: int, body: bytes) -> None:
        if kind == DISPLAY_INIT:
            display.begin()
            channel.terminal.show = display.update

    return hear


def begin_inputs(channel: Channel, request: LinkRequest) -> Callable[[int, bytes], None]:
    channel.send(KEYS_INIT, bytes(2))
    keyboard, terminal, motions = Keyboard(), channel.terminal, 0

    def hear(kind: int, body: bytes) -> None:
        nonlocal motions
        if kind in (KEY_DOWN, KEY_UP):
            if len(body) != 4:
                raise Unspeakable
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

    return hear


BEGINNINGS = {MAIN: begin_main, DISPLAY: begin_display, INPUTS: begin_inputs}


class Display:
    """What a viewer has on its screen, and how it is told of what is new there, from whichever thread sees it."""

    def __init__(self, channel: Channel):
        self.channel, self.terminal = channel, channel.terminal
        self.painter, self.lock = Painter(USUAL), threading.Lock()
        self.shown: list[str] = []

    def begin(self) -> None:
        """A screen without any letters, and then with those that there are."""
        send = self.channel.send
        with self.lock:
            send(CREATE_SURFACE, struct.pack('<5I', SCREEN, PIXEL_WIDTH, PIXEL_HEIGHT, PIXELS_OF_32_BITS, PRIMARY))
            brush = struct.pack('<B4sH', SOLID, USUAL.pixel(PAPER), PUT)
            send(FILL, place(0, ROWS), brush, NO_MASK)
            send(MARK)
            self.shown = [BLANK] * ROWS
        self.update()

    def update(self) -> None:
        """Send the rows that changed; those that only moved the viewer has."""
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
        # The picture follows on what is said of it here, in a message of which it knows its place.
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
    """Rows of the screen, from the left to the right."""
    return struct.pack('<IiiiiB', SCREEN, row * CELL_HEIGHT, 0, (row + count) * CELL_HEIGHT, PIXEL_WIDTH, 0)


def scrolled(shown: list[str], rows: list[str]) -> int:
    """By how many rows what is shown moved up, but for the last one, which is typed at; 0: it did not."""
    if rows[:-1] == shown[:-1]:
        return 0
    kept = ((number, shown[number:-1]) for number in range(1, len(rows) - 1))
    return next((number for number, some in kept if any(map(str.strip, some)) and rows[: len(some)] == some), 0)
