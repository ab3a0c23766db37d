"""The pages for browsers next to consoles; tests/tools opens them in one."""

import re

import pytest
import requests

TIMEOUT = 30


@pytest.fixture
def get(proxy):
    """get('novnc', '/vnc.html')"""

    def get(kind, path):
        return requests.get(f'http://{proxy[kind]}{path}', timeout=TIMEOUT)

    return get


@pytest.mark.parametrize(
    ('kind', 'path'),
    [
        ('novnc', '/vnc_auto.html?path=%3Ftoken%3Dx'),
        ('novnc', '/vnc_lite.html?path=%3Ftoken%3Dx'),
        ('novnc', '/vnc.html'),
        ('novnc', '/'),
        ('serial', '/?token=x'),
        ('serial', '/serial.html'),
        ('spice-html5', '/spice_auto.html?token=x'),
        ('spice-html5', '/'),
    ],
)
def test_a_page_and_all_that_it_is_made_of(get, kind, path):
    page = get(kind, path)
    assert page.status_code == 200 and page.headers['Content-Type'] == 'text/html; charset=utf-8'
    parts = re.findall('(?:href|src)="([^"]+)"', page.text)
    assert len(parts) == 2
    for part in parts:
        found = get(kind, f'/{part}')
        assert found.status_code == 200
        assert found.headers['Content-Type'] in ('text/css; charset=utf-8', 'text/javascript; charset=utf-8')
        imported = re.findall("from '\\./([^']+)'", found.text)
        parts += [name for name in imported if name not in parts]


def test_a_page_keeps_its_address_to_itself(conf, get):
    conf.set_override('allowed_origins', ['dashboard.example.org'], 'console')
    headers = get('novnc', '/vnc_auto.html').headers
    assert headers['Referrer-Policy'] == 'no-referrer' and headers['Cache-Control'] == 'no-store'
    policy = dict(each.strip().split(' ', 1) for each in headers['Content-Security-Policy'].split(';'))
    assert policy['default-src'] == "'none'" and policy['connect-src'] == policy['script-src'] == "'self'"
    framing = "'self' http://dashboard.example.org:* https://dashboard.example.org:*"
    assert policy['frame-ancestors'] == framing


@pytest.mark.parametrize(
    'path', ['/x.html', '/__init__.py', '/../proxy.py', '/%2e%2e/proxy.py', '//console.js', '/serial.html']
)
def test_there_is_nothing_else(get, path):
    assert get('novnc', path).status_code == 404
