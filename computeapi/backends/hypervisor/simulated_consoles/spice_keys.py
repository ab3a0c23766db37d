"""The characters of the keys of a US keyboard, by scancodes of set 1."""

from computeapi.backends.hypervisor.simulated_consoles.terminal import controlled

PREFIX, RELEASED = 0xE0, 0x80
SHIFT, CONTROL = {0x2A, 0x36}, {0x1D, 0xE01D}
ROWS = {
    0x02: ('1234567890-=\b', '!@#$%^&*()_+\b'),
    0x10: ('qwertyuiop[]\r', 'QWERTYUIOP{}\r'),
    0x1E: ("asdfghjkl;'`", 'ASDFGHJKL:"~'),
    0x2B: ('\\zxcvbnm,./', '|ZXCVBNM<>?'),
    0x37: ('*', '*'),
    0x39: (' ', ' '),
    0x4A: ('-', '-'),
    0x4E: ('+', '+'),
    # Enter and slash of the keypad, and Delete.
    0xE01C: ('\r', '\r'),
    0xE035: ('/', '/'),
    0xE053: ('\b', '\b'),
}
"""The first scancode of each row of keys, with its characters without and with Shift."""
PLAIN, SHIFTED = (
    {first + at: typed for first, row in ROWS.items() for at, typed in enumerate(row[which])} for which in (0, 1)
)


class Keyboard:
    """Keeps track of the modifier keys that are held down."""

    def __init__(self) -> None:
        self.held = set[int]()

    def press(self, code: int) -> str:
        """The character of a key that is pressed; '' if it has none."""
        key = key_of(code)
        if key in SHIFT | CONTROL:
            self.held.add(key)
        character = (SHIFTED if self.held & SHIFT else PLAIN).get(key, '')
        return controlled(character) if self.held & CONTROL else character

    def release(self, code: int) -> None:
        self.held.discard(key_of(code))


def key_of(code: int) -> int:
    """The scancode of a key, whether it is pressed or released; the lowest of four bytes comes first."""
    first, second = code & 0xFF, code >> 8 & 0xFF
    return PREFIX << 8 | second & ~RELEASED if first == PREFIX else first & ~RELEASED
