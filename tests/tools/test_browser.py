"""The console pages in Chromium, at the URLs that `computeapi serve` returns."""

import base64
import re

import pytest
from playwright.sync_api import expect

from computeapi.backends.hypervisor.simulated_consoles.font import CURSOR
from computeapi.backends.hypervisor.simulated_consoles.screen import CELL_HEIGHT, COLUMNS, ROWS, USUAL, Painter
from computeapi.testing import Cloud

TRIES = 600
ENDED = re.compile(r'^Closed\. The (console has ended|server is no longer running there)\.$')
"""Either the proxy or the server itself notices the end first."""
SHOWS = """([row, height, pixels]) => {
  const canvas = document.getElementById('screen')
  const { data } = canvas.getContext('2d').getImageData(0, row * height, canvas.width, height)
  const expected = atob(pixels)
  return data.length === expected.length && data.every((byte, at) => byte === expected.charCodeAt(at))
}"""
"""Whether a row of text has exactly these pixels on the canvas."""


@pytest.fixture(scope='module')
def cloud():
    with Cloud(options={('spice', 'enabled'): True}) as cloud:
        yield cloud


@pytest.fixture(scope='module')
def connection(cloud):
    return cloud.connection('demo')


@pytest.fixture(scope='module')
def compute(connection):
    return connection.compute


@pytest.fixture
def server(connection):
    image = next(connection.image.images()).id
    server = connection.compute.create_server(name='web', flavor_id='1', image_id=image, networks='none')
    return connection.compute.wait_for_server(server, interval=0.1)


def log_with(compute, server, text):
    """The console log, as soon as it contains the text."""
    for _ in range(TRIES):
        log = compute.get_server_console_output(server)['output']
        if text in log:
            return log
    raise AssertionError(log)


def wait_for_row(page, number, text):
    """Wait until the screen shows this text in a row, to the pixel."""
    pixels = bytearray(Painter(USUAL._replace(red_shift=0, blue_shift=16)).paint(text.ljust(COLUMNS)))
    pixels[3::4] = b'\xff' * (len(pixels) // 4)
    for _ in range(TRIES):
        if page.evaluate(SHOWS, [number, CELL_HEIGHT, base64.b64encode(pixels).decode()]):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f'Row {number} does not show {text!r}.')


def type_at(page, text):
    """Type like a person, with Shift where necessary."""
    for character in text:
        page.keyboard.press(f'Shift+{character}' if character.isupper() or character in '{}!' else character)


@pytest.mark.parametrize('kind', ['novnc', 'spice-html5'])
def test_a_screen(compute, server, page, kind):
    page.goto(compute.create_console(server, kind)['url'])
    expect(page.locator('#state')).to_have_text('Connected')
    expect(page).to_have_title('web – console')
    lines = log_with(compute, server, 'ready').splitlines()
    wait_for_row(page, 0, lines[0])
    wait_for_row(page, len(lines), f'web> {CURSOR}')
    # The screen has the focus as soon as it accepts keys.
    expect(page.locator('#screen')).to_be_focused()
    type_at(page, 'Hello, {World}!')
    wait_for_row(page, len(lines), f'web> Hello, {{World}}!{CURSOR}')
    page.keyboard.press('Backspace')
    page.keyboard.press('Enter')
    log_with(compute, server, 'web> Hello, {World}\n')
    wait_for_row(page, len(lines) + 1, f'web> {CURSOR}')
    page.mouse.move(300, 300, steps=20)
    page.mouse.wheel(0, 100)
    # After the last row, the others scroll up.
    for number in range(ROWS):
        page.keyboard.press(str(number % 10))
        page.keyboard.press('Enter')
    log_with(compute, server, f'web> {(ROWS - 1) % 10}\n')
    for row in range(ROWS - 1):
        wait_for_row(page, row, f'web> {(row + 1) % 10}')
    page.keyboard.press('Control+Alt+Home')
    expect(page.locator('#full')).to_be_focused()
    compute.delete_server(server)
    expect(page.locator('#state')).to_have_text(ENDED)
    expect(page.locator('#again')).to_be_visible()


@pytest.mark.parametrize(('kind', 'last'), [('novnc', 1), ('spice-html5', 3)])
def test_a_pointer_that_moves_too_early_disturbs_nothing(compute, server, page, kind, last):
    """While the last connection, which is for keys and the pointer, is being opened."""
    opened, held = [], []

    def join(socket):
        opened.append(socket)
        is_last = len(opened) == last

        def answer(said):
            if is_last and held is not None:
                held.append(said)
            else:
                socket.send(said)

        socket.connect_to_server().on_message(answer)

    page.route_web_socket(re.compile('^ws:'), join)
    page.goto(compute.create_console(server, kind)['url'])
    while not held:
        page.wait_for_timeout(50)
    page.mouse.move(300, 300, steps=5)
    said, held = held, None
    for each in said:
        opened[-1].send(each)
    expect(page.locator('#screen')).to_be_focused()
    row = len(log_with(compute, server, 'ready').splitlines())
    wait_for_row(page, row, f'web> {CURSOR}')
    page.keyboard.type('early')
    wait_for_row(page, row, f'web> early{CURSOR}')
    expect(page.locator('#state')).to_have_text('Connected')
    compute.delete_server(server)


def test_the_button_of_the_page_opens_a_screen(cloud, compute, server, page):
    page.goto(f'{cloud.url}/ui/#/servers/{server.id}')
    page.get_by_role('banner').get_by_role('button', name='Log in').click()
    page.get_by_label('User').fill('demo')
    page.get_by_label('Password').fill(cloud.passwords['demo'])
    page.keyboard.press('Enter')
    with page.expect_popup() as opened:
        page.get_by_role('button', name='console').click()
    screen = opened.value
    expect(screen.locator('#state')).to_have_text('Connected')
    expect(screen).to_have_title('web – console')
    lines = log_with(compute, server, 'ready').splitlines()
    wait_for_row(screen, len(lines), f'web> {CURSOR}')
    screen.close()
    compute.stop_server(server)
    expect(page.locator('.about .status')).to_have_text('SHUTOFF')
    expect(page.get_by_role('button', name='console')).to_have_count(0)
    page.get_by_text('unavailable in its current state').click()
    expect(page.locator('.impossible li', has_text='console')).to_contain_text('Only when ACTIVE')
    page.get_by_role('button', name='Log out').click()
    compute.delete_server(server)


def test_a_terminal(compute, server, page):
    page.goto(compute.create_console(server, 'serial')['url'].replace('ws:', 'http:'))
    screen = page.locator('#screen')
    expect(screen).to_be_focused()
    page.keyboard.type('Hello, [World]?')
    page.keyboard.press('Backspace')
    page.keyboard.press('ArrowUp')
    page.keyboard.press('Enter')
    log = log_with(compute, server, 'web> Hello, [World]\n')
    expect(page.locator('#past')).to_have_text(log, use_inner_text=True)
    expect(page.locator('#before')).to_have_text('web> ')
    page.keyboard.press('Control+Alt+Home')
    expect(page.locator('#full')).to_be_focused()
    compute.stop_server(server)
    expect(page.locator('#state')).to_have_text(ENDED)


@pytest.mark.parametrize(
    'endless', ['x', '\t', '\x1b[0', '\x1b[ ', '\x1b]x'], ids=['line', 'tabs', 'numbers', 'spaces', 'title']
)
def test_a_guest_that_never_ends_a_line_hangs_no_terminal(compute, server, page, endless):
    piece = (endless[:-1] + endless[-1] * 60_000).encode()

    def floods(socket):
        for number in range(200):
            socket.send(piece if number == 0 else piece[-60_000:])
        socket.send(b'\x07\r\nover\r\n')

    page.route_web_socket(re.compile('token='), floods)
    page.goto(compute.create_console(server, 'serial')['url'].replace('ws:', 'http:'))
    expect(page.locator('#past')).to_contain_text(re.compile('over\n$'), use_inner_text=True)
    assert page.evaluate('document.getElementById("screen").textContent.length') < 5_000_000


def test_an_address_that_is_no_longer_valid(compute, server, browser):
    page = browser.new_page()
    page.goto(compute.create_console(server, 'novnc')['url'][:-1] + 'x')
    expect(page.locator('#state')).to_contain_text('Access denied: this URL has expired')
    page.close()
