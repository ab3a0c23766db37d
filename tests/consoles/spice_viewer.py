"""A SPICE client over WebSockets: it sees the screen, and presses keys."""

import struct
from contextlib import ExitStack

from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.serialization import load_der_public_key
from websockets.sync.client import connect

from computeapi.backends.hypervisor.simulated_consoles.screen import CELL_HEIGHT, USUAL
from tests.consoles.viewers import TIMEOUT, characters, letters_in

MAIN, DISPLAY, INPUTS = 1, 2, 3
# Selection of the authentication method, tickets, and short message headers.
COMMON = 1 << 0 | 1 << 1 | 1 << 3
NAMES = 1 << 1
TICKET = 1
SET_ACK, PING = 3, 4
ACK_SYNC, ACK, PONG = 1, 2, 3
INIT, CHANNELS, NAME, ATTACH = 103, 104, 113, 104
# Everything that the screen shows after this message is meant to be seen.
MARK = 102
COPY_BITS, FILL, COPY, SURFACE = 104, 302, 304, 314
LETTERS = letters_in(USUAL.packed())
KEYS = {0x02: '1234567890-=', 0x10: 'qwertyuiop[]\n', 0x1E: 'asdfghjkl;', 0x2C: 'zxcvbnm,./', 0x39: ' '}
SHIFTED = {0x02: '!@#$%^&*()_+', 0x10: 'QWERTYUIOP{}', 0x1E: 'ASDFGHJKL:', 0x2C: 'ZXCVBNM<>?'}
SHIFT, CONTROL = 0x2A, 0x1D


def link(kind, session=0, *, common=COMMON, own=0):
    """The first message of a client, for a channel of that kind."""
    body = struct.pack('<IBBIIIII', session, kind, 0, 1, 1, 18, common, own)
    return b'REDQ' + struct.pack('<III', 2, 2, len(body)) + body


def ticket(key, password=b'\0'):
    """The password, encrypted for the holder of the key."""
    hashing = padding.OAEP(padding.MGF1(SHA1()), SHA1(), None)
    return struct.pack('<I', TICKET) + load_der_public_key(key).encrypt(password, hashing)


class Channel(ExitStack):
    """One connection. It answers pings and acknowledgement requests itself; `message` does not return them."""

    def __init__(self, url, kind, session=0, own=0, **options):
        super().__init__()
        self.socket, self.buffer = self.enter_context(connect(url, open_timeout=TIMEOUT, **options)), b''
        self.window = self.unacknowledged = 0
        self.socket.send(link(kind, session, own=own))
        magic, major, minor, size = struct.unpack('<4sIII', self.read(16))
        assert (magic, major) == (b'REDQ', 2)
        reply = self.read(size)
        assert struct.unpack('<I', reply[:4]) == (0,)
        self.socket.send(ticket(reply[4:166]))
        assert struct.unpack('<I', self.read(4)) == (0,)

    def read(self, count):
        while len(self.buffer) < count:
            self.buffer += self.socket.recv(timeout=TIMEOUT)
        found, self.buffer = self.buffer[:count], self.buffer[count:]
        return found

    def send(self, kind, body=b''):
        self.socket.send(struct.pack('<HI', kind, len(body)) + body)

    def message(self):
        """The next message: its kind and its body."""
        while True:
            kind, size = struct.unpack('<HI', self.read(6))
            body = self.read(size)
            self.acknowledge(kind)
            if kind == SET_ACK:
                generation, self.window = struct.unpack('<II', body)
                self.unacknowledged = 0
                self.send(ACK_SYNC, struct.pack('<I', generation))
            elif kind == PING:
                self.send(PONG, body[:12])
            else:
                return kind, body

    def acknowledge(self, kind):
        self.unacknowledged += kind != SET_ACK
        if self.window and self.unacknowledged >= self.window:
            self.send(ACK)
            self.unacknowledged = 0

    def message_of(self, wanted):
        """The body of the next message of that kind."""
        while True:
            kind, body = self.message()
            if kind == wanted:
                return body


class SpiceViewer(ExitStack):
    """pixels: of the screen, from the top, four bytes each: blue, green, red and an unused one."""

    def __init__(self, url, **options):
        super().__init__()
        self.main = self.socket = self.enter_context(Channel(url, MAIN, own=NAMES, **options))
        self.socket = self.main.socket
        self.session, *_ = struct.unpack('<I', self.main.message_of(INIT)[:4])
        self.main.send(ATTACH)
        told = {}
        while len(told) < 2:
            kind, body = self.main.message()
            told |= {kind: body} if kind in (NAME, CHANNELS) else {}
        self.name = told[NAME][4:].rstrip(b'\0').decode()
        channels = told[CHANNELS][4:]
        assert {DISPLAY, INPUTS} <= set(channels[::2])
        self.display = self.enter_context(Channel(url, DISPLAY, self.session, **options))
        self.display.send(101, struct.pack('<BqBi', 0, 0, 0, 0))
        self.inputs = self.enter_context(Channel(url, INPUTS, self.session, **options))
        self.width = self.height = 0
        self.pixels = bytearray()
        while self.update() != MARK:
            pass

    # ------------------------------------------------------------------ the screen

    def update(self):
        """Read the next change, and draw it."""
        kind, body = self.display.message()
        if kind == SURFACE:
            number, self.width, self.height, form, _ = struct.unpack('<IIIII', body)
            assert (number, form) == (0, 32)
            self.pixels = bytearray(self.width * self.height * 4)
        elif kind in (COPY_BITS, FILL, COPY):
            top, left, bottom, right, clipped = struct.unpack('<4xiiiiB', body[:21])
            assert not clipped
            DRAWING[kind](self, body, (top, left, bottom, right))
        return kind

    def draw(self, body, box):
        """Draw a complete, uncompressed picture."""
        image, *area, rop, _, _, _, _, mask = struct.unpack('<IiiiiHBBiiI', body[21:57])
        assert (rop, mask) == (8, 0)
        kind, _, width, height = struct.unpack('<8xBBII', body[image : image + 18])
        form, flags, x, y, stride, palette = struct.unpack('<BBIIII', body[image + 18 : image + 36])
        assert (kind, form, palette, x, y) == (0, 8, 0, width, height)
        top, left, bottom, right = area
        data = body[image + 36 :]
        for line in range(top, bottom):
            at = (line if flags & 4 else height - 1 - line) * stride
            self.put(box[0] + line - top, box[1], data[at + left * 4 : at + right * 4])

    def fill(self, body, box):
        kind, colour, rop = struct.unpack('<BIH', body[21:28])
        assert (kind, rop) == (1, 8)
        for line in range(box[0], box[2]):
            self.put(line, box[1], struct.pack('<I', colour) * (box[3] - box[1]))

    def copy_bits(self, body, box):
        x, y = struct.unpack('<ii', body[21:29])
        wide = (box[3] - box[1]) * 4
        lines = [self.line(y + number, x, wide) for number in range(box[2] - box[0])]
        for number, line in enumerate(lines):
            self.put(box[0] + number, box[1], line)

    def line(self, y, x, size):
        at = (y * self.width + x) * 4
        return bytes(self.pixels[at : at + size])

    def put(self, y, x, data):
        at = (y * self.width + x) * 4
        assert x >= 0 and x * 4 + len(data) <= self.width * 4 and 0 <= y < self.height
        self.pixels[at : at + len(data)] = data

    @property
    def text(self):
        """The text read from the pixels, if they are those of a simulated server."""
        row = self.width * 4 * CELL_HEIGHT
        rows = [characters(LETTERS, self.pixels[at : at + row]) for at in range(0, len(self.pixels), row)]
        return '\n'.join(row.rstrip() for row in rows).rstrip()

    def read_until(self, text):
        while text not in self.text:
            self.update()
        return self.text

    # ------------------------------------------------------------------ keys

    def type(self, text):
        for character in text:
            code, shifted = key_of(character)
            if shifted:
                self.press(SHIFT, release=False)
            self.press(code)
            if shifted:
                self.release(SHIFT)

    def press(self, code, *, release=True):
        """Press the key with this scancode of set 1."""
        self.inputs.send(101, struct.pack('<I', code))
        if release:
            self.release(code)

    def release(self, code):
        self.inputs.send(102, struct.pack('<I', code | 0x80))


def key_of(character):
    """The scancode, and whether it needs Shift."""
    for shifted, rows in ((False, KEYS), (True, SHIFTED)):
        for first, row in rows.items():
            if character in row:
                return first + row.index(character), shifted
    raise LookupError(character)


DRAWING = {COPY: SpiceViewer.draw, FILL: SpiceViewer.fill, COPY_BITS: SpiceViewer.copy_bits}
