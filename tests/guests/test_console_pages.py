"""The console pages in Chromium: they show the screen of a guest exactly, and send key presses."""

import base64
from concurrent.futures import ThreadPoolExecutor

from playwright.sync_api import expect

from computeapi.backends.hypervisor.qemu.monitor import Monitor
from computeapi.backends.hypervisor.qemu.process import QMP
from tests.deployment.conftest import serve, start  # noqa: F401
from tests.guests.boot_sector import BANNER
from tests.guests.screens import wait_until
from tests.guests.test_serve import boot, cloud, data, running, wrote  # noqa: F401
from tests.tools.conftest import browser, page  # noqa: F401

CANVAS = """() => {
  const { width, height } = document.getElementById('screen')
  const { data } = document.getElementById('screen').getContext('2d').getImageData(0, 0, width, height)
  const parts = []
  for (let at = 0; at < data.length; at += 0x8000) parts.push(String.fromCharCode(...data.subarray(at, at + 0x8000)))
  return [width, height, btoa(parts.join(''))]
}"""
"""The canvas's width and height, and its pixels: red, green, blue, and 255."""


def painted(page):
    """The size of the canvas, and its pixels: red, green and blue."""
    width, height, encoded = page.evaluate(CANVAS)
    pixels = bytearray(base64.b64decode(encoded))
    del pixels[3::4]
    return (width, height), bytes(pixels)


def drawn(folder):
    """The same for QEMU's screen, which it writes as a PPM."""
    file = folder / 'screen.ppm'
    # Playwright runs an event loop in this thread, and a QEMU monitor needs one, too.
    with ThreadPoolExecutor(1) as other:
        other.submit(dump, folder, file.name).result()
    _, size, _, pixels = file.read_bytes().split(b'\n', 3)
    width, height = map(int, size.split())
    return (width, height), pixels


def dump(folder, name):
    with Monitor(folder / QMP) as monitor:
        monitor.execute('screendump', filename=name)


def test_the_screen_of_a_guest(cloud, data, page):
    _, client = cloud(OS_SPICE__ENABLED='true')
    server = boot(client, data)
    assert wrote(client, server, f'{BANNER}01')
    [guest] = running(data)
    for kind in ('novnc', 'spice-html5'):
        page.goto(client.compute.create_console(server, kind)['url'])
        expect(page.locator('#name')).to_contain_text(server.id)
        expect(page.locator('#screen')).to_be_focused()
        # A keyboard buffers few keys until the guest reads them.
        page.keyboard.type(f'by {kind}', delay=50)
        assert wrote(client, server, f'by {kind}')
        wait_until(lambda: painted(page) == drawn(guest.folder), 'the canvas is not what the guest shows')
        _, pixels = painted(page)
        assert len(set(zip(*(pixels[at::3] for at in range(3)), strict=True))) > 1
    guest.end()
    expect(page.locator('#state')).to_have_text('Closed. The console has ended.')
