"""The consoles of simulated servers: output, and handling of keys."""

import struct
from contextlib import suppress

import pytest

from computeapi.backends.hypervisor.simulated_consoles import rfb, screen, spice_link
from computeapi.backends.hypervisor.simulated_consoles.font import CURSOR, HEIGHT, WIDTH, letters
from computeapi.backends.hypervisor.simulated_consoles.rfb import character_of
from computeapi.backends.hypervisor.simulated_consoles.serial import Keys, Paper, beyond
from computeapi.backends.hypervisor.simulated_consoles.terminal import MAX_LINE_LENGTH, Terminal
from tests.consoles.spice_viewer import DISPLAY, INPUTS, MAIN, link, ticket


@pytest.fixture
def terminal(service, server):
    terminal = Terminal(service.hypervisor, server)
    terminal.look()
    return terminal


def type_at(terminal, text):
    for character in text:
        terminal.type(character)


# ------------------------------------------------------------------ keys


@pytest.mark.parametrize(
    ('typed', 'line'),
    [
        ('ls', 'ls'),
        ('lx\x7fs', 'ls'),
        ('\b\bls', 'ls'),
        ('rm\x03ls', 'ls'),
        ('rm\x15ls', 'ls'),
        ('\x00\x07l\x1bs', 'ls'),
        ('grüße', 'grüße'),
        ('x' * 2000, 'x' * MAX_LINE_LENGTH),
    ],
)
def test_what_keys_do_to_the_line(terminal, typed, line):
    type_at(terminal, typed)
    assert terminal.line == line and terminal.prompt == f'web> {line}'


def test_enter_adds_the_line_to_the_console_log(service, server, terminal):
    type_at(terminal, 'hello\rworld\nmore')
    assert service.hypervisor.console_output(server, 2) == 'web> hello\nweb> world'
    assert terminal.line == 'more' and terminal.log.endswith('web> world\n')


@pytest.mark.parametrize(
    ('pieces', 'characters'),
    [
        ([b'ls\r'], 'ls\r'),
        ([b'ls\r\n'], 'ls\r'),
        ([b'\x1b[A\x1b[1;5Cl\x1bOPs\x1bx'], 'ls'),
        ([b'\x1b', b'[', b'A', b'ls'], 'ls'),
        (['ü'.encode()[:1], 'ü'.encode()[1:]], 'ü'),
        ([b'\xff'], '\ufffd'),
    ],
)
def test_what_a_terminal_sends(pieces, characters):
    keys = Keys()
    assert ''.join(keys.typed(piece) for piece in pieces) == characters


def test_what_never_becomes_a_sequence_is_not_kept():
    keys = Keys()
    keys.typed(b'\x1b[' + b'1' * 1000)
    assert len(keys.pending) <= 16


@pytest.mark.parametrize(
    ('keysym', 'control', 'character'),
    [
        (0x61, False, 'a'),
        (0x63, True, '\x03'),
        (0x43, True, '\x03'),
        (0x31, True, '1'),
        (0xFC, False, 'ü'),
        (0x010020AC, False, '€'),
        (0xFF0D, False, '\r'),
        (0xFF8D, False, '\r'),
        (0xFF08, False, '\b'),
        (0xFFE1, False, ''),
        (0xFF51, False, ''),
        (0xFFFFFFFF, False, ''),
    ],
)
def test_what_a_keysym_types(keysym, control, character):
    assert character_of(keysym, control) == character


# ------------------------------------------------------------------ output


@pytest.mark.parametrize(
    ('shown', 'log', 'new'),
    [('', 'a\n', 'a\n'), ('a\n', 'a\nb\n', 'b\n'), ('x\na\nb\n', 'a\nb\nc\n', 'a\nb\nc\n'), ('a\n', 'b\n', 'b\n')],
)
def test_what_is_new_in_a_log(shown, log, new):
    assert beyond(shown, log) == new


def test_what_is_new_in_a_log_whose_beginning_is_cut_off():
    lines = [f'line {number}\n' for number in range(1000)]
    assert beyond(''.join(lines[:900]), ''.join(lines[100:])) == ''.join(lines[900:])


def test_paper_says_only_what_changes(terminal):
    paper = Paper()
    assert paper.changes(terminal).endswith('ready\r\nweb> ')
    assert paper.changes(terminal) == ''
    type_at(terminal, 'ab')
    assert paper.changes(terminal) == 'ab'
    type_at(terminal, '\b')
    assert paper.changes(terminal) == '\r\x1b[Kweb> a'
    type_at(terminal, '\r')
    assert paper.changes(terminal) == '\r\x1b[Kweb> a\r\nweb> '


def test_the_screen_shows_the_end_of_the_log():
    rows = screen.rows_of(''.join(f'{number}\n' for number in range(100)), 'web> ls')
    assert [row.rstrip() for row in rows] == [*(str(number) for number in range(77, 100)), f'web> ls{CURSOR}']
    assert {len(row) for row in rows} == {screen.COLUMNS}


def test_long_lines_are_folded():
    rows = screen.rows_of('x' * 200 + '\n\n', 'web> ')
    assert [len(row.rstrip()) for row in rows[:5]] == [80, 80, 40, 0, 6]


def test_each_character_has_a_letter_of_its_own():
    found = letters()
    assert [chr(code) for code in range(32, 127) if chr(code) not in found] == []
    assert len(set(found.values())) == len(found)
    assert {(len(rows), *map(len, rows)) for rows in found.values()} == {(HEIGHT, *[WIDTH] * HEIGHT)}


@pytest.mark.parametrize(
    ('pixels', 'red'),
    [
        (screen.USUAL, b'\0\0\xff\0'),
        (screen.USUAL._replace(red_shift=0, blue_shift=16), b'\xff\0\0\0'),
        (screen.USUAL._replace(big_endian=True), b'\0\xff\0\0'),
        (screen.PixelFormat(16, 16, False, True, 31, 63, 31, 11, 5, 0), b'\0\xf8'),
        (screen.PixelFormat(8, 8, False, True, 7, 7, 3, 0, 3, 6), b'\7'),
        # Nonsense from a client is not an error of the server.
        (screen.PixelFormat(8, 8, False, True, 65535, 65535, 65535, 255, 255, 255), None),
    ],
)
def test_pixels_are_as_clients_want_them(pixels, red):
    assert screen.PixelFormat.unpacked(pixels.packed()) == pixels
    found = pixels.pixel((255, 0, 0))
    assert len(found) == pixels.bits // 8 and red in (None, found)
    assert len(screen.Painter(pixels).paint('x' * 80)) == screen.PIXEL_WIDTH * screen.CELL_HEIGHT * pixels.bits // 8


# ------------------------------------------------------------------ unusual clients


GREETING = b'RFB 003.008\n\1\1'


@pytest.mark.parametrize(
    'said',
    [
        b'GET / HTTP/1.1\r\n\r\n',
        b'RFB 003.003\n',
        b'RFB 003.008\n\2',
        GREETING + b'\xff',
        # Pixels that are palette indexes, or have 24 bits; and more text than anybody pastes.
        GREETING + b'\0\0\0\0' + screen.USUAL._replace(true_colour=False).packed(),
        GREETING + b'\0\0\0\0' + screen.USUAL._replace(bits=24).packed(),
        GREETING + b'\6\0\0\0\xff\xff\xff\xff',
    ],
)
def test_who_does_not_speak_rfb_is_cut_off(service, server, said):
    heard_until_the_end(connected(service, server, 'vnc'), said)


def connected(service, server, protocol):
    return service.hypervisor.connect(server, protocol, service.hypervisor.console(server, protocol))


def heard_until_the_end(connection, said):
    """What the other side sends before it closes the connection."""
    heard = b''
    with connection:
        connection.sendall(said)
        connection.settimeout(30)
        with suppress(ConnectionResetError):
            while data := connection.recv(4096):
                heard += data
    return heard


BODY = link(MAIN)[16:]


@pytest.mark.parametrize(
    ('said', 'status'),
    [
        (b'GET / HTTP/1.1\r\n\r\n', None),
        (b'REDQ' + struct.pack('<III', 2, 2, 0xFFFFFFFF), None),
        (b'REDQ' + struct.pack('<III', 2, 2, 4), None),
        (b'REDQ' + struct.pack('<III', 1, 0, len(BODY)) + BODY, spice_link.OTHER_VERSION),
        (link(MAIN, common=0), spice_link.INVALID),
        # More capabilities than exist.
        (link(MAIN)[:22] + struct.pack('<III', 0xFFFFFFFF, 0xFFFFFFFF, 18) + link(MAIN)[34:], spice_link.INVALID),
        (link(7), spice_link.NO_SUCH_CHANNEL),
        (link(MAIN, session=1), spice_link.UNKNOWN_SESSION),
        (link(DISPLAY, session=1), spice_link.UNKNOWN_SESSION),
        (link(INPUTS), spice_link.UNKNOWN_SESSION),
    ],
)
def test_who_does_not_open_a_channel_of_spice_is_told_why_and_cut_off(service, server, said, status):
    heard = heard_until_the_end(connected(service, server, 'spice'), said)
    assert (struct.unpack('<I', heard[16:20])[0] if heard else None) == status


@pytest.mark.parametrize(
    'said',
    [
        # A ticket that the key does not decrypt; another authentication method; a message that is too long.
        lambda key: struct.pack('<I', 1) + bytes(128),
        lambda key: struct.pack('<I', 2) + bytes(128),
        lambda key: ticket(key) + struct.pack('<HI', 104, 1 << 31),
    ],
)
def test_who_does_not_speak_spice_is_cut_off(service, server, said):
    connection = connected(service, server, 'spice')
    connection.sendall(link(MAIN))
    key = connection.recv(4096)[20:182]
    heard_until_the_end(connection, said(key))


def test_a_session_is_of_one_server(service, servers, server):
    other = servers.get(servers.add(name='other'))
    service.hypervisor.spawn(other, [])
    service.hypervisor.terminals[5] = terminal = Terminal(service.hypervisor, other)
    heard = heard_until_the_end(connected(service, server, 'spice'), link(DISPLAY, session=5))
    assert struct.unpack('<I', heard[16:20]) == (spice_link.UNKNOWN_SESSION,) and terminal.server == other


def test_what_need_not_be_understood_is_passed_over(terminal):
    sent = []
    session = rfb.Session(sent.append, terminal)
    parsing = session.conversation()
    assert next(parsing) == 12
    wanted, said = (
        parsing.send(b'RFB 003.008\n'),
        b'\1\1\2\0\0\2\0\0\0\0\xff\xff\xff\x21\2\0\0\0\5\1\0\1\0\1\6\0\0\0\0\0\0\3abc',
    )
    while said:
        piece, said = said[:wanted], said[wanted:]
        wanted = parsing.send(piece)
    session.update()
    assert terminal.line == '' and len(sent) == 4
