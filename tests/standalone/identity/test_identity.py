"""Keystone v3 from a client's point of view."""

import pytest
import webob

from computeapi.standalone.access import ANYBODY
from computeapi.standalone.identity import CONTROLLERS
from tests.standalone.identity.conftest import CATALOG, DEFAULT, UNKNOWN, proof

# Discovery


def test_versions(ask):
    for path in ('/', ''):
        [version] = ask(f'GET {path}', expect=300).json['versions']['values']
        assert version['id'] == 'v3.14'
        assert version['status'] == 'stable'
        assert version['links'] == [{'rel': 'self', 'href': 'http://cloud.example/identity/v3/'}]
        assert version['media-types'][0]['base'] == 'application/json'
    for path in ('/v3', '/v3/'):
        assert ask(f'GET {path}').json == {'version': version}


def test_a_stale_token_does_not_hinder_discovery_and_login(ask):
    ask('GET /v3', by='stale')
    ask('POST /v3/auth/tokens', proof('demo'), by='stale', expect=201)


def test_the_catalog_as_records(ask, admin, demo):
    services = ask('GET /v3/services', by=admin).json['services']
    assert [(service['type'], service['name']) for service in services] == [
        ('identity', 'keystone'),
        ('compute', 'nova'),
    ]
    [compute] = ask('GET /v3/services?type=compute', by=admin).json['services']
    assert ask(f'GET /v3/services/{compute["id"]}', by=admin).json == {'service': compute}
    endpoints = ask(f'GET /v3/endpoints?service_id={compute["id"]}', by=admin).json['endpoints']
    assert {(each['interface'], each['url']) for each in endpoints} == {
        (interface, 'http://cloud.example/v2.1') for interface in ('public', 'internal', 'admin')
    }
    assert ask(f'GET /v3/endpoints/{endpoints[0]["id"]}', by=admin).json == {'endpoint': endpoints[0]}
    assert [region['id'] for region in ask('GET /v3/regions', by=demo).json['regions']] == ['RegionOne']
    assert ask('GET /v3/regions/RegionOne', by=demo).json['region']['id'] == 'RegionOne'
    for path in ('/v3/services/none', '/v3/endpoints/none', '/v3/regions/none'):
        ask(f'GET {path}', by=admin, expect=404)


def test_what_is_announced_again_stays_as_it_is(ask, admin, identity):
    before = ask('GET /v3/endpoints', by=admin).json['endpoints']
    ask(f'PATCH /v3/endpoints/{before[0]["id"]}', {'endpoint': {'enabled': False}}, by=admin)
    identity.catalog.announce(CATALOG)
    after = ask('GET /v3/endpoints', by=admin).json['endpoints']
    assert after == [before[0] | {'enabled': False}, *before[1:]]


# Authentication


def test_a_token_says_who_where_and_what(ask, id_of):
    response = ask('POST /v3/auth/tokens', proof('demo'), expect=201)
    token = response.json['token']
    default = {'id': 'default', 'name': 'Default'}
    assert token['user'] == {
        'id': id_of('users', 'demo'),
        'name': 'demo',
        'domain': default,
        'password_expires_at': None,
    }
    assert token['project'] == {'id': id_of('projects', 'demo'), 'name': 'demo', 'domain': default}
    assert {role['name']: role['id'] for role in token['roles']} == {
        name: id_of('roles', name) for name in ('member', 'reader')
    }
    assert token['methods'] == ['password']
    assert len(token['audit_ids']) == 1
    assert token['issued_at'] < token['expires_at']
    assert token['issued_at'].endswith('Z') and len(token['issued_at']) == len('2026-01-01T00:00:00.000000Z')
    [_, compute] = token['catalog']
    assert (compute['type'], compute['name']) == ('compute', 'nova')
    assert {(each['interface'], each['region'], each['region_id'], each['url']) for each in compute['endpoints']} == {
        (interface, 'RegionOne', 'RegionOne', 'http://cloud.example/v2.1')
        for interface in ('public', 'internal', 'admin')
    }
    assert response.headers['Vary'] == 'X-Auth-Token'
    assert response.headers['x-openstack-request-id'].startswith('req-')


def test_the_catalog_can_be_left_out(ask, demo):
    assert 'catalog' not in ask('POST /v3/auth/tokens?nocatalog', proof('demo'), expect=201).json['token']
    for query, shown in (('?nocatalog', False), ('?nocatalog=true', False), ('?nocatalog=0', True), ('', True)):
        token = ask(f'GET /v3/auth/tokens{query}', by=demo, X_Subject_Token=demo).json['token']
        assert ('catalog' in token) == shown
    ask('GET /v3/auth/tokens?nocatalog=perhaps', by=demo, X_Subject_Token=demo, expect=400)


SCOPES = {
    'project by id': (lambda project_id: {'project': {'id': project_id}}, 'project'),
    'project by name': (lambda _: {'project': {'name': 'admin', 'domain': {'name': 'Default'}}}, 'project'),
    'domain by id': (lambda _: {'domain': DEFAULT}, 'domain'),
    'domain by name': (lambda _: {'domain': {'name': 'Default'}}, 'domain'),
    'system': (lambda _: {'system': {'all': True}}, 'system'),
    'unscoped': (lambda _: 'unscoped', None),
    'unscoped as an object': (lambda _: {'unscoped': {}}, None),
}


@pytest.mark.parametrize('case', SCOPES)
def test_scopes(ask, id_of, case):
    make, shown = SCOPES[case]
    body = proof('admin')
    body['auth']['scope'] = make(id_of('projects', 'admin'))
    token = ask('POST /v3/auth/tokens', body, expect=201).json['token']
    assert {'project', 'domain', 'system'} & token.keys() == ({shown} if shown else set())
    for key in ('roles', 'catalog'):
        assert (key in token) == (shown is not None)


def test_users_by_id_and_by_name_of_the_domain(ask, id_of):
    user = {'id': id_of('users', 'demo'), 'password': 'demo-secret'}
    ask(
        'POST /v3/auth/tokens',
        {'auth': {'identity': {'methods': ['password'], 'password': {'user': user}}}},
        expect=201,
    )
    ask('POST /v3/auth/tokens', proof('demo', domain={'name': 'Default'}), expect=201)
    ask('POST /v3/auth/tokens', proof('demo', domain={'name': 'Other'}), expect=401)


def test_a_refused_login_says_where_to_log_in_and_not_why(ask):
    refusals = {
        ask('POST /v3/auth/tokens', body, expect=401).text
        for body in (proof('demo', 'wrong'), proof('nobody'), proof('demo', domain={'id': 'none'}))
    }
    assert refusals == {
        '{"error":{"code":401,"title":"Unauthorized","message":"The request you have made requires authentication."}}'
    }
    response = ask('GET /v3/users', expect=401)
    assert response.headers['WWW-Authenticate'] == 'Keystone uri="http://cloud.example/identity"'


def test_a_token_logs_in_to_another_scope(ask, log_in, id_of):
    unscoped = log_in('demo', scope='unscoped')
    found = ask('GET /v3/auth/projects', by=unscoped).json['projects']
    assert [project['name'] for project in found] == ['demo']
    body = {'auth': {'identity': {'methods': ['token'], 'token': {'id': unscoped}}}}
    body['auth']['scope'] = {'project': {'id': found[0]['id']}}
    token = ask('POST /v3/auth/tokens', body, expect=201).json['token']
    assert (token['project']['name'], token['methods']) == ('demo', ['password', 'token'])
    body['auth']['identity']['token']['id'] = 'unknown'
    ask('POST /v3/auth/tokens', body, expect=401)


BAD_LOGINS = {
    'nothing': ({}, 'auth'),
    'no identity': ({'auth': {}}, 'identity'),
    'no methods': ({'auth': {'identity': {}}}, 'methods'),
    'methods not a list': ({'auth': {'identity': {'methods': 'password'}}}, 'auth/identity/methods'),
    'empty methods': ({'auth': {'identity': {'methods': []}}}, 'auth/identity/methods'),
    'unknown method': ({'auth': {'identity': {'methods': ['totp']}}}, 'auth/identity/methods/0'),
    'no proof': ({'auth': {'identity': {'methods': ['password']}}}, 'password'),
    'proof of another kind': ({'auth': {'identity': {'methods': ['password'], 'token': {'id': 'x'}}}}, 'password'),
    'no user': ({'auth': {'identity': {'methods': ['password'], 'password': {}}}}, 'user'),
    'no domain': (
        {'auth': {'identity': {'methods': ['password'], 'password': {'user': {'name': 'demo', 'password': 'x'}}}}},
        'domain',
    ),
    'name not text': (proof(5, 'x'), 'auth/identity/password/user/name'),
    'long password': (proof('demo', 'x' * 1025), 'auth/identity/password/user/password'),
    'NUL in the name': (proof('de\0mo'), 'NUL'),
    'scope of two kinds': (
        {'auth': proof('demo')['auth'] | {'scope': {'domain': DEFAULT, 'project': {'id': 'x'}}}},
        'auth/scope',
    ),
    'unknown scope': ({'auth': proof('demo')['auth'] | {'scope': {'trust': {'id': 'x'}}}}, 'auth/scope'),
    'scope as text': ({'auth': proof('demo')['auth'] | {'scope': 'demo'}}, 'auth/scope'),
    'project without a domain': ({'auth': proof('demo')['auth'] | {'scope': {'project': {'name': 'demo'}}}}, 'domain'),
    'part of the system': (
        {'auth': proof('demo')['auth'] | {'scope': {'system': {'all': False}}}},
        'auth/scope/system/all',
    ),
}


@pytest.mark.parametrize('case', BAD_LOGINS)
def test_a_bad_login_names_the_field(ask, case):
    body, field = BAD_LOGINS[case]
    error = ask('POST /v3/auth/tokens', body, expect=400).json['error']
    assert (error['code'], error['title']) == (400, 'Bad Request')
    assert field in error['message']
    assert len(error['message']) < 1000


def test_many_wrong_things_take_no_longer_than_few(ask):
    """Anybody may send a login body of a megabyte."""
    methods = [item for number in range(40_000) for item in (number, str(number))]
    ask('POST /v3/auth/tokens', {'auth': {'identity': {'methods': methods}}}, expect=400)


def test_an_error_does_not_repeat_a_password(ask):
    for password in (12345678, 'hush' * 1000):
        body = proof('demo')
        body['auth']['identity']['password']['user']['password'] = password
        message = ask('POST /v3/auth/tokens', body, expect=400).json['error']['message']
        assert str(password)[:8] not in message


def test_a_body_that_is_not_json(app):
    for raw in (b'', b'{', b'[]', b'"x"', b'\xff'):
        req = webob.Request.blank('/v3/auth/tokens', method='POST', body=raw)
        assert req.get_response(app).status_code == 400


# Tokens


def test_a_service_validates_tokens(ask, admin, demo, log_in, id_of):
    user = {'name': 'nova', 'password': 'nova-secret', 'default_project_id': id_of('projects', 'service')}
    nova = ask('POST /v3/users', {'user': user}, by=admin, expect=201).json['user']
    path = f'/v3/projects/{user["default_project_id"]}/users/{nova["id"]}/roles/{id_of("roles", "service")}'
    ask(f'PUT {path}', by=admin, expect=204)
    service = log_in('nova')
    response = ask('GET /v3/auth/tokens?allow_expired=1', by=service, X_Subject_Token=demo)
    assert response.headers['X-Subject-Token'] == demo
    assert response.json['token']['user']['name'] == 'demo'
    assert ask('HEAD /v3/auth/tokens', by=service, X_Subject_Token=demo).body == b''
    ask('GET /v3/auth/tokens', by=service, X_Subject_Token='unknown', expect=404)
    ask('GET /v3/auth/tokens', by=service, expect=404)
    ask('DELETE /v3/auth/tokens', by=service, X_Subject_Token=demo, expect=403)


def test_a_reader_of_the_system_sees_all_and_changes_nothing(ask, admin, demo, log_in, make, id_of):
    auditor, user = make('users', name='auditor', password='auditor-secret'), f'/v3/users/{id_of("users", "demo")}'
    ask(f'PUT /v3/system/users/{auditor["id"]}/roles/{id_of("roles", "reader")}', by=admin, expect=204)
    reader = log_in('auditor', scope={'system': {'all': True}})
    credentials = f'{user}/application_credentials'
    rules = [{'service': 'compute', 'method': 'GET', 'path': '/'}]
    body = {'application_credential': {'name': 'robot', 'access_rules': rules}}
    made = ask(f'POST {credentials}', body, by=demo, expect=201).json['application_credential']
    keys = ask(f'POST {user}/credentials/OS-EC2', {'tenant_id': made['project_id']}, by=demo, expect=201)
    one, rule = f'{credentials}/{made["id"]}', f'{user}/access_rules/{made["access_rules"][0]["id"]}'
    pair = f'{user}/credentials/OS-EC2/{keys.json["credential"]["access"]}'
    for path in (user, f'{user}/projects', f'{user}/groups', credentials, one, rule, rule.rpartition('/')[0], pair):
        ask(f'GET {path}', by=reader)
    ask(f'GET {user}/credentials/OS-EC2', by=reader)
    ask('GET /v3/auth/tokens', by=reader, X_Subject_Token=demo)
    ask('DELETE /v3/auth/tokens', by=reader, X_Subject_Token=demo, expect=403)
    for path in (user, one, rule, pair):
        ask(f'DELETE {path}', by=reader, expect=403)


def test_users_see_their_own_tokens_only(ask, admin, demo):
    ask('GET /v3/auth/tokens', by=demo, X_Subject_Token=demo)
    for method in ('GET', 'HEAD', 'DELETE'):
        ask(f'{method} /v3/auth/tokens', by=demo, X_Subject_Token=admin, expect=403)


def test_a_revoked_token_is_over(ask, admin, demo):
    ask('DELETE /v3/auth/tokens', by=demo, X_Subject_Token=demo, expect=204)
    ask('GET /v3/auth/projects', by=demo, expect=401)
    ask('GET /v3/auth/tokens', by=admin, X_Subject_Token=demo, expect=404)


def test_where_a_token_leads(ask, admin, demo, log_in):
    assert ask('GET /v3/auth/catalog', by=demo).json['catalog'][0]['type'] == 'identity'
    ask('GET /v3/auth/catalog', by=log_in('demo', scope='unscoped'), expect=403)
    assert ask('GET /v3/auth/domains', by=demo).json['domains'] == []
    assert [domain['id'] for domain in ask('GET /v3/auth/domains', by=admin).json['domains']] == ['default']
    assert ask('GET /v3/auth/system', by=demo).json['system'] == []
    assert ask('GET /v3/auth/system', by=admin).json['system'] == [{'all': True}]


# Domains


def test_domains(ask, admin, demo):
    [domain] = ask('GET /v3/domains', by=admin).json['domains']
    assert (domain['id'], domain['name'], domain['enabled']) == ('default', 'Default', True)
    assert ask('GET /v3/domains?name=Other', by=admin).json['domains'] == []
    assert ask('GET /v3/domains/default', by=demo).json == {'domain': domain}
    ask('GET /v3/domains/none', by=admin, expect=404)
    ask('GET /v3/domains/none', by=demo, expect=403)


# Projects


def test_the_life_of_a_project(ask, admin):
    body = {
        'name': 'apples',
        'description': None,
        'tags': ['red'],
        'cost_center': '42',
        'options': {},
        'is_domain': False,
    }
    project = ask('POST /v3/projects', {'project': body}, by=admin, expect=201).json['project']
    url = f'http://cloud.example/identity/v3/projects/{project["id"]}'
    assert project == {
        'id': project['id'],
        'name': 'apples',
        'description': '',
        'domain_id': 'default',
        'parent_id': 'default',
        'is_domain': False,
        'enabled': True,
        'tags': ['red'],
        'options': {},
        'cost_center': '42',
        'links': {'self': url},
    }
    path = f'/v3/projects/{project["id"]}'
    assert ask(f'GET {path}', by=admin).json['project'] == project
    changed = ask(f'PATCH {path}', {'project': {'name': 'pears', 'enabled': False, 'tags': []}}, by=admin).json[
        'project'
    ]
    assert changed == project | {'name': 'pears', 'enabled': False, 'tags': []}
    assert ask(f'PATCH {path}', {'project': changed}, by=admin).json['project'] == changed
    ask(f'DELETE {path}', by=admin, expect=204)
    for method in ('GET', 'DELETE'):
        ask(f'{method} {path}', by=admin, expect=404)
    ask(f'PATCH {path}', {'project': {'name': 'x'}}, by=admin, expect=404)


def test_finding_projects(ask, admin):
    for name, tags, enabled in (('apples', ['red', 'sweet'], True), ('lemons', ['sour'], False)):
        body = {'project': {'name': name, 'tags': tags, 'enabled': enabled}}
        ask('POST /v3/projects', body, by=admin, expect=201)

    def found(query):
        return [project['name'] for project in ask(f'GET /v3/projects?{query}', by=admin).json['projects']]

    everything = ['admin', 'apples', 'demo', 'lemons', 'service']
    for query, names in {
        '': everything,
        'name=apples': ['apples'],
        'name=Apples': [],
        'domain_id=default': everything,
        'domain_id=none': [],
        'parent_id=default': everything,
        'enabled=False': ['lemons'],
        'enabled=true&name=lemons': [],
        'enabled=fALSE': ['lemons'],
        'is_domain=true': ['Default'],
        'is_domain=tRUE': ['Default'],
        'tags=red,sweet': ['apples'],
        'tags=red,sour': [],
        'tags-any=red,sour': ['apples', 'lemons'],
        'not-tags-any=red,sour': ['admin', 'demo', 'service'],
        'not-tags=red,sweet': ['admin', 'demo', 'lemons', 'service'],
    }.items():
        assert found(query) == names, query
    ask('GET /v3/projects?enabled=maybe', by=admin, expect=400)


def test_projects_of_others(ask, admin, demo, id_of):
    own, other = id_of('projects', 'demo'), id_of('projects', 'admin')
    ask('GET /v3/projects', by=demo, expect=403)
    assert ask(f'GET /v3/projects/{own}', by=demo).json['project']['name'] == 'demo'
    for project_id in (other, UNKNOWN):
        ask(f'GET /v3/projects/{project_id}', by=demo, expect=403)
    path = f'/v3/users/{id_of("users", "demo")}/projects'
    for by in (admin, demo):
        assert [project['id'] for project in ask(f'GET {path}', by=by).json['projects']] == [own]
    assert ask(f'GET {path}?name=admin', by=demo).json['projects'] == []
    ask(f'GET /v3/users/{id_of("users", "admin")}/projects', by=demo, expect=403)


BAD_PROJECTS = {
    'no name': ({}, 'name'),
    'empty name': ({'name': ''}, 'project/name'),
    'long name': ({'name': 'x' * 65}, 'project/name'),
    'enabled as text': ({'name': 'x', 'enabled': 'yes'}, 'project/enabled'),
    'a domain in another': ({'name': 'x', 'is_domain': True, 'domain_id': 'default'}, 'domain_id'),
    'a parent': ({'name': 'x', 'parent_id': UNKNOWN}, 'parent_id'),
    'unknown domain': ({'name': 'x', 'domain_id': 'none'}, 'domain_id'),
    'nested extra': ({'name': 'x', 'other': {'a': 1}}, 'project/other'),
    'many extras': ({'name': 'x'} | {f'key{number}': 1 for number in range(64)}, 'project'),
    'its id': ({'name': 'x', 'id': UNKNOWN}, 'id'),
    'a tag with a comma': ({'name': 'x', 'tags': ['a,b']}, 'project/tags/0'),
    'an option': ({'name': 'x', 'options': {'fly': True}}, 'project/options'),
}


@pytest.mark.parametrize('case', BAD_PROJECTS)
def test_a_bad_project_names_the_field(ask, admin, case):
    project, field = BAD_PROJECTS[case]
    assert field in ask('POST /v3/projects', {'project': project}, by=admin, expect=400).json['error']['message']


def test_a_taken_name_is_a_conflict(ask, admin):
    ask('POST /v3/projects', {'project': {'name': 'demo'}}, by=admin, expect=409)
    ask('POST /v3/users', {'user': {'name': 'demo'}}, by=admin, expect=409)
    ask('POST /v3/roles', {'role': {'name': 'Member'}}, by=admin, expect=409)


# Users


def test_the_life_of_a_user(ask, admin, log_in, id_of):
    body = {
        'name': 'alice',
        'domain_id': 'default',
        'password': 'apple',
        'email': 'alice@example.org',
        'default_project_id': id_of('projects', 'demo'),
        'options': {'ignore_password_expiry': True},
    }
    user = ask('POST /v3/users', {'user': body}, by=admin, expect=201).json['user']
    assert 'password' not in user
    expected = {key: body[key] for key in ('name', 'domain_id', 'email', 'default_project_id', 'options')}
    assert expected.items() <= user.items()
    assert (user['enabled'], user['description'], user['password_expires_at']) == (True, '', None)
    path = f'/v3/users/{user["id"]}'
    assert ask(f'GET {path}', by=admin).json['user'] == user
    alice = log_in('alice', 'apple')
    assert ask(f'GET {path}', by=alice).json['user'] == user
    ask(f'PATCH {path}', {'user': {'email': 'x'}}, by=alice, expect=403)
    changed = ask(f'PATCH {path}', {'user': {'name': 'eve', 'enabled': False}}, by=admin).json['user']
    assert changed == user | {'name': 'eve', 'enabled': False}
    ask(f'GET {path}', by=alice, expect=401)
    ask('POST /v3/auth/tokens', proof('eve', 'apple'), expect=401)
    ask(f'DELETE {path}', by=admin, expect=204)
    ask(f'GET {path}', by=admin, expect=404)


def test_finding_users(ask, admin, demo, id_of):
    assert [user['name'] for user in ask('GET /v3/users', by=admin).json['users']] == ['admin', 'demo']
    assert [user['name'] for user in ask('GET /v3/users?name=demo&enabled=1', by=admin).json['users']] == ['demo']
    ask('GET /v3/users', by=demo, expect=403)
    for user_id in (id_of('users', 'admin'), UNKNOWN):
        ask(f'GET /v3/users/{user_id}', by=demo, expect=403)


def test_a_user_changes_its_password(ask, demo, log_in, id_of):
    path = f'/v3/users/{id_of("users", "demo")}/password'
    body = {'user': {'password': 'new', 'original_password': 'wrong'}}
    ask(f'POST {path}', body, by=demo, expect=401)
    ask(f'POST /v3/users/{UNKNOWN}/password', body, expect=401)
    ask(f'POST {path}', {'user': {'password': 'new'}}, expect=400)
    ask(f'POST {path}', {'user': {'password': 'new', 'original_password': 'demo-secret'}}, by=demo, expect=204)
    ask('GET /v3/auth/projects', by=demo, expect=401)
    assert log_in('demo', 'new')


BAD_USERS = {
    'no name': ({}, 'name'),
    'long name': ({'name': 'x' * 256}, 'user/name'),
    'long password': ({'name': 'x', 'password': 'x' * 1025}, 'user/password'),
    'empty password': ({'name': 'x', 'password': ''}, 'user/password'),
    'unknown project': ({'name': 'x', 'default_project_id': 'none'}, 'default_project_id'),
    'unknown option': ({'name': 'x', 'options': {'fly': True}}, 'user/options'),
    'more factors': ({'name': 'x', 'options': {'multi_factor_auth_enabled': True}}, 'multi_factor_auth_enabled'),
    'long extra': ({'name': 'x', 'email': 'x' * 1025}, 'user/email'),
}


@pytest.mark.parametrize('case', BAD_USERS)
def test_a_bad_user_names_the_field(ask, admin, case):
    user, field = BAD_USERS[case]
    assert field in ask('POST /v3/users', {'user': user}, by=admin, expect=400).json['error']['message']


def test_a_user_stays_in_its_domain(ask, admin, id_of):
    path = f'/v3/users/{id_of("users", "demo")}'
    ask(f'PATCH {path}', {'user': {'domain_id': 'default'}}, by=admin)
    assert (
        'domain_id' in ask(f'PATCH {path}', {'user': {'domain_id': 'x'}}, by=admin, expect=400).json['error']['message']
    )


# Roles


def test_the_life_of_a_role(ask, admin, demo):
    role = ask('POST /v3/roles', {'role': {'name': 'operator', 'options': {}}}, by=admin, expect=201).json['role']
    assert (role['name'], role['domain_id'], role['options']) == ('operator', None, {})
    path = f'/v3/roles/{role["id"]}'
    assert ask(f'GET {path}', by=admin).json['role'] == role
    changed = ask(f'PATCH {path}', {'role': {'description': 'Runs it'}}, by=admin).json['role']
    assert changed == role | {'description': 'Runs it'}
    ask('GET /v3/roles', by=demo, expect=403)
    ask(f'PATCH {path}', {'role': {'options': {'immutable': True}}}, by=admin)
    ask(f'DELETE {path}', by=admin, expect=403)
    ask(f'PATCH {path}', {'role': {'options': {'immutable': False}}}, by=admin)
    ask(f'DELETE {path}', by=admin, expect=204)
    ask(f'GET {path}', by=admin, expect=404)
    ask('POST /v3/roles', {'role': {}}, by=admin, expect=400)


def test_a_role_has_attributes_that_clients_add(ask, admin):
    asked = {'name': 'operator', 'email': 'ops@example.org'}
    role = ask('POST /v3/roles', {'role': asked}, by=admin, expect=201).json['role']
    assert role.items() >= asked.items()
    path = f'/v3/roles/{role["id"]}'
    changed = ask(f'PATCH {path}', {'role': {'floor': 3, 'email': None, 'links': role['links']}}, by=admin).json['role']
    assert 'email' not in changed
    assert changed['floor'] == 3
    assert ask(f'GET {path}', by=admin).json['role'] == changed
    ask(f'PATCH {path}', {'role': {'domain_id': 'default'}}, by=admin, expect=400)
    ask('POST /v3/roles', {'role': asked | {'email': ['x']}}, by=admin, expect=400)


def test_finding_roles(ask, admin):
    def names(query):
        return [role['name'] for role in ask(f'GET /v3/roles{query}', by=admin).json['roles']]

    assert names('') == ['admin', 'manager', 'member', 'reader', 'service']
    assert names('?name=member') == ['member']
    assert names('?domain_id=default') == []


@pytest.mark.parametrize('on', ['project', 'domain', 'system'])
def test_granting_and_revoking(ask, admin, demo, id_of, log_in, on):
    target = {'project': f'projects/{id_of("projects", "service")}', 'domain': 'domains/default', 'system': 'system'}[
        on
    ]
    roles = f'/v3/{target}/users/{id_of("users", "demo")}/roles'
    grant = f'{roles}/{id_of("roles", "manager")}'
    for method in ('HEAD', 'GET', 'DELETE'):
        ask(f'{method} {grant}', by=admin, expect=404)
    ask(f'PUT {grant}', by=demo, expect=403)
    for _ in range(2):
        ask(f'PUT {grant}', by=admin, expect=204)
    for method in ('HEAD', 'GET'):
        ask(f'{method} {grant}', by=admin, expect=204)
    assert [role['name'] for role in ask(f'GET {roles}', by=admin).json['roles']] == ['manager']
    ask(f'GET {roles}', by=demo, expect=403)
    scope = {on: {'all': True} if on == 'system' else {'id': target.rpartition('/')[2]}}
    token = log_in('demo', scope=scope)
    held = ask('GET /v3/auth/tokens', by=token, X_Subject_Token=token).json['token']['roles']
    assert [role['name'] for role in held] == ['manager', 'member', 'reader']
    ask(f'DELETE {grant}', by=admin, expect=204)
    assert ask(f'GET {roles}', by=admin).json['roles'] == []
    ask('GET /v3/auth/projects', by=token, expect=401)


def test_grants_of_what_is_not_there(ask, admin, id_of):
    user, project, role = id_of('users', 'demo'), id_of('projects', 'demo'), id_of('roles', 'member')
    for path in (
        f'projects/{UNKNOWN}/users/{user}/roles/{role}',
        f'projects/{project}/users/{UNKNOWN}/roles/{role}',
        f'projects/{project}/users/{user}/roles/{UNKNOWN}',
        f'domains/{UNKNOWN}/users/{user}/roles/{role}',
        f'system/users/{UNKNOWN}/roles/{role}',
    ):
        assert UNKNOWN in ask(f'PUT /v3/{path}', by=admin, expect=404).json['error']['message']


def test_role_assignments(ask, admin, demo, id_of):
    user, project, role = id_of('users', 'demo'), id_of('projects', 'demo'), id_of('roles', 'member')

    def found(query):
        return ask(f'GET /v3/role_assignments?{query}', by=admin).json['role_assignments']

    grant = f'http://cloud.example/identity/v3/projects/{project}/users/{user}/roles/{role}'
    assert found(f'user.id={user}') == [
        {
            'user': {'id': user},
            'role': {'id': role},
            'scope': {'project': {'id': project}},
            'links': {'assignment': grant},
        }
    ]
    default = {'id': 'default', 'name': 'Default'}
    [named] = found(f'scope.project.id={project}&include_names=true')
    assert named['user'] == {'id': user, 'name': 'demo', 'domain': default}
    assert named['role'] == {'id': role, 'name': 'member'}
    assert named['scope'] == {'project': {'id': project, 'name': 'demo', 'domain': default}}
    [domain] = found('scope.domain.id=default&include_names')
    assert domain['scope'] == {'domain': default}
    [system] = found('scope.system=all')
    assert system['scope'] == {'system': {'all': True}}
    assert len(found('')) == 4
    assert [each['user']['id'] for each in found(f'role.id={role}')] == [user]
    for nothing in ('group.id=x', f'user.id={UNKNOWN}', 'scope.OS-INHERIT:inherited_to=projects'):
        assert found(nothing) == []
    ask('GET /v3/role_assignments', by=demo, expect=403)


def test_effective_role_assignments_follow_implications(ask, admin, id_of):
    user, reader = id_of('users', 'admin'), id_of('roles', 'reader')
    path = f'/v3/role_assignments?user.id={user}&scope.system=all&effective'
    found = ask(f'GET {path}&include_names', by=admin).json['role_assignments']
    assert [each['role']['name'] for each in found] == ['admin', 'manager', 'member', 'reader']
    assert ['prior_role' in each['links'] for each in found] == [False, True, True, True]
    [implied] = ask(f'GET {path}&role.id={reader}', by=admin).json['role_assignments']
    assert implied['role'] == {'id': reader}


# Application credentials


@pytest.fixture
def credentials(id_of):
    """The path of demo's application credentials."""
    return f'/v3/users/{id_of("users", "demo")}/application_credentials'


def credential_proof(**proof):
    return {'auth': {'identity': {'methods': ['application_credential'], 'application_credential': proof}}}


def test_the_life_of_an_application_credential(ask, admin, demo, credentials, id_of):
    body = {
        'name': 'robot',
        'roles': [{'name': 'reader'}],
        'description': 'Backups',
        'expires_at': '2999-01-02T03:04:05Z',
    }
    made = ask(f'POST {credentials}', {'application_credential': body}, by=demo, expect=201).json[
        'application_credential'
    ]
    secret = made.pop('secret')
    assert len(secret) >= 32
    assert made['roles'] == [{'id': id_of('roles', 'reader'), 'name': 'reader', 'domain_id': None}]
    assert made['expires_at'] == '2999-01-02T03:04:05.000000'
    assert (made['unrestricted'], made['project_id']) == (False, id_of('projects', 'demo'))
    for by in (admin, demo):
        assert ask(f'GET {credentials}', by=by).json['application_credentials'] == [made]
        assert ask(f'GET {credentials}/{made["id"]}', by=by).json['application_credential'] == made
    assert ask(f'GET {credentials}?name=other', by=demo).json['application_credentials'] == []
    user = {'name': 'demo', 'domain': {'name': 'Default'}}
    for reference in ({'id': made['id']}, {'name': 'robot', 'user': user}):
        token = ask('POST /v3/auth/tokens', credential_proof(secret=secret, **reference), expect=201).json['token']
        assert token['methods'] == ['application_credential']
        assert token['application_credential'] == {'id': made['id'], 'name': 'robot', 'restricted': True}
        assert [role['name'] for role in token['roles']] == ['reader']
    ask(f'DELETE {credentials}/{made["id"]}', by=demo, expect=204)
    ask(f'GET {credentials}/{made["id"]}', by=demo, expect=404)
    ask('POST /v3/auth/tokens', credential_proof(secret=secret, id=made['id']), expect=401)


@pytest.mark.parametrize(('unrestricted', 'status'), [(None, 403), (False, 403), (True, 201)])
def test_a_restricted_credential_makes_no_others(ask, demo, credentials, unrestricted, status):
    body = {'application_credential': {'name': 'one', 'secret': 's', 'unrestricted': unrestricted, 'roles': None}}
    made = ask(f'POST {credentials}', body, by=demo, expect=201).json['application_credential']
    assert made['secret'] == 's'
    response = ask('POST /v3/auth/tokens', credential_proof(id=made['id'], secret='s'), expect=201)
    robot = response.headers['X-Subject-Token']
    ask(f'POST {credentials}', {'application_credential': {'name': 'two'}}, by=robot, expect=status)
    ask(f'DELETE {credentials}/{made["id"]}', by=robot, expect=204 if status == 201 else 403)


def test_credentials_belong_to_their_user(ask, admin, demo, credentials, id_of, make, log_in):
    body = {'application_credential': {'name': 'robot'}}
    ask(f'POST {credentials}', body, by=admin, expect=403)
    made = ask(f'POST {credentials}', body, by=demo, expect=201).json['application_credential']
    ask(f'POST {credentials}', body, by=demo, expect=409)
    others = f'/v3/users/{id_of("users", "admin")}/application_credentials'
    for request in (f'GET {others}', f'GET {others}/{made["id"]}', f'DELETE {others}/{made["id"]}'):
        ask(request, by=demo, expect=403)
    for method in ('GET', 'DELETE'):
        ask(f'{method} {others}/{made["id"]}', by=admin, expect=404)
    hers = f'/v3/users/{make("users", name="eve", password="x")["id"]}/application_credentials'
    for method in ('GET', 'DELETE'):
        ask(f'{method} {hers}/{made["id"]}', by=log_in('eve', 'x'), expect=403)
        ask(f'{method} {hers}/{UNKNOWN}', by=log_in('eve', 'x'), expect=404)
    ask(f'GET /v3/users/{UNKNOWN}/application_credentials', by=admin, expect=404)


BAD_CREDENTIALS = {
    'no name': ({}, 'name'),
    'a time that is none': ({'name': 'x', 'expires_at': 'tomorrow'}, 'expires_at'),
    'a time at the end of the world': ({'name': 'x', 'expires_at': '9999-12-31T23:59:59-23:00'}, 'expires_at'),
    'a time in the past': ({'name': 'x', 'expires_at': '2001-01-01T00:00:00'}, 'expires_at'),
    'part of an access rule': ({'name': 'x', 'access_rules': [{'path': '/'}]}, 'access_rules'),
    'an access rule that is not there': ({'name': 'x', 'access_rules': [{'id': 'x'}]}, 'access_rules'),
    'another project': ({'name': 'x', 'project_id': UNKNOWN}, 'project_id'),
    'a role not held': ({'name': 'x', 'roles': [{'name': 'admin'}]}, 'roles'),
    'a role without a name': ({'name': 'x', 'roles': [{}]}, 'roles/0'),
    'a role with neither id nor name': ({'name': 'x', 'roles': [{'domain': 'x'}]}, 'roles/0'),
    'unknown field': ({'name': 'x', 'color': 'red'}, 'color'),
}


@pytest.mark.parametrize('case', BAD_CREDENTIALS)
def test_a_bad_credential_names_the_field(ask, demo, credentials, case):
    body, field = BAD_CREDENTIALS[case]
    error = ask(f'POST {credentials}', {'application_credential': body}, by=demo, expect=400).json['error']
    assert field in error['message']


def test_a_credential_takes_no_scope(ask, demo, credentials):
    body = {'application_credential': {'name': 'robot', 'secret': 's'}}
    made = ask(f'POST {credentials}', body, by=demo, expect=201).json['application_credential']
    login = credential_proof(id=made['id'], secret='s')
    login['auth']['scope'] = {'project': {'id': made['project_id']}}
    ask('POST /v3/auth/tokens', login, expect=401)


# The whole API


OPERATIONS = [operation for kind in CONTROLLERS for operation in kind.operations]


@pytest.mark.parametrize('operation', [each for each in OPERATIONS if each.policy is not ANYBODY], ids=str)
def test_most_operations_ask_for_a_token(ask, operation):
    ask(f'{operation.method} /v3{operation.path}', {}, expect=401)


def test_what_is_anonymous():
    anonymous = [str(operation) for operation in OPERATIONS if operation.policy is ANYBODY]
    assert anonymous == ['POST /auth/tokens', 'POST /users/{user_id}/password']


def test_no_list_asks_more_queries_for_more_records(ask, admin, asked, identity, id_of):
    lists = ('projects', 'users', 'roles', 'role_assignments?include_names&effective')

    def count():
        asked.clear()
        for path in lists:
            ask(f'GET /v3/{path}', by=admin)
        return len(asked)

    before = count()
    member = id_of('roles', 'member')
    for number in range(5):
        user, project = identity.users.create(f'user{number}'), identity.projects.create(f'project{number}')
        identity.roles.create(f'role{number}')
        ask(f'PUT /v3/projects/{project.id}/users/{user.id}/roles/{member}', by=admin, expect=204)
    assert count() == before


def test_links_follow_the_mount_point(app, log_in):
    req = webob.Request.blank('/v3/auth/projects', base_url='https://other.example/deep/identity')
    req.headers['X-Auth-Token'] = log_in('demo')
    document = req.get_response(app).json
    assert document['links']['self'] == 'https://other.example/deep/identity/v3/auth/projects'
    assert document['projects'][0]['links']['self'].startswith('https://other.example/deep/identity/v3/projects/')


# Password guessing


def test_who_guesses_passwords_has_to_wait(ask):
    for _ in range(5):
        ask('POST /v3/auth/tokens', proof('demo', 'wrong'), expect=401)
    refused = ask('POST /v3/auth/tokens', proof('demo'), expect=429)
    assert int(refused.headers['Retry-After']) in (1, 2)
    ask('POST /v3/auth/tokens', proof('admin'), expect=201)


def test_who_guesses_the_password_to_change_has_to_wait(ask, identity):
    [demo] = identity.users.list(name='demo')
    guess = {'user': {'original_password': 'wrong', 'password': 'new'}}
    for _ in range(5):
        ask(f'POST /v3/users/{demo.id}/password', guess, expect=401)
    ask(f'POST /v3/users/{demo.id}/password', guess, expect=429)


def test_what_was_in_the_way_of_others_is_done_again(identity, demo, deadlock, id_of, make):
    service, project = make('services', type='x'), id_of('projects', 'demo')
    place = {'service_id': service['id'], 'resource_name': 'cores'}
    identity.registered_limits.create(**place, default_limit=1)
    token = identity.tokens.get(demo)
    role, other = make('roles', name='one')['id'], make('roles', name='other')['id']

    def done(change, *facts, **more):
        deadlock()
        return change(*facts, **more)

    rule = {'service': 'compute', 'method': 'GET', 'path': '/'}
    credential, secret = done(identity.application_credentials.create, token, 'robot', access_rules=[rule])
    assert identity.application_credentials.verify(credential, secret)
    identity.application_credentials.delete(token, token.user_id, credential.id)
    [rule_id] = credential.access_rule_ids
    done(identity.access_rules.delete, token.user_id, rule_id)
    assert identity.access_rules.list() == []
    assert done(identity.roles.update, role, name='new').name == 'new'
    done(identity.roles.imply, role, other)
    assert identity.roles.implications()[role] == [other]
    [limit] = done(identity.limits.create_all, [{**place, 'resource_limit': 2, 'project_id': project}])
    assert limit.project_id == project


@pytest.mark.parametrize('name', ['demo', 'nobody'])
def test_who_guesses_passwords_has_to_wait_however_the_user_is_written(ask, name):
    """Nor does it tell whether there is such a user."""
    domains = [{'id': 'default'}, {'name': 'Default'}, {'name': 'Default', 'domain': {'name': 'any'}}]
    beside = [{}, {'user': {'name': 'any'}}]
    written = [{'name': name, 'domain': domain, **more} for domain in domains for more in beside]
    for each in written[:5]:
        ask('POST /v3/auth/tokens', given(each), expect=401)
    ask('POST /v3/auth/tokens', given(written[5]), expect=429)


def test_a_users_name_and_id_share_the_attempts(ask, identity):
    [demo] = identity.users.list(name='demo')
    for each in [{'id': demo.id}, {'name': 'demo', 'domain': {'id': 'default'}}] * 2:
        ask('POST /v3/auth/tokens', given(each), expect=401)
    ask(f'POST /v3/users/{demo.id}/password', {'user': {'original_password': 'wrong', 'password': 'new'}}, expect=401)
    ask('POST /v3/auth/tokens', proof('demo'), expect=429)


def test_a_credentials_name_and_id_share_the_attempts(ask, identity, log_in):
    [demo] = identity.users.list(name='demo')
    asked = {'application_credential': {'name': 'program'}}
    made = ask(f'POST /v3/users/{demo.id}/application_credentials', asked, by=log_in('demo'), expect=201).json
    written = [
        {'id': made['application_credential']['id']},
        {'name': 'program', 'user': {'id': demo.id}},
        {'name': 'program', 'user': {'name': 'demo', 'domain': {'name': 'Default'}}, 'domain': {'name': 'any'}},
    ]
    for each in [*written, *written[:2]]:
        ask('POST /v3/auth/tokens', proven(each), expect=401)
    ask('POST /v3/auth/tokens', proven(written[2]), expect=429)


@pytest.mark.parametrize('beside', [5, 'x', [], {}, {'name': 'Default'}, {'id': 5}])
def test_what_a_reference_need_not_have_is_ignored(ask, beside):
    domain = {'name': 'Default', 'domain': beside}
    user = {'name': 'demo', 'password': 'demo-secret', 'domain': domain, 'user': beside}
    asked = given(user)
    asked['auth']['scope'] = {'project': {'name': 'demo', 'domain': domain}}
    ask('POST /v3/auth/tokens', asked, expect=201)


def given(user):
    user = {'password': 'wrong', **user}
    return {'auth': {'identity': {'methods': ['password'], 'password': {'user': user}}}}


def proven(credential):
    credential = {'secret': 'wrong', **credential}
    return {'auth': {'identity': {'methods': ['application_credential'], 'application_credential': credential}}}


@pytest.mark.parametrize(
    ('kind', 'noun'),
    [('users', 'user'), ('projects', 'project'), ('domains', 'domain'), ('groups', 'group'), ('roles', 'role')],
)
def test_names_are_not_blank(ask, admin, kind, noun):
    answer = ask(
        f'POST /v3/{kind}',
        {noun: {'name': ' \t', 'domain_id': None if kind == 'roles' else 'default'}},
        by=admin,
        expect=400,
    )
    assert f'{noun}/name' in answer.json['error']['message']
