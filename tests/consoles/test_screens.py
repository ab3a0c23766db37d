"""Simulated servers as VNC and SPICE viewers see them through the proxy."""

import struct

import pytest

from computeapi.backends.hypervisor.simulated_consoles.screen import ROWS, USUAL, PixelFormat
from tests.consoles.spice_viewer import CONTROL, COPY, COPY_BITS, SpiceViewer
from tests.consoles.viewers import Viewer


@pytest.fixture
def viewer(url):
    with Viewer(url('novnc')) as viewer:
        yield viewer


def test_the_screen_shows_the_log_and_a_prompt(viewer):
    assert (viewer.name, viewer.width, viewer.height) == ('web', 960, 480)
    assert viewer.update(incremental=False) == list(range(ROWS))
    lines = viewer.text.splitlines()
    assert lines[0] == '[simulated] web: 1 CPUs, 64 MiB of memory'
    assert lines[-2:] == ['[simulated] web: ready', 'web> \u2588']


def test_typed_text_echoes_and_only_its_row_is_sent(service, server, viewer):
    viewer.update()
    prompt = viewer.text.count('\n')
    viewer.type('ls')
    viewer.read_until('web> ls\u2588')
    viewer.type(' -l')
    assert viewer.update() == [prompt]
    viewer.type('\n')
    viewer.read_until('web> ls -l\nweb> \u2588')
    assert service.hypervisor.console_output(server, 1) == 'web> ls -l'


def test_control_keys(viewer):
    viewer.type('rm')
    viewer.press(0xFFE3, release=False)
    viewer.type('c')
    viewer.type('\n')
    viewer.read_until('web>\nweb> \u2588')


def test_what_the_server_writes_is_seen(service, server, viewer):
    viewer.update()
    service.hypervisor.log(server, 'something happened')
    assert viewer.update()
    viewer.read_until('something happened\nweb> ')


@pytest.mark.parametrize(
    'pixels',
    [
        USUAL._replace(red_shift=0, blue_shift=16),
        PixelFormat(16, 16, True, True, 31, 63, 31, 11, 5, 0),
        PixelFormat(8, 8, False, True, 7, 7, 3, 0, 3, 6),
    ],
)
def test_pixels_in_other_formats(viewer, pixels):
    viewer.use(pixels.packed())
    viewer.update(incremental=False)
    assert viewer.read_until('[simulated] web: ready')


# ------------------------------------------------------------------ SPICE


@pytest.fixture
def spice(url):
    with SpiceViewer(url('spice-html5')) as viewer:
        viewer.read_until('ready\nweb> \u2588')
        yield viewer


def test_a_viewer_of_spice_sees_the_same_screen(url, spice, viewer):
    assert (spice.name, spice.width, spice.height) == ('web', 960, 480)
    viewer.update()
    assert spice.text == viewer.text


def test_what_is_typed_by_spice_shows_at_once_in_its_row(service, server, spice):
    spice.type('Is {THIS}, 2 + 2 = 4?')
    spice.read_until('web> Is {THIS}, 2 + 2 = 4?\u2588')
    spice.press(0x0E)
    spice.read_until('web> Is {THIS}, 2 + 2 = 4\u2588')
    spice.type('\n')
    spice.read_until('= 4\nweb> \u2588')
    assert service.hypervisor.console_output(server, 1) == 'web> Is {THIS}, 2 + 2 = 4'
    spice.type('rm')
    spice.press(CONTROL, release=False)
    spice.type('c')
    spice.release(CONTROL)
    spice.type('ls')
    spice.read_until('web> ls\u2588')


def test_rows_that_only_move_are_not_sent_again(service, server, spice):
    for number in range(ROWS):
        service.hypervisor.log(server, f'line {number}')
    spice.read_until(f'line {ROWS - 1}\nweb> ')
    spice.type('more\n')
    spice.read_until('web> more\nweb> ')
    kinds = []
    spice.type('again\n')
    while 'web> again\nweb> ' not in spice.text:
        kinds.append(spice.update())
    assert COPY_BITS in kinds and kinds.count(COPY) < ROWS
    assert spice.text.startswith('[simulated] web: line 3\n')


def test_the_pointer_is_heard(spice):
    for number in range(4):
        spice.inputs.send(112, struct.pack('<IIHB', number, number, 0, 0))
    assert spice.inputs.message_of(111) == b''
