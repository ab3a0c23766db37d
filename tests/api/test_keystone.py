"""auth_strategy keystone as deployments have it: tokens cached or not, Keystone away, projects looked up."""

import shutil
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing
from wsgiref.simple_server import make_server

import pytest
import webob
from oslo_config import cfg

from computeapi import config
from computeapi.errors import NotAuthenticated
from computeapi.main import Service
from computeapi.standalone.identity import keystone as keystone_app
from computeapi.web.auth import TOKEN_INFO, by_keystone_headers
from tests.api.test_auth import KEYSTONE, PRIVATE, Cloud, Quiet, identity  # noqa: F401
from tests.proxy import Proxy

LOOK = 'GET /v3/auth/tokens'
UNKNOWN = {'badRequest': {'code': 400, 'message': 'Project ID unknown is not a valid project.'}}
AWAY = {'serviceUnavailable': {'code': 503, 'message': 'Keystone is currently unavailable.'}}
NOWHERE = '127.0.0.1:9'


@pytest.fixture(scope='module')
def memcached():
    """HOST:PORT of one."""
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
    """A function: the compute API whose tokens are of the Keystone at a URL, with these options more."""

    def make(url, options='', **backends):
        file = tmp_path / 'computeapi.conf'
        file.write_text(KEYSTONE.format(url=url) + options)
        overrides = {('api', 'auth_strategy'): 'keystone', ('standalone', 'data_dir'): str(tmp_path)}
        overrides |= {(kind, 'backend'): backend for kind, backend in backends.items()}
        return Cloud(Service(config.load([str(file)], overrides), store), 'keystone', identity)

    return make


class Recorded:
    """An app, and what it was asked."""

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
    """Before a Keystone that is on the loopback."""
    server = make_server('127.0.0.1', 0, recorded, handler_class=Quiet)
    thread = threading.Thread(target=server.serve_forever)
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


@pytest.mark.parametrize('cache', CACHES)
def test_a_token_is_looked_at_once(cloud_with, recorded, url, cache, memcached):
    options = CACHES[cache].format(memcached=memcached)
    cloud = cloud_with(url, options)
    demo = cloud.credentials('demo')
    assert [cloud.ask('GET /v2.1/flavors', demo).status_code for _ in range(5)] == [200] * 5
    assert recorded.times(LOOK) == 1
    # Another process has what memcached has.
    assert cloud_with(url, options).ask('GET /v2.1/flavors', demo).status_code == 200
    assert recorded.times(LOOK) == (1 if options else 2)


# The client of memcached does not close a socket that does not connect.
@pytest.mark.filterwarnings('ignore::pytest.PytestUnraisableExceptionWarning')
def test_without_its_cache_keystone_is_asked(cloud_with, recorded, url):
    cloud = cloud_with(url, f'memcached_servers = {NOWHERE}\n')
    demo = cloud.credentials('demo')
    assert [cloud.ask('GET /v2.1/flavors', demo).status_code for _ in range(2)] == [200] * 2
    assert recorded.times(LOOK) == 2


def test_a_cache_whose_library_is_missing_is_told_at_the_start(cloud_with, url, monkeypatch):
    for name in ('memcache', 'oslo_cache._memcache_pool'):
        monkeypatch.setitem(sys.modules, name, None)
    # A package keeps the modules that were imported from it.
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
    # Nobody is asked about a project that the caller is in.
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
