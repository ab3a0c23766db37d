"""Authentication by each strategy; keystone uses keystonemiddleware in front of the built-in identity service."""

import base64
import logging
import threading
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest
import webob

from computeapi import config
from computeapi.backends.identity.local import LocalIdentity
from computeapi.backends.identity.local.roles import Target
from computeapi.context import Context
from computeapi.main import Service
from computeapi.pipeline import load
from computeapi.standalone.identity import keystone as keystone_app
from computeapi.web import auth

PASSWORDS = {'admin': 'admin-secret', 'demo': 'demo-secret', 'other': 'other-secret'}
STRATEGIES = ('none', 'http_basic', 'local', 'keystone')
UNAUTHORIZED = {
    'error': {'code': 401, 'title': 'Unauthorized', 'message': 'The request you have made requires authentication.'}
}
PRIVATE = {'id': 'x', 'name': 'x', 'ram': 64, 'vcpus': 1, 'disk': 1, 'os-flavor-access:is_public': False}
CATALOG = [{'type': 'identity', 'name': 'keystone', 'path': '/'}]
KEYSTONE = """
[keystone_authtoken]
auth_type = password
auth_url = {url}
www_authenticate_uri = {url}
username = admin
password = admin-secret
project_name = admin
user_domain_name = Default
project_domain_name = Default
service_token_roles_required = true
"""


class Cloud:
    """The compute API with one strategy, and the users admin, demo and other, each in a project of its own."""

    def __init__(self, service, strategy, identity):
        self.strategy, self.identity = strategy, identity
        self.app = load(service, 'compute')

    def credentials(self, user, password=None):
        """The header that authenticates a user."""
        password = password or PASSWORDS[user]
        if self.strategy == 'none':
            return {'X-Auth-Token': f'{user}:{self.project(user)}'}
        if self.strategy == 'http_basic':
            return {'Authorization': 'Basic ' + base64.b64encode(f'{user}:{password}'.encode()).decode()}
        return {'X-Auth-Token': self.token(user, password)}

    def token(self, user, password):
        proof = {'user': {'name': user, 'domain': {'id': 'default'}, 'password': password}}
        body = {'auth': {'identity': {'methods': ['password'], 'password': proof}}}
        req = webob.Request.blank('/v3/auth/tokens', method='POST', json=body)
        return req.get_response(keystone_app(self.identity)).headers['X-Subject-Token']

    def project(self, name):
        if self.strategy == 'none':
            return name.encode().hex()
        [project] = self.identity.projects.list(name=name, domain_id='default')
        return project.id

    def ask(self, request, headers=None, json=None):
        method, path = request.split()
        body = {} if json is None else {'json': json}
        return webob.Request.blank(path, method=method, headers=headers or {}, **body).get_response(self.app)


class Quiet(WSGIRequestHandler):
    def log_message(self, *about):
        pass


@pytest.fixture
def identity(store):
    identity = LocalIdentity(store, bcrypt_cost=4)
    identity.populate(PASSWORDS['admin'], PASSWORDS['demo'])
    identity.catalog.announce(CATALOG)
    project = identity.projects.create('other')
    user = identity.users.create('other', password=PASSWORDS['other'], default_project_id=project.id)
    [member] = identity.roles.list(name='member')
    identity.grants.add(user.id, Target('project', project.id), member.id)
    return identity


@pytest.fixture
def keystone(identity):
    """The identity service on a port of the loopback; its URL."""
    server = make_server('127.0.0.1', 0, keystone_app(identity), handler_class=Quiet)
    thread = threading.Thread(target=server.serve_forever, args=[0.01])
    thread.start()
    yield f'http://127.0.0.1:{server.server_port}'
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(params=STRATEGIES)
def cloud(request, store, identity, tmp_path):
    files = []
    if request.param == 'keystone':
        files = [tmp_path / 'computeapi.conf']
        files[0].write_text(KEYSTONE.format(url=request.getfixturevalue('keystone')))
    overrides = {
        ('api', 'auth_strategy'): request.param,
        ('standalone', 'data_dir'): str(tmp_path),
        ('identity', 'bcrypt_cost'): 4,
    }
    return Cloud(Service(config.load(map(str, files), overrides), store), request.param, identity)


def test_roles_decide_what_a_caller_may(cloud):
    demo, admin = cloud.credentials('demo'), cloud.credentials('admin')
    assert cloud.ask('GET /v2.1/flavors', demo).status_code == 200
    assert cloud.ask('POST /v2.1/flavors', demo, {'flavor': PRIVATE}).status_code == 403
    assert cloud.ask('POST /v2.1/flavors', admin, {'flavor': PRIVATE}).status_code == 200


def test_what_is_another_projects_is_not_there(cloud):
    admin = cloud.credentials('admin')
    assert cloud.ask('POST /v2.1/flavors', admin, {'flavor': PRIVATE}).status_code == 200
    access = {'addTenantAccess': {'tenant': cloud.project('demo')}}
    assert cloud.ask('POST /v2.1/flavors/x/action', admin, access).status_code == 200
    assert cloud.ask('GET /v2.1/flavors/x', cloud.credentials('demo')).status_code == 200
    assert cloud.ask('GET /v2.1/flavors/x', cloud.credentials('other')).status_code == 404


def test_the_project_of_the_url_must_be_the_callers(cloud):
    demo, own, other = cloud.credentials('demo'), cloud.project('demo'), cloud.project('other')
    assert cloud.ask(f'GET /v2.1/{own}/flavors', demo).status_code == 200
    assert cloud.ask(f'GET /v2.1/{other}/flavors', demo).status_code == 400


def test_a_caller_without_credentials_is_told_where_to_get_some(cloud):
    answer = cloud.ask('GET /v2.1/flavors')
    if cloud.strategy == 'none':
        assert answer.status_code == 200
        return
    assert (answer.status_code, answer.json) == (401, UNAUTHORIZED)
    scheme, _, parameter = answer.headers['WWW-Authenticate'].partition(' ')
    assert scheme == ('Basic' if cloud.strategy == 'http_basic' else 'Keystone')
    assert parameter.startswith(('uri="http://', 'realm='))


@pytest.mark.parametrize('headers', [{'X-Auth-Token': 'made-up'}, {'Authorization': 'Basic YWRtaW46bm8='}])
def test_wrong_credentials_are_refused(cloud, headers):
    if cloud.strategy == 'none':
        headers = {'X-Auth-Token': 'somebody'}
        assert cloud.ask('POST /v2.1/flavors', headers, {'flavor': PRIVATE}).status_code == 403
        return
    answer = cloud.ask('GET /v2.1/flavors', headers)
    assert (answer.status_code, answer.json) == (401, UNAUTHORIZED)


def test_the_token_of_a_service_must_be_valid(cloud):
    if cloud.strategy in ('local', 'keystone'):
        answer = cloud.ask('GET /v2.1/flavors', cloud.credentials('demo') | {'X-Service-Token': 'made-up'})
        assert (answer.status_code, answer.json) == (401, UNAUTHORIZED)


def test_the_roles_of_a_service_are_known_by_its_token():
    callers = {'of-demo': Context('demo', roles={'member'}), 'of-cinder': Context('cinder', roles={'service'})}
    identify = auth.by_token(callers.__getitem__)

    def roles(**headers):
        caller = identify(webob.Request.blank('/flavors', headers=headers))
        return caller.user_id, caller.roles, caller.service_roles

    assert roles(**{'X-Auth-Token': 'of-demo'}) == ('demo', {'member'}, set())
    both = {'X-Auth-Token': 'of-demo', 'X-Service-Token': 'of-cinder'}
    assert roles(**both) == ('demo', {'member'}, {'service'})


def test_nobody_becomes_somebody_by_the_headers_of_the_middleware(cloud):
    claims = {'X-User-Id': 'a', 'X-Project-Id': 'b', 'X-Roles': 'admin', 'X-Identity-Status': 'Confirmed'}
    answer = cloud.ask('POST /v2.1/flavors', claims | cloud.credentials('demo'), {'flavor': PRIVATE})
    assert answer.status_code == 403
    if cloud.strategy != 'none':
        assert cloud.ask('GET /v2.1/flavors', claims).status_code == 401


def test_documents_of_versions_need_no_credentials(cloud):
    assert [cloud.ask(f'GET {path}').status_code for path in ('/', '/v2.1', '/v2.1/', '/healthcheck')] == [200] * 4


def test_secrets_are_not_logged(cloud, caplog):
    caplog.set_level(logging.WARNING)
    caplog.set_level(logging.DEBUG, 'computeapi')
    demo = cloud.credentials('demo')
    cloud.ask('GET /v2.1/flavors', demo)
    cloud.ask('GET /v2.1/flavors', {name: value + 'x' for name, value in demo.items()})
    assert '/v2.1/flavors' in caplog.text
    hidden = [*PASSWORDS.values(), *(demo.values() if cloud.strategy != 'none' else ())]
    assert not [secret for secret in hidden if secret in caplog.text]
