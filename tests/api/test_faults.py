"""Errors outside the operations, and bugs in operations, as clients see them."""

import json
import logging
import re

import pytest
import webob

from computeapi import errors
from computeapi.context import Context
from computeapi.log import JSONLines
from computeapi.web import faults
from computeapi.web.app import App
from computeapi.web.contract import ADMIN, READER_OR_ADMIN, Policy
from computeapi.web.controller import Controller, operation
from computeapi.web.filters import FaultWrap, Microversion, RequestId, RequestLog
from computeapi.web.request import CONTEXT

MARKUP = '<br /><br />\n\n\n'
REQUEST_ID = re.compile(r'req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}')
INBOUND = 'req-01234567-89ab-cdef-0123-456789abcdef'


# ------------------------------------------------------------------ before routing


@pytest.mark.parametrize(
    ('accept', 'media_type'),
    [
        ('*/*', 'text/html; charset=UTF-8'),
        ('text/html', 'text/html; charset=UTF-8'),
        ('application/json', 'application/json'),
        ('application/xml, application/json;q=0.5', 'application/json'),
        ('application/xml', 'text/plain; charset=UTF-8'),
        ('application/vnd.openstack.compute+json', 'text/plain; charset=UTF-8'),
    ],
)
def test_pages_by_media_type(api, accept, media_type):
    for answer in (
        api.get('/nothing', headers={'Accept': accept}),
        api.post('/flavors', headers={'Accept': accept}, raw=b'x' * 120000),
    ):
        assert answer.headers['Content-Type'] == media_type
        assert 'OpenStack-API-Version' not in answer.headers
        assert REQUEST_ID.fullmatch(answer.headers['x-openstack-request-id'])


def test_the_page_of_a_path_that_does_not_exist(api):
    assert api.get('/nothing').json == {
        'message': 'The resource could not be found.' + MARKUP,
        'code': '404 Not Found',
        'title': 'Not Found',
    }
    text = api.get('/nothing', headers={'Accept': 'a/b'}).text
    assert text.split('\n\n')[:2] == ['404 Not Found', 'The resource could not be found.']
    assert '<h1>404 Not Found</h1>' in api.get('/nothing', headers={'Accept': 'text/html'}).text


@pytest.mark.parametrize(
    ('method', 'path'),
    [
        ('PUT', '/flavors'),
        ('PATCH', '/flavors/x'),
        ('GET', '/flavors/'),
        ('GET', '/Flavors'),
        ('GET', '/flavors.json'),
        ('GET', '/%00'),
        ('GET', '/%ff'),
        ('GET', '//flavors//'),
    ],
)
def test_paths_and_methods_that_do_not_exist(api, method, path):
    answer = api.request(method, path, 'abc')
    assert (answer.status, answer.json['title']) == (404, 'Not Found')


def test_head_has_no_body(api):
    answer = api.request('HEAD', '/flavors')
    assert (answer.status, answer.text) == (404, '')
    assert answer.headers['Content-Type'] == 'text/html; charset=UTF-8'


@pytest.mark.parametrize('path', ['/flavors', '/flavors/x', '/nothing'])
def test_options_is_answered_for_browsers(api, conf, path):
    conf.set_override('auth_strategy', 'local', 'api')
    answer = api.request('OPTIONS', path, 'abc', headers={'X-Auth-Token': 'none'})
    assert (answer.status, answer.text) == (200, '')
    assert not {'Content-Type', 'x-openstack-request-id', 'OpenStack-API-Version'}.intersection(answer.headers)


@pytest.mark.parametrize('path', ['//flavors', '///flavors', '//abc//flavors'])
def test_several_slashes_are_one(api, path):
    answer = api.get(path, '2.10', as_='u:abc:admin')
    assert (answer.status, answer.json) == (200, {'flavors': []})


@pytest.mark.parametrize('path', ['/flavors/%00', '/flavors/%ff%fe', '/servers/%00', '/servers/a%00b/metadata'])
def test_ids_that_are_no_text_are_nobodys(api, path):
    answer = api.get(path, '2.10')
    assert (answer.status, answer.headers['OpenStack-API-Version']) == (404, 'compute 2.10')
    assert 'itemNotFound' in answer.json


@pytest.mark.parametrize('method', ['GET', 'DELETE'])
def test_what_comes_with_a_method_that_takes_nothing_is_not_looked_at(api, method):
    answer = api.request(method, '/flavors/nothing', raw=b'{x')
    assert (answer.status, answer.json['itemNotFound']['message']) == (404, 'Flavor nothing could not be found.')


def test_a_body_that_is_too_large(api):
    answer = api.post('/flavors', raw=b'x' * 114689)
    assert (answer.status, answer.json['code']) == (413, '413 Request Entity Too Large')
    assert api.post('/flavors', raw=b'x' * 114688).status == 400


# ------------------------------------------------------------------ faults


@pytest.mark.parametrize(
    'media_type', ['application/xml', 'application/x-www-form-urlencoded', 'text/json', 'nonsense']
)
@pytest.mark.parametrize('method', ['GET', 'POST'])
def test_other_media_types_are_refused_by_any_method(api, method, media_type):
    answer = api.request(method, '/flavors', headers={'Content-Type': media_type}, raw=b'{}')
    assert answer.json == {'badMediaType': {'code': 415, 'message': 'Unsupported Content-Type'}}


@pytest.mark.parametrize(
    'media_type',
    ['application/json; charset=utf-8', 'text/plain', 'application/vnd.openstack.compute+json', 'application/JSON'],
)
def test_json_by_its_names(api, media_type):
    answer = api.post('/flavors', headers={'Content-Type': media_type}, raw=b'{}')
    assert answer.json['badRequest']['message'] == "'flavor' is a required property"


@pytest.mark.parametrize('raw', [b'{', b'nul', b'\xff', b'{"flavor": NaN}', b'"\\ud800"', b'[' * 100000])
def test_bodies_that_are_no_json(api, raw):
    answer = api.post('/flavors', raw=raw)
    assert answer.json == {'badRequest': {'code': 400, 'message': 'Malformed request body'}}


def test_no_body_is_null(api):
    assert api.post('/flavors').json['badRequest']['message'] == "None is not of type 'object'"


@pytest.mark.parametrize(
    ('raw', 'status'),
    [(b'null', 404), (b'1', 404), (b'true', 404), (b'[1]', 404), (b'"a"', 404), (b'', 400), (b'{}', 400), (b'[]', 400),
     (b'[1, 2]', 400), (b'"ab"', 400), (b'{"addTenantAccess": {}, "x": 1}', 400)],
)  # fmt: skip
def test_bodies_that_name_no_action(api, raw, status):
    assert api.post('/flavors/x/action', raw=raw).status == status


def test_what_no_store_keeps_is_refused(api):
    body = {'flavor': {'name': 'a', 'ram': 1, 'vcpus': 1, 'disk': 1, 'description': 'a\0b'}}
    assert api.post('/flavors', body, '2.55').status == 400
    assert api.post('/flavors', {'flavor': {'\0': 1}}).status == 400
    assert 'marker' in api.get('/flavors?marker=%00').json['badRequest']['message']


def test_bottomless_bodies_are_refused(api):
    answer = api.post('/flavors', raw=b'{"flavor":' + b'[' * 900 + b']' * 900 + b'}')
    assert 'nested deeper than' in answer.json['badRequest']['message']


def test_a_query_must_be_utf_8(api):
    assert api.get('/flavors?name=%ff').json['badRequest']['message'] == 'Query string is not UTF-8 encoded'


def test_faults_are_json_whatever_is_accepted(api):
    answer = api.get('/flavors/nothing', headers={'Accept': 'text/html'})
    assert answer.headers['Content-Type'] == 'application/json; charset=UTF-8'
    assert answer.json == {'itemNotFound': {'code': 404, 'message': 'Flavor nothing could not be found.'}}


@pytest.mark.parametrize(
    ('error', 'status', 'name'),
    [
        (errors.NotFound, 404, 'itemNotFound'),
        (errors.Conflict, 409, 'conflictingRequest'),
        (errors.Invalid, 400, 'badRequest'),
        (errors.Forbidden, 403, 'forbidden'),
        (errors.OverQuota, 403, 'forbidden'),
        (errors.NotAuthenticated, 401, 'unauthorized'),
        (errors.NotSupported, 501, 'notImplemented'),
        (errors.Gone, 410, 'computeFault'),
        (errors.TooLarge, 413, 'overLimit'),
        (errors.Unavailable, 503, 'serviceUnavailable'),
    ],
)
def test_errors_of_the_domain_have_a_status(error, status, name):
    fault = faults.of(error('why'))
    assert (fault.status_int, fault.json) == (status, {name: {'code': status, 'message': 'why'}})


def test_every_error_of_the_domain_has_a_place_in_the_table():
    leaves = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, errors.Error)]
    without = [each.__name__ for each in leaves if faults.status_of(each('x')) == 500]
    assert without == ['Error']


# ------------------------------------------------------------------ tokens


@pytest.fixture(params=['local', 'http_basic'])
def strategy(request, conf):
    conf.set_override('auth_strategy', request.param, 'api')
    return request.param


@pytest.mark.parametrize('path', ['/v2.1/flavors', '/v2/flavors', '/v2.1/nothing', '/v2.1/ab-12/'])
def test_without_a_token(strategy, api, path):
    api.prefix, api.token = '', ''
    for credentials in ({}, {'X-Auth-Token': 'x', 'Authorization': 'Basic eDp5'}, {'Authorization': 'Basic =:='}):
        answer = api.get(path, 'abc', headers=credentials)
        assert answer.json == {
            'error': {
                'code': 401,
                'title': 'Unauthorized',
                'message': 'The request you have made requires authentication.',
            }
        }
        assert answer.headers['Content-Type'] == 'application/json'
        assert answer.headers['WWW-Authenticate'].startswith('Keystone uri=' if strategy == 'local' else 'Basic realm=')
        assert answer.headers['x-openstack-request-id']


# ------------------------------------------------------------------ request ids


def test_each_request_has_an_id_under_two_names(api):
    first, second = (api.get('/flavors').headers for _ in range(2))
    assert REQUEST_ID.fullmatch(first['x-openstack-request-id'])
    assert first['x-openstack-request-id'] == first['x-compute-request-id'] != second['x-compute-request-id']


def test_the_id_of_the_client_is_kept_for_the_log_and_for_other_services(caplog, logged):
    seen = {}

    def app(environ, start_response):
        seen.update(environ)
        start_response('200 OK', [])
        return [b'']

    pipeline = RequestId(RequestLog(app))
    with caplog.at_level(logging.INFO, 'computeapi.request'):
        for inbound in (INBOUND, INBOUND + '\n', 'req-x', INBOUND.upper()):
            webob.Request.blank('/', headers={'X-OpenStack-Request-ID': inbound}).get_response(pipeline)
    assert [record.global_request_id for record in logged()] == [INBOUND, None, None, None]
    assert seen['openstack.request_id'] == logged()[-1].request_id != INBOUND


def test_a_line_of_the_log_says_who_asked(api, caplog, logged):
    with caplog.at_level(logging.INFO, 'computeapi.request'):
        answer = api.get('/flavors', as_='bob:project')
    [line] = [json.loads(JSONLines().format(record)) for record in logged()]
    assert (line['user_id'], line['project_id']) == ('bob', 'project')
    assert line['request_id'] == answer.headers['x-openstack-request-id']


def test_the_log_has_no_secrets(api, caplog):
    with caplog.at_level(logging.DEBUG):
        api.get('/flavors?name=hidden', '2.102', as_='bob:project', headers={'X-Service-Token': 'hidden'})
    assert 'GET /v2.1/flavors' in caplog.text
    assert 'bob:project' not in caplog.text and 'hidden' not in caplog.text


# ------------------------------------------------------------------ bugs


class Thing:
    project_id, user_id = 'owner', 'owner'


class Broken(Controller):
    """Handlers with bugs, and a subject that is found before the policy is checked."""

    path = '/things'
    subject = 'thing_id'

    def find(self, req, identifier):
        if identifier == 'missing':
            raise errors.NotFound()
        return Thing()

    @operation('GET', policy=None)
    def index(self, req):
        raise ZeroDivisionError('the password is hidden')

    @operation('GET', '/{thing_id}', policy=Policy('admin_or_owner', READER_OR_ADMIN))
    def show(self, req, thing):
        return {'thing': thing.project_id}

    @operation('DELETE', '/{thing_id}', policy=Policy('context_is_admin', ADMIN), subject_first=False)
    def delete(self, req, thing):
        """Nothing to do."""


@pytest.fixture
def broken(service):
    """send(method, path, project, roles): sends a request to the app of this controller."""
    app = Microversion(App([Broken()], service.policies))

    def send(method, path, project='owner', roles=frozenset()):
        environ = {CONTEXT: Context(user_id='u', project_id=project, roles=roles, is_admin='admin' in roles)}
        return webob.Request.blank(path, method=method, environ=environ).get_response(app)

    return send


def test_a_bug_shows_its_class_and_no_more(broken, caplog):
    answer = broken('GET', '/things')
    assert answer.status_int == 500
    assert answer.headers['OpenStack-API-Version'] == 'compute 2.1'
    assert answer.json == {
        'computeFault': {
            'code': 500,
            'message': "Unexpected API Error. Please contact the administrator\n<class 'ZeroDivisionError'>",
        }
    }
    assert 'Traceback' in caplog.text


def test_a_bug_outside_a_handler(caplog):
    def app(environ, start_response):
        raise ZeroDivisionError('hidden')

    answer = webob.Request.blank('/').get_response(RequestId(FaultWrap(app)))
    message = 'The server has either erred or is incapable of performing the requested operation.'
    assert answer.json == {'computeFault': {'code': 500, 'message': message}}
    assert answer.headers['x-openstack-request-id']
    assert 'Traceback' in caplog.text


def test_the_subject_is_found_before_the_policy_is_asked(broken):
    assert broken('GET', '/things/missing', project='stranger').status_int == 404
    assert broken('GET', '/things/a', project='stranger').status_int == 403
    assert broken('GET', '/things/a').json == {'thing': 'owner'}


def test_unless_the_operation_says_otherwise(broken):
    assert broken('DELETE', '/things/missing').status_int == 403
    assert broken('DELETE', '/things/missing', roles=frozenset({'admin'})).status_int == 404
    assert broken('DELETE', '/things/a', roles=frozenset({'admin'})).body == b''


def test_a_path_cannot_forge_lines_of_the_log(api, caplog):
    with caplog.at_level('INFO', 'computeapi.request'):
        api.get('/flavors/%0aforged "GET /admin"')
    (line,) = [record.getMessage() for record in caplog.records if record.name == 'computeapi.request']
    assert '\n' not in line and '/v2.1/flavors/%0Aforged%20%22GET%20/admin%22' in line
