"""The screen of a simulated server: rows of characters, and their pixels."""

import struct
from collections.abc import Iterable
from typing import NamedTuple, Self

from computeapi.backends.hypervisor.simulated_consoles.font import CURSOR, HEIGHT, UNKNOWN, WIDTH, letters

COLUMNS, ROWS = 80, 24
# The size of a font dot in pixels, and the margin around each character.
SCALE, MARGIN = 2, 1
CELL_WIDTH, CELL_HEIGHT = WIDTH * SCALE + 2 * MARGIN, HEIGHT * SCALE + 2 * MARGIN
PIXEL_WIDTH, PIXEL_HEIGHT = COLUMNS * CELL_WIDTH, ROWS * CELL_HEIGHT
INK, PAPER = (0xD8, 0xDC, 0xE0), (0x14, 0x18, 0x1C)

LETTERS = letters()


def rows_of(log: str, prompt: str) -> list[str]:
    """The rows on the screen for a log with a prompt below it: as much as fits, with long lines wrapped."""
    lines = [*log[-COLUMNS * ROWS :].splitlines(), prompt + CURSOR]
    folded = [line[at : at + COLUMNS] for line in lines for at in range(0, max(len(line), 1), COLUMNS)]
    shown = folded[-ROWS:]
    return [row.ljust(COLUMNS) for row in [*shown, *[''] * (ROWS - len(shown))]]


class PixelFormat(NamedTuple):
    """A client's pixel format: the number of bits, and the positions of the colours in them."""

    bits: int
    depth: int
    big_endian: bool
    true_colour: bool
    red_max: int
    green_max: int
    blue_max: int
    red_shift: int
    green_shift: int
    blue_shift: int

    @classmethod
    def unpacked(cls, data: bytes) -> Self:
        return cls(*STRUCTURE.unpack(data))

    def packed(self) -> bytes:
        return STRUCTURE.pack(*self)

    def pixel(self, colour: tuple[int, int, int]) -> bytes:
        maxima = (self.red_max, self.green_max, self.blue_max)
        shifts = (self.red_shift, self.green_shift, self.blue_shift)
        value = sum((part * most // 255) << shift for part, most, shift in zip(colour, maxima, shifts, strict=True))
        return (value & (1 << self.bits) - 1).to_bytes(self.bits // 8, 'big' if self.big_endian else 'little')


STRUCTURE = struct.Struct('>BB??HHHBBB3x')
USUAL = PixelFormat(32, 24, False, True, 255, 255, 255, 16, 8, 0)
DEPTHS = {8, 16, 32}


class Painter:
    """Renders characters as pixels, in one format."""

    def __init__(self, pixels: PixelFormat):
        ink, paper = pixels.pixel(INK), pixels.pixel(PAPER)
        self.dots, self.margin = {'#': ink * SCALE, '.': paper * SCALE}, paper * MARGIN
        # By character, its lines of pixels.
        self.lines = {character: self.lines_of(rows) for character, rows in LETTERS.items()}

    def lines_of(self, rows: Iterable[str]) -> list[bytes]:
        inner = [
            self.margin + b''.join(self.dots[dot] for dot in row) + self.margin for row in rows for _ in range(SCALE)
        ]
        empty = [b''.join([self.margin, self.dots['.'] * WIDTH, self.margin])] * MARGIN
        return [*empty, *inner, *empty]

    def paint(self, row: str) -> bytes:
        """The pixels of a row of characters, line by line."""
        unknown = self.lines[UNKNOWN]
        letters = [self.lines.get(character, unknown) for character in row]
        return b''.join(letter[line] for line in range(CELL_HEIGHT) for letter in letters)
