"""What a viewer of VNC sees of a simulated server, through the proxy."""

import pytest

from computeapi.backends.hypervisor.simulated_consoles.screen import ROWS, USUAL, PixelFormat
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
