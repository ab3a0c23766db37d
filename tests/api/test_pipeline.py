"""The filters of oslo.middleware are configured by the service's own config file."""

import pytest
import webob

from computeapi import config
from computeapi.compute.notifications.outbox import NOBODY
from computeapi.errors import Invalid
from computeapi.main import Service
from computeapi.pipeline import load
from computeapi.serve.bootstrap import CATALOG
from computeapi.web.filters import seen_by_proxy

DASHBOARD = 'https://dashboard.example.org'
CONF = f"""
[api]
auth_strategy = none
[cors]
allowed_origin = {DASHBOARD}
[oslo_middleware]
enable_proxy_headers_parsing = true
max_request_body_size = 1000
"""


@pytest.fixture
def ask(store, tmp_path):
    path = tmp_path / 'computeapi.conf'
    path.write_text(CONF + f'[standalone]\ndata_dir = {tmp_path}\n')
    app = load(Service(config.load([str(path)]), store), 'compute')
    return lambda path, method='GET', **more: webob.Request.blank(path, method=method, **more).get_response(app)


def test_a_browser_may_use_versions_from_another_origin(ask):
    wanted = {
        'Origin': DASHBOARD,
        'Access-Control-Request-Method': 'POST',
        'Access-Control-Request-Headers': 'X-Auth-Token,OpenStack-API-Version',
    }
    preflight = ask('/v2.1/flavors', 'OPTIONS', headers=wanted)
    assert preflight.headers['Access-Control-Allow-Origin'] == DASHBOARD
    assert 'OpenStack-API-Version' in preflight.headers['Access-Control-Allow-Headers']
    answer = ask('/v2.1/flavors', headers={'Origin': DASHBOARD})
    assert 'OpenStack-API-Version' in answer.headers['Access-Control-Expose-Headers']
    assert 'Access-Control-Allow-Origin' not in ask('/v2.1/flavors', headers={'Origin': 'https://else.where'}).headers


def test_links_are_those_that_a_proxy_was_asked_for(ask):
    headers = {'X-Forwarded-Proto': 'https', 'X-Forwarded-Host': 'cloud.example.org', 'X-Forwarded-Prefix': '/compute'}
    (link,) = ask('/v2.1/', headers=headers).json['version']['links'][:1]
    assert link['href'] == 'https://cloud.example.org/compute/v2.1/'


KNOWN = """
[api]
auth_strategy = local
public_url = https://cloud.example.org
[identity]
bcrypt_cost = 4
[oslo_middleware]
enable_proxy_headers_parsing = true
"""


@pytest.fixture
def known(store, tmp_path):
    """A service with a configured public URL."""
    path = tmp_path / 'computeapi.conf'
    path.write_text(KNOWN + f'[standalone]\ndata_dir = {tmp_path}\n')
    service = Service(config.load([str(path)]), store)
    flavor = {'vcpus': 1, 'memory_mb': 1, 'root_gb': 1, 'ephemeral_gb': 0, 'swap': 0, 'rxtx_factor': 1.0}
    service.cloud.flavors.create(NOBODY, 'tiny', flavorid='1', is_public=True, **flavor)
    service.identity.catalog.announce(CATALOG)
    service.identity.populate('secret')
    return service


FORGED = {'Host': 'evil.example', 'X-Forwarded-Host': 'evil.example', 'Forwarded': 'host=evil.example;proto=http'}


@pytest.mark.parametrize(
    'path',
    ['/', '/v2.1', '/v2.1/', '/v2.1/flavors/1', '/identity/v3', '/identity/v3/regions', '/image/', '/networking/v2.0/',
     '/volume/', '/share/', '/identity/v3/auth/catalog', '/networking/v2.0/networks', '/elsewhere'],
)  # fmt: skip
def test_where_the_public_url_is_known_no_header_says_another(known, path):
    app = load(known, 'standalone')
    for headers in (FORGED, FORGED | {'X-Auth-Token': token_of(app)}):
        answer = webob.Request.blank(path, headers=headers).get_response(app)
        said = f'{answer.headers} {answer.text}'
        assert 'evil.example' not in said and ('http' not in said or 'https://cloud.example.org' in said)


def test_failed_logins_are_counted_by_the_address_that_the_proxy_saw(known):
    """The client may have sent the addresses before it."""
    app = load(known, 'standalone')

    def status(address):
        user = {'name': 'admin', 'domain': {'id': 'default'}, 'password': 'wrong'}
        body = {'auth': {'identity': {'methods': ['password'], 'password': {'user': user}}}}
        path, headers = '/identity/v3/auth/tokens', {'X-Forwarded-For': f'{address},192.0.2.1'}
        return webob.Request.blank(path, method='POST', json=body, headers=headers).get_response(app).status_code

    assert [status(f'198.51.100.{number}') for number in range(6)] == [401] * 5 + [429]


@pytest.mark.parametrize(
    ('sent', 'seen'),
    [
        ({'HTTP_X_FORWARDED_FOR': '198.51.100.1, 192.0.2.1'}, '192.0.2.1'),
        ({'HTTP_FORWARDED': 'for=198.51.100.1, proto=http;For="[2001:db8::1]:4711"'}, '[2001:db8::1]'),
        ({'HTTP_FORWARDED': 'for=198.51.100.1', 'HTTP_X_FORWARDED_FOR': '192.0.2.1'}, '192.0.2.1'),
        ({'HTTP_FORWARDED': 'host=cloud'}, '203.0.113.1'),
        ({}, '203.0.113.1'),
    ],
)
def test_the_address_that_the_proxy_saw(sent, seen):
    app = seen_by_proxy(lambda environ, start_response: [environ['REMOTE_ADDR']])
    assert app({'REMOTE_ADDR': '203.0.113.1', **sent}, None) == [seen]


def token_of(app):
    user = {'name': 'admin', 'domain': {'id': 'default'}, 'password': 'secret'}
    body = {'auth': {'identity': {'methods': ['password'], 'password': {'user': user}}}}
    answer = webob.Request.blank('/identity/v3/auth/tokens', method='POST', json=body, headers=FORGED).get_response(app)
    assert answer.json['token']['catalog'][0]['endpoints'][0]['url'].startswith('https://cloud.example.org/')
    return answer.headers['X-Subject-Token']


@pytest.mark.parametrize('url', ['https://cloud.example.org/cloud', 'cloud.example.org', 'ftp://cloud.example.org'])
def test_a_public_url_is_a_scheme_and_a_host(service, url):
    service.conf.set_override('public_url', url, 'api')
    with pytest.raises(Invalid, match='public_url'):
        load(service, 'compute')


def test_bodies_have_a_size(ask):
    assert ask('/v2.1/flavors', 'POST', body=b'x' * 2000, content_type='application/json').status_code == 413
