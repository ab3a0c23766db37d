"""Console clients: a terminal, and an RFB viewer that recognizes text."""

import struct
from contextlib import ExitStack

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from computeapi.backends.hypervisor.simulated_consoles.screen import (
    CELL_HEIGHT,
    COLUMNS,
    ROWS,
    Painter,
    PixelFormat,
)

TIMEOUT = 30
RETURN = 0xFF0D


class Terminal(ExitStack):
    """`seen` is the text read so far, from one or more messages."""

    def __init__(self, url, **options):
        super().__init__()
        self.socket, self.seen = self.enter_context(connect(url, open_timeout=TIMEOUT, **options)), ''

    def type(self, text):
        self.socket.send(text.encode())

    def read_until(self, text):
        while text not in self.seen:
            self.seen += self.socket.recv(timeout=TIMEOUT).decode()
        return self.seen


class Viewer(ExitStack):
    """A client of RFB 3.8 over a WebSocket; `text` is the text that it recognizes in the pixels."""

    def __init__(self, url, **options):
        super().__init__()
        self.socket, self.buffer = self.enter_context(connect(url, open_timeout=TIMEOUT, **options)), b''
        self.rows = [''] * ROWS
        assert self.read(12) == b'RFB 003.008\n'
        self.socket.send(b'RFB 003.008\n')
        assert self.read(2) == b'\1\1'
        self.socket.send(b'\1')
        assert self.read(4) == bytes(4)
        self.socket.send(b'\1')
        self.width, self.height, self.pixels, length = struct.unpack('>HH16sI', self.read(24))
        self.name = self.read(length).decode()
        self.letters = letters_in(self.pixels)

    def read(self, count):
        while len(self.buffer) < count:
            self.buffer += self.socket.recv(timeout=TIMEOUT)
        found, self.buffer = self.buffer[:count], self.buffer[count:]
        return found

    def use(self, pixels):
        """Ask for pixels in another format (16 bytes)."""
        self.socket.send(b'\0\0\0\0' + pixels)
        self.pixels, self.letters = pixels, letters_in(pixels)

    def type(self, text):
        for character in text:
            self.press(RETURN if character == '\n' else ord(character))

    def press(self, keysym, *, release=True):
        self.socket.send(struct.pack('>BBxxI', 4, True, keysym))
        if release:
            self.socket.send(struct.pack('>BBxxI', 4, False, keysym))

    def update(self, *, incremental=True):
        """Ask for changes, and read them; returns the row numbers of the rectangles."""
        self.socket.send(struct.pack('>BBHHHH', 3, incremental, 0, 0, self.width, self.height))
        kind, count = struct.unpack('>BxH', self.read(4))
        assert kind == 0
        return [self.rectangle() for _ in range(count)]

    def rectangle(self):
        x, y, width, height, encoding = struct.unpack('>HHHHi', self.read(12))
        assert (x, width, height, encoding) == (0, self.width, CELL_HEIGHT, 0)
        data = self.read(width * height * self.pixels[0] // 8)
        self.rows[y // CELL_HEIGHT] = characters(self.letters, data)
        return y // CELL_HEIGHT

    @property
    def text(self):
        return '\n'.join(row.rstrip() for row in self.rows).rstrip()

    def read_until(self, text):
        while text not in self.text:
            self.update()
        return self.text


def letters_in(pixels):
    """Characters by their pixels."""
    return {b''.join(lines): letter for letter, lines in Painter(PixelFormat.unpacked(pixels)).lines.items()}


def characters(letters, data):
    """The characters in the pixels of a row."""
    line = len(data) // CELL_HEIGHT
    cell = line // COLUMNS
    return ''.join(
        letters[b''.join(data[at + top : at + top + cell] for top in range(0, len(data), line))]
        for at in range(0, line, cell)
    )


def refused(url, **options):
    """The status and the reason with which the connection is refused."""
    with pytest.raises(InvalidStatus) as found:
        Terminal(url, **options)
    return found.value.response.status_code, found.value.response.reason_phrase


def closing(client):
    """The code and the reason with which the proxy closes, ignoring any messages before."""
    with pytest.raises(ConnectionClosed) as found:
        while True:
            client.socket.recv(timeout=TIMEOUT)
    return found.value.rcvd.code, found.value.rcvd.reason
