"""A browser, and pages in which no error may occur."""

import shutil
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect, sync_playwright

# As long as Playwright waits for anything else: a busy machine takes longer than the usual 5 s.
expect.set_options(timeout=30_000)

ARGUMENTS = [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
]


@pytest.fixture(scope='module')
def browser(tmp_path_factory):
    chromium = shutil.which('chromium')
    assert chromium, 'There is no Chromium; tests/tools/install installs it.'
    folder = tmp_path_factory.mktemp('chromium')
    with sync_playwright() as playwright:
        launch = playwright.chromium.launch_persistent_context
        browser = launch(folder, executable_path=chromium, headless=True, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def page(browser):
    """A new page, which may only contact the loopback, and in which no error may occur."""
    page, errors, asked = browser.new_page(), [], []
    page.on('pageerror', lambda error: errors.append(str(error)))
    page.on('console', lambda message: errors.append(message.text) if message.type == 'error' else None)
    page.on('request', lambda request: asked.append(urlsplit(request.url).hostname))
    yield page
    page.close()
    assert set(asked) == {'127.0.0.1'} and not errors
