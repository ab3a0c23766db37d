"""Keystone v3 on a store, and ways to call it."""

import base64

import pytest
import webob

from computeapi.backends.identity.local import LocalIdentity
from computeapi.standalone.identity import keystone

CATALOG = [
    {'type': 'compute', 'name': 'nova', 'path': '/v2.1'},
    {'type': 'identity', 'name': 'keystone', 'path': '/identity'},
]

KEY = base64.urlsafe_b64encode(bytes(32)).decode()
MOUNT = '/identity'
DEFAULT = {'id': 'default'}
UNKNOWN = '0' * 32


@pytest.fixture
def identity(store):
    identity = LocalIdentity(store, bcrypt_cost=4, cache_seconds=0, credential_key=KEY)
    identity.catalog.announce(CATALOG)
    identity.populate('admin-secret', 'demo-secret')
    return identity


@pytest.fixture
def app(identity):
    return keystone(identity)


def proof(name, password=None, **user):
    """The request body for logging in a user of the default domain with a password."""
    user = {'name': name, 'domain': DEFAULT, 'password': password or f'{name}-secret', **user}
    return {'auth': {'identity': {'methods': ['password'], 'password': {'user': user}}}}


@pytest.fixture
def ask(app):
    """ask('POST /v3/users', {...}, by=token) -> the response, which must have the status `expect`."""

    def ask(request, json=None, *, by=None, expect=200, **headers):
        method, path = request.split(' ', 1)
        others = {} if json is None else {'json': json}
        req = webob.Request.blank(path, base_url=f'http://cloud.example{MOUNT}', method=method, **others)
        req.headers.update({name.replace('_', '-'): value for name, value in headers.items()})
        if by is not None:
            req.headers['X-Auth-Token'] = by
        response = req.get_response(app)
        assert response.status_code == expect, response.text
        return response

    return ask


@pytest.fixture
def log_in(ask):
    """log_in('demo') -> a token."""

    def log_in(name, password=None, scope=None):
        body = proof(name, password)
        if scope is not None:
            body['auth']['scope'] = scope
        return ask('POST /v3/auth/tokens', body, expect=201).headers['X-Subject-Token']

    return log_in


@pytest.fixture
def admin(log_in):
    return log_in('admin')


@pytest.fixture
def demo(log_in):
    return log_in('demo')


@pytest.fixture
def id_of(ask, admin):
    """id_of('users', 'demo')"""

    def id_of(kind, name):
        [found] = ask(f'GET /v3/{kind}?name={name}', by=admin).json[kind]
        return found['id']

    return id_of


@pytest.fixture
def make(ask, admin):
    """make('groups', name='x') -> the record created by an administrator."""

    def make(kind, **kwargs):
        noun = kind.rpartition('/')[2].removesuffix('s').replace('policie', 'policy')
        return ask(f'POST /v3/{kind}', {noun: kwargs}, by=admin, expect=201).json[noun]

    return make
