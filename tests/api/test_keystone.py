"""auth_strategy keystone as in deployments: with and without a token cache, with Keystone away, and project checks."""

import shutil
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing
from datetime import timedelta
from wsgiref.simple_server import make_server

import pytest
import webob
from oslo_config import cfg

from computeapi import config
from computeapi.compute.flavors import FlavorManager
from computeapi.errors import NotAuthenticated
from computeapi.main import Service
from computeapi.standalone.identity import keystone as keystone_app
from computeapi.web import keystone as filters
from computeapi.web.auth import SERVICE_TOKEN_KEY, TOKEN_INFO, TOKEN_KEY, by_keystone_headers
from computeapi.web.keystone import RememberedCallers
from tests.api.test_auth import KEYSTONE, PRIVATE, Cloud, Quiet, identity  # noqa: F401
from tests.backends.implementations import ALICE
from tests.clock import StandingClock
from tests.proxy import Proxy

LOOK = 'GET /v3/auth/tokens'
UNKNOWN = {'badRequest': {'code': 400, 'message': 'Project ID unknown is not a valid project.'}}
AWAY = {'serviceUnavailable': {'code': 503, 'message': 'Keystone is currently unavailable.'}}
NOWHERE = '127.0.0.1:9'
UNCLOSED = pytest.mark.filterwarnings('ignore::pytest.PytestUnraisableExceptionWarning')
"""The memcached client does not close a socket that fails to connect."""


@pytest.fixture(scope='module')
def memcached():
    """The HOST:PORT of a memcached."""
    program = shutil.which('memcached')
    assert program, 'This test needs memcached'
    with closing(socket.create_server(('127.0.0.1', 0))) as free:
        port = free.getsockname()[1]
    with subprocess.Popen([program, '-u', 'nobody', '-l', '127.0.0.1', '-p', str(port), '-U', '0']) as process:
        deadline = time.monotonic() + 10
        while True:
            try:
                socket.create_connection(('127.0.0.1', port)).close()
                break
            except ConnectionRefusedError:
                assert time.monotonic() < deadline
                time.sleep(0.05)
        yield f'127.0.0.1:{port}'
        process.terminate()


@pytest.fixture
def cloud_with(store, identity, tmp_path):
    """cloud_with(url, options): the compute API with the Keystone at this URL, and these further options."""

    def make(url, options='', **backends):
        file = tmp_path / 'computeapi.conf'
        file.write_text(KEYSTONE.format(url=url) + options)
        overrides = {('api', 'auth_strategy'): 'keystone', ('standalone', 'data_dir'): str(tmp_path)}
        overrides |= {(kind, 'backend'): backend for kind, backend in backends.items()}
        return Cloud(Service(config.load([str(file)], overrides), store), 'keystone', identity)

    return make


class Recorded:
    """An app that records its requests."""

    def __init__(self, app):
        self.app, self.asked = app, []

    def __call__(self, environ, start_response):
        self.asked.append(f'{environ["REQUEST_METHOD"]} {environ["PATH_INFO"]}')
        return self.app(environ, start_response)

    def times(self, request):
        return self.asked.count(request)


@pytest.fixture
def recorded(identity):
    return Recorded(keystone_app(identity))


@pytest.fixture
def proxy(recorded):
    """A proxy in front of a Keystone on the loopback."""
    server = make_server('127.0.0.1', 0, recorded, handler_class=Quiet)
    thread = threading.Thread(target=server.serve_forever, args=[0.01])
    thread.start()
    proxy = Proxy('127.0.0.1', server.server_port)
    yield proxy
    proxy.close()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def url(proxy):
    return f'http://127.0.0.1:{proxy.port}'


CACHES = {
    'none': '',
    'memcached': 'memcached_servers = {memcached}\n',
    'encrypted': 'memcached_servers = {memcached}\nmemcache_security_strategy = ENCRYPT\nmemcache_secret_key = key\n',
}


@pytest.fixture
def forgetful(monkeypatch):
    """The middleware is asked about the token at each request."""
    monkeypatch.setattr(filters, 'REMEMBERED_SECONDS', 0)


@pytest.mark.usefixtures('forgetful')
@pytest.mark.parametrize('cache', CACHES)
def test_a_token_is_looked_at_once(cloud_with, recorded, url, cache, memcached):
    options = CACHES[cache].format(memcached=memcached)
    cloud = cloud_with(url, options)
    demo = cloud.credentials('demo')
    assert [cloud.ask('GET /v2.1/flavors', demo).status_code for _ in range(5)] == [200] * 5
    assert recorded.times(LOOK) == 1
    # Another process uses what memcached has stored.
    assert cloud_with(url, options).ask('GET /v2.1/flavors', demo).status_code == 200
    assert recorded.times(LOOK) == (1 if options else 2)


@UNCLOSED
@pytest.mark.usefixtures('forgetful')
def test_without_its_cache_keystone_is_asked(cloud_with, recorded, url):
    cloud = cloud_with(url, f'memcached_servers = {NOWHERE}\n')
    demo = cloud.credentials('demo')
    assert [cloud.ask('GET /v2.1/flavors', demo).status_code for _ in range(2)] == [200] * 2
    assert recorded.times(LOOK) == 2


def test_a_cache_whose_library_is_missing_is_told_at_the_start(cloud_with, url, monkeypatch):
    for name in ('memcache', 'oslo_cache._memcache_pool'):
        monkeypatch.setitem(sys.modules, name, None)
    # A package keeps references to its imported modules.
    monkeypatch.delattr('oslo_cache._memcache_pool', raising=False)
    with pytest.raises(cfg.ConfigFileValueError, match='openstack'):
        cloud_with(url, f'memcached_servers = {NOWHERE}\n')


def test_tokens_that_are_known_are_good_while_keystone_is_away(cloud_with, proxy, url):
    cloud = cloud_with(url, 'http_request_max_retries = 0\n')
    known, unknown = cloud.credentials('demo'), cloud.credentials('demo')
    assert cloud.ask('GET /v2.1/flavors', known).status_code == 200
    proxy.refuse()
    assert cloud.ask('GET /v2.1/flavors', known).status_code == 200
    answer = cloud.ask('GET /v2.1/flavors', unknown)
    assert (answer.status_code, answer.json, answer.content_type) == (503, AWAY, 'application/json')
    proxy.go_on()
    assert cloud.ask('GET /v2.1/flavors', unknown).status_code == 200


def test_projects_are_looked_up_for_administrators(cloud_with, recorded, url):
    cloud = cloud_with(url, identity='keystone')
    admin, demo, project = cloud.credentials('admin'), cloud.credentials('demo'), cloud.project('demo')
    assert cloud.ask(f'GET /v2.1/os-quota-sets/{project}', admin).status_code == 200
    assert recorded.times(f'GET /v3/projects/{project}') == 1
    for path in ('unknown', 'unknown/detail', 'unknown/defaults'):
        answer = cloud.ask(f'GET /v2.1/os-quota-sets/{path}', admin)
        assert (answer.status_code, answer.json) == (400, UNKNOWN)
    assert cloud.ask('PUT /v2.1/os-quota-sets/unknown', admin, {'quota_set': {'cores': 1}}).status_code == 400
    assert cloud.ask('POST /v2.1/flavors', admin, {'flavor': PRIVATE}).status_code == 200
    access = {'addTenantAccess': {'tenant': 'unknown'}}
    assert cloud.ask('POST /v2.1/flavors/x/action', admin, access).status_code == 400
    # No look-up is needed for the caller's own project.
    before = len(recorded.asked)
    assert cloud.ask(f'GET /v2.1/os-quota-sets/{cloud.project("admin")}', admin).status_code == 200
    assert cloud.ask(f'GET /v2.1/os-quota-sets/{project}', demo).status_code == 200
    assert [each for each in recorded.asked[before:] if 'projects' in each] == []


def test_projects_cannot_be_looked_up_while_keystone_is_away(cloud_with, proxy, url):
    cloud = cloud_with(url, '[keystone]\nconnect_retries = 0\n', identity='keystone')
    admin = cloud.credentials('admin')
    assert cloud.ask('GET /v2.1/flavors', admin).status_code == 200
    proxy.refuse()
    answer = cloud.ask(f'GET /v2.1/os-quota-sets/{cloud.project("demo")}', admin)
    assert (answer.status_code, answer.json) == (503, AWAY)


def test_nobody_logs_in_while_keystone_is_away(store, identity, proxy, url, tmp_path):
    file = tmp_path / 'computeapi.conf'
    file.write_text(KEYSTONE.format(url=url) + '[keystone]\nconnect_retries = 0\n')
    overrides = {('api', 'auth_strategy'): 'http_basic', ('identity', 'backend'): 'keystone'}
    cloud = Cloud(Service(config.load([str(file)], overrides), store), 'http_basic', identity)
    assert cloud.ask('GET /v2.1/flavors', cloud.credentials('demo')).status_code == 200
    assert cloud.ask('GET /v2.1/flavors', cloud.credentials('demo', 'wrong')).status_code == 401
    proxy.refuse()
    answer = cloud.ask('GET /v2.1/flavors', cloud.credentials('demo'))
    assert (answer.status_code, answer.json) == (503, AWAY)


def test_a_token_by_its_former_name_is_the_callers(cloud_with, url):
    cloud = cloud_with(url)
    token = cloud.credentials('demo')['X-Auth-Token']
    assert cloud.ask('GET /v2.1/flavors', {'X-Storage-Token': token}).status_code == 200
    headers = {'X-Storage-Token': f' {token}', 'X-User-Id': 'demo', 'X-Roles': 'Member, reader'}
    context = by_keystone_headers(webob.Request.blank('/', headers=headers, environ={TOKEN_INFO: {'token': {}}}))
    assert (context.auth_token, context.roles) == (token, {'member', 'reader'})


def test_the_scope_is_that_of_the_caller_not_of_the_service_that_asks_for_it():
    headers = {'X-User-Id': 'demo', 'Openstack-System-Scope': 'all', 'X-Service-Roles': 'service,Admin'}
    headers |= {'X-Is-Admin-Project': 'False', 'X-Service-Identity-Status': 'Confirmed'}
    context = by_keystone_headers(webob.Request.blank('/', headers=headers, environ={TOKEN_INFO: {'token': {}}}))
    assert (context.system_scope, context.service_roles, context.roles) == (None, {'service', 'admin'}, set())
    assert not context.is_admin_project


@pytest.mark.parametrize('status', ['X-Identity-Status', 'X-Service-Identity-Status'])
def test_what_the_middleware_left_to_us_to_refuse_is_refused(status):
    headers = {'X-User-Id': 'demo', status: 'Invalid'}
    with pytest.raises(NotAuthenticated):
        by_keystone_headers(webob.Request.blank('/', headers=headers, environ={TOKEN_INFO: {'token': {}}}))


# ------------------------------------------------------------------ remembered callers


@pytest.fixture
def hands(monkeypatch):
    found = StandingClock()
    monkeypatch.setattr(filters, 'utcnow', found)
    return found


def asked_with(token, expires_at='2999-01-01T00:00:00.000000Z', **kwargs):
    """The environ that the middleware leaves for a request with a valid token."""
    return {TOKEN_KEY: token, TOKEN_INFO: {'token': {'expires_at': expires_at, **kwargs}}}


@UNCLOSED
def test_a_caller_is_remembered_for_a_moment(cloud_with, recorded, url, hands):
    """With a middleware that does not cache, as shown by the requests to Keystone."""
    cloud = cloud_with(url, f'memcached_servers = {NOWHERE}\n')
    demo, admin = cloud.credentials('demo'), cloud.credentials('admin')
    answers = [cloud.ask('GET /v2.1/flavors', demo) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200] * 3 and recorded.times(LOOK) == 1
    # They are still separate requests.
    assert len({answer.headers['X-Compute-Request-Id'] for answer in answers}) == 3
    assert cloud.ask('POST /v2.1/flavors', demo, {'flavor': PRIVATE}).status_code == 403
    assert cloud.ask('POST /v2.1/flavors', admin, {'flavor': PRIVATE}).status_code == 200
    assert cloud.ask('POST /v2.1/flavors', demo, {'flavor': PRIVATE}).status_code == 403
    asked = recorded.times(LOOK)
    hands.forward(11)
    assert cloud.ask('GET /v2.1/flavors', demo).status_code == 200 and recorded.times(LOOK) == asked + 1


def test_who_is_remembered_is_not_who_the_headers_say(cloud_with, url):
    cloud = cloud_with(url)
    demo = cloud.credentials('demo')
    forged = demo | {
        'X-User-Id': 'admin',
        'X-Roles': 'admin',
        'X-Project-Id': 'admin',
        'X-Identity-Status': 'Confirmed',
    }
    for _ in range(2):
        assert cloud.ask('POST /v2.1/flavors', forged, {'flavor': PRIVATE}).status_code == 403
    assert cloud.ask('GET /v2.1/flavors', forged | {'X-Auth-Token': 'x'}).status_code == 401


@UNCLOSED
def test_a_token_that_is_revoked_is_good_no_longer_than_is_said(cloud_with, identity, url, hands):
    cloud = cloud_with(url, f'memcached_servers = {NOWHERE}\n')
    demo = cloud.credentials('demo')
    assert cloud.ask('GET /v2.1/flavors', demo).status_code == 200
    identity.tokens.revoke(demo['X-Auth-Token'])
    hands.forward(9)
    assert cloud.ask('GET /v2.1/flavors', demo).status_code == 200
    hands.forward(1)
    assert cloud.ask('GET /v2.1/flavors', demo).status_code == 401


def test_without_a_cache_nobody_is_remembered(cloud_with, recorded, url):
    cloud = cloud_with(url, 'token_cache_time = -1\n')
    demo = cloud.credentials('demo')
    assert [cloud.ask('GET /v2.1/flavors', demo).status_code for _ in range(3)] == [200] * 3
    assert recorded.times(LOOK) == 3


def test_a_caller_is_not_remembered_beyond_its_token(hands):
    callers = RememberedCallers(10)
    ends = (hands.now + timedelta(seconds=4)).isoformat() + 'Z'
    callers.remember(asked_with('one', ends), ALICE)
    hands.forward(3)
    assert callers.of({TOKEN_KEY: 'one'}) is ALICE
    hands.forward(1)
    assert callers.of({TOKEN_KEY: 'one'}) is None


def test_nobody_is_remembered_when_the_clock_was_set_back(hands):
    callers = RememberedCallers(10)
    callers.remember(asked_with('one'), ALICE)
    hands.forward(-1)
    assert callers.of({TOKEN_KEY: 'one'}) is None


@pytest.mark.parametrize(
    'facts', [{'application_credential': {'access_rules': []}}, {'bind': {'kerberos': 'x'}}], ids=['rules', 'bind']
)
def test_what_is_good_for_some_requests_is_not_remembered(facts):
    callers = RememberedCallers(10)
    callers.remember(asked_with('one', **facts), ALICE)
    assert callers.of({TOKEN_KEY: 'one'}) is None
    callers.remember(asked_with('one', application_credential={'id': 'x', 'restricted': True}), ALICE)
    assert callers.of({TOKEN_KEY: 'one'}) is ALICE


def test_nobody_is_remembered_beside_a_service():
    callers = RememberedCallers(10)
    callers.remember(asked_with('one') | {SERVICE_TOKEN_KEY: 'other'}, ALICE)
    assert callers.of({TOKEN_KEY: 'one'}) is None
    callers.remember(asked_with('one'), ALICE)
    assert callers.of({TOKEN_KEY: 'one', SERVICE_TOKEN_KEY: 'other'}) is None
    assert callers.of({}) is None


def test_no_more_are_remembered_than_there_is_room_for():
    callers = RememberedCallers(10)
    for number in range(3 * filters.MAX_REMEMBERED):
        callers.remember(asked_with(f'{number}'), ALICE)
        assert len(callers.known) <= filters.MAX_REMEMBERED
    assert callers.of({TOKEN_KEY: f'{number}'}) is ALICE


def test_a_refusal_says_where_tokens_come_from_also_to_those_who_are_remembered(cloud_with, url, monkeypatch):
    cloud = cloud_with(url)
    demo = cloud.credentials('demo')
    assert cloud.ask('GET /v2.1/flavors', demo).status_code == 200

    def refuse(*args, **kwargs):
        raise NotAuthenticated()

    monkeypatch.setattr(FlavorManager, 'page', refuse)
    answer = cloud.ask('GET /v2.1/flavors', demo)
    assert (answer.status_code, answer.headers['WWW-Authenticate']) == (401, f'Keystone uri="{url}"')
