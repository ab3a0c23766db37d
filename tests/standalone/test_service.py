"""Behaviour common to all built-in services."""

import pytest
import webob

from computeapi import errors
from computeapi.context import Context
from computeapi.standalone.access import ADMIN, ANYBODY, CALLER, WRITER
from computeapi.standalone.service import (
    MAX_DOCUMENT,
    ServiceApp,
    ServiceController,
    VersionPage,
    json_response,
    mounted,
)
from computeapi.versions import History
from computeapi.web.controller import action, api_version, operation
from computeapi.web.filters import Microversion

ROLES = {'admin': {'admin'}, 'member': {'member'}, 'reader': {'reader'}, 'domain admin': {'admin'}}
STARS = History({'1.0': 'The first version.', '1.5': 'Stars have names.'})


class Stars(ServiceController):
    path = '/stars'
    history = STARS

    @operation('GET', policy=CALLER, behaviour={'named': STARS.added('1.5', True)})
    def list(self, req):
        return {'stars': ['Sirius' if req.behaviour.named else 'brightest'], 'near': req.parameter('near')}

    @operation('HEAD', policy=CALLER, status=204)
    def check(self, req):
        return None

    @operation('POST', policy=WRITER, body={'type': 'object', 'required': ['star']}, status=201)
    def create(self, req, body):
        return body

    @operation('POST', '/anonymous', policy=ANYBODY, status=204)
    def wave(self, req):
        return None

    @operation('DELETE', policy=ADMIN)
    @api_version('1.5')
    def delete(self, req):
        raise ZeroDivisionError('what nobody needs to know')

    @action('explode', policy=ADMIN)
    def explode(self, req, id):
        return None


class Observatory(ServiceApp):
    def refusal(self, req, status, message, error):
        return json_response(status, {'trouble': message})


def authenticate(token):
    if token not in ROLES:
        raise errors.NotAuthenticated()
    roles = frozenset(ROLES[token])
    scope = {'domain_id': 'sky'} if token == 'domain admin' else {'project_id': 'sky'}
    return Context(user_id=token, is_admin='admin' in roles, roles=roles, **scope)


@pytest.fixture
def ask():
    """ask('GET /v1/stars', by='member') -> (status, body, headers)."""
    app = Observatory([Stars()], authenticate)
    page = VersionPage(app, lambda url: {'at': url}, status=300)
    mount = mounted(Microversion(app, 'star', STARS, legacy_header=None), '/v1', page)

    def ask(request, *, by='member', **others):
        method, path = request.split(' ')
        req = webob.Request.blank(path, method=method, **others)
        req.headers['X-Auth-Token'] = by
        response = req.get_response(mount)
        return response.status_code, response.json if response.body else None, response.headers

    return ask


@pytest.mark.parametrize(
    ('request_line', 'by', 'body', 'status'),
    [
        ('GET /v1/stars', 'nobody', None, 401),
        ('GET /v1/planets', 'nobody', None, 404),
        ('POST /v1/stars/anonymous', 'nobody', None, 204),
        ('HEAD /v1/stars', 'reader', None, 204),
        ('POST /v1/stars', 'nobody', b'{', 401),
        ('POST /v1/stars', 'reader', b'{', 403),
        ('POST /v1/stars', 'member', b'{', 400),
        ('POST /v1/stars', 'member', b'', 400),
        ('POST /v1/stars', 'member', b'{}', 400),
        ('POST /v1/stars', 'member', b'{"star": "\\u0000"}', 400),
        ('POST /v1/stars', 'member', b'{"star": ' + b'[' * 60 + b']' * 60 + b'}', 400),
        ('POST /v1/stars', 'member', b'{"star": 1}', 201),
        ('POST /v1/stars', 'member', b' ' * (MAX_DOCUMENT + 1), 413),
        ('POST /v1/stars/1/action', 'nobody', b'{', 401),
        ('POST /v1/stars/1/action', 'member', b'{', 403),
        ('POST /v1/stars/1/action', 'admin', b'{"implode": null}', 400),
        ('POST /v1/stars/1/action', 'admin', b'{"explode": null}', 202),
        ('GET /v1/stars?near=%00', 'member', None, 400),
        ('DELETE /v1/stars', 'admin', None, 404),
        ('GET /v1/sky/stars', 'member', None, 404),
        ('GET /v1/stars', 'domain admin', None, 403),
        ('POST /v1/stars', 'domain admin', b'{"star": 1}', 403),
        ('POST /v1/stars/1/action', 'domain admin', b'{"explode": null}', 403),
        ('POST /v1/stars/anonymous', 'domain admin', None, 204),
    ],
)
def test_which_error_wins(ask, request_line, by, body, status):
    found, document, _ = ask(request_line, by=by, body=body or b'')
    assert found == status
    if status >= 400:
        assert list(document) == ['trouble']


def test_a_body_is_json_whatever_it_is_called(ask):
    assert ask('POST /v1/stars', body=b'{"star": 1}', content_type='text/html')[:2] == (201, {'star': 1})


def test_a_bug_tells_nothing(ask):
    assert ask('DELETE /v1/stars', by='admin', headers={'OpenStack-API-Version': 'star 1.5'})[:2] == (
        500,
        {'trouble': errors.Error.text},
    )


def test_a_service_has_versions_of_its_own(ask):
    status, document, headers = ask('GET /v1/stars?near=Sol', headers={'OpenStack-API-Version': 'star 1.5'})
    assert (status, document) == (200, {'stars': ['Sirius'], 'near': 'Sol'})
    assert (headers['OpenStack-API-Version'], headers.getall('Vary')) == ('star 1.5', ['OpenStack-API-Version'])
    _, document, headers = ask('GET /v1/stars', headers={'X-OpenStack-Nova-API-Version': '2.95'})
    assert (document['stars'], headers['OpenStack-API-Version']) == (['brightest'], 'star 1.0')
    assert 'X-OpenStack-Nova-API-Version' not in headers
    assert ask('GET /v1/stars', headers={'OpenStack-API-Version': 'star 1.6'})[0] == 406


def test_anybody_may_ask_for_versions(ask):
    version = {'OpenStack-API-Version': 'star 9.9'}
    assert ask('GET /', by='nobody', headers=version)[:2] == (300, {'at': 'http://localhost'})
    assert ask('HEAD /', by='nobody', headers=version)[:2] == (300, None)
    assert [ask(request, by='nobody')[0] for request in ('POST /', 'GET /%ff')] == [404, 404]


def test_every_answer_has_a_request_id(ask):
    for path in ('/', '/v1/stars', '/v1/planets'):
        assert ask(f'GET {path}')[2]['x-openstack-request-id'].startswith('req-')
