"""Users' stored credentials, and application credentials."""

import pytest
import sqlalchemy as sa

from computeapi.backends.identity.local import LocalIdentity
from computeapi.backends.identity.local import application_credentials as programs
from computeapi.backends.identity.local import stored_credentials as stored
from computeapi.context import Permission
from computeapi.db.tables.identity import stored_credentials
from computeapi.errors import Forbidden, NotSupported
from tests.backends.test_volume import together
from tests.standalone.identity.conftest import UNKNOWN


@pytest.fixture
def credential(ask, demo):
    body = {'credential': {'type': 'totp', 'blob': 'hush-hush'}}
    return ask('POST /v3/credentials', body, by=demo, expect=201).json['credential']


def test_the_life_of_a_credential(ask, admin, demo, credential, id_of):
    assert (credential['user_id'], credential['blob']) == (id_of('users', 'demo'), 'hush-hush')
    path = f'/v3/credentials/{credential["id"]}'
    changed = ask(f'PATCH {path}', {'credential': {'blob': 'new'}}, by=demo).json['credential']
    assert ask(f'GET {path}', by=demo).json['credential'] == changed == credential | {'blob': 'new'}
    assert ask('GET /v3/credentials?type=ec2', by=demo).json['credentials'] == []
    ask(f'DELETE {path}', by=demo, expect=204)
    for by, status in ((admin, 404), (demo, 403)):
        ask(f'GET {path}', by=by, expect=status)
        ask(f'PATCH {path}', {'credential': {'blob': 'new'}}, by=by, expect=status)
        ask(f'DELETE {path}', by=by, expect=status)


def test_credentials_are_stored_encrypted(store, credential):
    with store.read() as connection:
        assert 'hush' not in repr(connection.execute(sa.select(stored_credentials)).all())


def test_without_the_key_nothing_is_stored_or_shown(store, credential):
    for key, refused in ((None, True), ('A' * 43 + '=', False), ('B' * 43 + '=', True)):
        credentials = LocalIdentity(store, bcrypt_cost=4, credential_key=key).credentials
        if refused:
            with pytest.raises(NotSupported):
                credentials.get(credential['id'])
        else:
            assert credentials.get(credential['id']).blob == 'hush-hush'


def test_credentials_of_others(ask, admin, demo, credential, id_of, make, log_in):
    make('users', name='eve', password='x')
    eve, path = log_in('eve', 'x'), f'/v3/credentials/{credential["id"]}'
    assert ask('GET /v3/credentials', by=eve).json['credentials'] == []
    assert ask(f'GET /v3/credentials?user_id={credential["user_id"]}', by=eve).json['credentials'] == []
    assert ask('GET /v3/credentials', by=admin).json['credentials'] == [credential]
    for method, body in (('GET', None), ('PATCH', {'credential': {'blob': 'x'}}), ('DELETE', None)):
        ask(f'{method} {path}', body, by=eve, expect=403)
    given = {'user_id': id_of('users', 'admin')}
    ask(f'PATCH {path}', {'credential': given}, by=demo, expect=403)
    ask('POST /v3/credentials', {'credential': {'type': 'x', 'blob': 'x', **given}}, by=demo, expect=403)
    ask('POST /v3/credentials', {'credential': {'type': 'x', 'blob': 'x', 'user_id': UNKNOWN}}, by=admin, expect=400)


def test_a_user_stores_so_many_credentials_and_no_more(identity, id_of, monkeypatch):
    monkeypatch.setattr(stored, 'MAX_CREDENTIALS', 3)
    user = id_of('users', 'demo')
    refused = together(*[lambda: identity.credentials.create(user, 'totp', 'x')] * 6)
    assert refused == [Forbidden] * 3
    with pytest.raises(Forbidden):
        identity.credentials.create_ec2(user, id_of('projects', 'demo'))


def test_a_user_has_so_many_access_rules_and_no_more(ask, demo, id_of, monkeypatch):
    """They stay when the credentials that use them are deleted."""
    monkeypatch.setattr(programs, 'MAX_RULES', 3)
    path = f'/v3/users/{id_of("users", "demo")}'
    rules = [{'path': f'/v2.1/{each}', 'method': 'GET', 'service': 'compute'} for each in range(4)]

    def create(name, *rules, expect=201):
        asked = {'application_credential': {'name': name, 'access_rules': rules}}
        return ask(f'POST {path}/application_credentials', asked, by=demo, expect=expect).json

    made = create('program', *rules[:3])['application_credential']['id']
    ask(f'DELETE {path}/application_credentials/{made}', by=demo, expect=204)
    create('same', *rules[:3])
    create('other', rules[3], expect=403)
    assert len(ask(f'GET {path}/access_rules', by=demo).json['access_rules']) == 3


def test_keys_for_ec2(ask, admin, demo, id_of):
    user, project = id_of('users', 'demo'), id_of('projects', 'demo')
    path = f'/v3/users/{user}/credentials/OS-EC2'
    keys = ask(f'POST {path}', {'tenant_id': project}, by=demo, expect=201).json['credential']
    assert (keys['user_id'], keys['tenant_id'], len(keys['access']), len(keys['secret'])) == (user, project, 32, 32)
    assert ask(f'GET {path}', by=admin).json['credentials'] == [keys]
    assert ask(f'GET {path}/{keys["access"]}', by=demo).json['credential'] == keys
    ask(f'POST {path}', {'tenant_id': id_of('projects', 'service')}, by=demo, expect=201)
    ask(f'POST {path}', {'tenant_id': UNKNOWN}, by=demo, expect=404)
    others = f'/v3/users/{id_of("users", "admin")}/credentials/OS-EC2'
    for request in (f'GET {others}', f'GET {others}/{keys["access"]}', f'DELETE {others}/{keys["access"]}'):
        ask(request, by=demo, expect=403)
    ask(f'GET {others}/{keys["access"]}', by=admin, expect=404)
    ask(f'DELETE {path}/{keys["access"]}', by=demo, expect=204)
    ask(f'GET {path}/{keys["access"]}', by=demo, expect=404)


def test_lists_of_a_user_whose_id_is_no_text_are_empty(ask, admin):
    links = ask('GET /v3/users/%ff/credentials/OS-EC2', by=admin, expect=200).json['links']
    assert links['self'].endswith('/v3/users/%FF/credentials/OS-EC2')


def test_what_is_to_be_keys_for_ec2_has_an_access_key(ask, admin, demo, credential, id_of):
    path, keys = f'/v3/credentials/{credential["id"]}', f'/v3/users/{id_of("users", "demo")}/credentials/OS-EC2'
    ask(f'PATCH {path}', {'credential': {'type': 'ec2'}}, by=demo, expect=400)
    assert ask(f'GET {keys}', by=demo).json['credentials'] == []
    ask(f'PATCH {path}', {'credential': {'type': 'ec2', 'blob': '{"access": "a"}'}}, by=demo)
    for blob in (
        'hush-hush',
        '{}',
        '[]',
        '{"access": 1}',
        f'{{"access": "a", "secret": {"9" * 30}}}',
        r'{"access": "\ud800"}',
        r'{"access": "a", "secret": "\ud800"}',
    ):
        ask(f'PATCH {path}', {'credential': {'blob': blob}}, by=demo, expect=400)
        ask('POST /v3/credentials', {'credential': {'type': 'ec2', 'blob': blob}}, by=demo, expect=400)
    ask(f'PATCH {path}', {'credential': {'user_id': UNKNOWN}}, by=admin, expect=400)
    assert [each['access'] for each in ask(f'GET {keys}', by=demo).json['credentials']] == ['a']


def test_what_was_keys_for_ec2_is_none_any_more(ask, demo, id_of):
    body = {'credential': {'type': 'ec2', 'blob': '{"access": "a", "secret": "b"}'}}
    made = ask('POST /v3/credentials', body, by=demo, expect=201).json['credential']
    path = f'/v3/credentials/{made["id"]}'
    ask(f'PATCH {path}', {'credential': {'type': 'cert', 'blob': 'hush-hush'}}, by=demo)
    keys = f'/v3/users/{id_of("users", "demo")}/credentials/OS-EC2/a'
    for method in ('GET', 'DELETE'):
        ask(f'{method} {keys}', by=demo, expect=404)
    assert ask(f'GET {path}', by=demo).json['credential']['blob'] == 'hush-hush'


def test_keys_with_something_odd_beside_them_are_shown(ask, demo, id_of):
    path, odd = f'/v3/users/{id_of("users", "demo")}/credentials/OS-EC2', '[' * 1000 + ']' * 1000
    body = {'credential': {'type': 'ec2', 'blob': f'{{"access": "a", "odd": {odd}}}'}}
    ask('POST /v3/credentials', body, by=demo, expect=201)
    assert [each['access'] for each in ask(f'GET {path}', by=demo).json['credentials']] == ['a']


# Application credentials


@pytest.fixture
def robot(ask, demo, id_of):
    """robot(**facts) -> an application credential of demo, and a token for it."""
    path = f'/v3/users/{id_of("users", "demo")}/application_credentials'

    def robot(name='robot', **kwargs):
        body = {'application_credential': {'name': name, **kwargs}}
        made = ask(f'POST {path}', body, by=demo, expect=201).json['application_credential']
        proof = {'methods': ['application_credential'], 'application_credential': made}
        return made, ask('POST /v3/auth/tokens', {'auth': {'identity': proof}}, expect=201)

    return robot


def test_a_restricted_program_leaves_no_keys(ask, robot, id_of):
    _, response = robot()
    token = response.headers['X-Subject-Token']
    ask('POST /v3/credentials', {'credential': {'type': 'x', 'blob': 'x'}}, by=token, expect=403)
    path = f'/v3/users/{id_of("users", "demo")}/credentials/OS-EC2'
    ask(f'POST {path}', {'tenant_id': id_of('projects', 'demo')}, by=token, expect=403)


@pytest.mark.parametrize('unrestricted', [False, True])
def test_a_program_has_the_keys_of_its_project_alone(ask, demo, robot, credential, id_of, unrestricted):
    path, place = f'/v3/users/{id_of("users", "demo")}/credentials/OS-EC2', id_of('projects', 'service')
    mine, other = (
        ask(f'POST {path}', {'tenant_id': project}, by=demo, expect=201).json['credential']
        for project in (id_of('projects', 'demo'), place)
    )
    token = robot(unrestricted=unrestricted)[1].headers['X-Subject-Token']
    assert ask(f'GET {path}', by=token).json['credentials'] == [mine]
    [kept] = ask('GET /v3/credentials', by=token).json['credentials']
    assert ask(f'GET /v3/credentials/{kept["id"]}', by=token).json['credential'] == kept
    assert ask(f'GET {path}/{mine["access"]}', by=token).json['credential'] == mine
    ask(f'POST {path}', {'tenant_id': place}, by=token, expect=403)
    for body in ({'type': 'x', 'blob': 'x'}, {'type': 'x', 'blob': 'x', 'project_id': place}):
        ask('POST /v3/credentials', {'credential': body}, by=token, expect=403)
    ask(f'PATCH /v3/credentials/{kept["id"]}', {'credential': {'project_id': place}}, by=token, expect=403)
    for method in ('GET', 'DELETE'):
        ask(f'{method} {path}/{other["access"]}', by=token, expect=403)
    for method, body in (('GET', None), ('PATCH', {'credential': {'blob': 'x'}}), ('DELETE', None)):
        ask(f'{method} /v3/credentials/{credential["id"]}', body, by=token, expect=403)
    if unrestricted:
        ask(f'PATCH /v3/credentials/{kept["id"]}', {'credential': {'type': 'x'}}, by=token)
        ask(f'DELETE /v3/credentials/{kept["id"]}', by=token, expect=204)


def test_a_program_has_what_its_user_still_has(ask, admin, robot, make, id_of):
    """Roles that the user has by group membership come and go for the application credential too, within its roles."""
    group, picker = make('groups', name='pickers')['id'], make('roles', name='picker')['id']
    member = f'/v3/groups/{group}/users/{id_of("users", "demo")}'
    ask(f'PUT {member}', by=admin, expect=204)
    ask(f'PUT /v3/projects/{id_of("projects", "demo")}/groups/{group}/roles/{picker}', by=admin, expect=204)
    made, response = robot(roles=[{'name': 'picker'}])
    assert [role['name'] for role in made['roles']] == ['picker']
    token = response.headers['X-Subject-Token']
    ask(f'DELETE {member}', by=admin, expect=204)
    ask('GET /v3/auth/projects', by=token, expect=401)
    ask(f'PUT {member}', by=admin, expect=204)
    assert [each['name'] for each in ask('GET /v3/auth/projects', by=token).json['projects']] == ['demo']


def test_a_program_makes_no_stronger_one(ask, robot, id_of):
    _, response = robot(roles=[{'name': 'reader'}], unrestricted=True)
    path = f'/v3/users/{id_of("users", "demo")}/application_credentials'
    token = response.headers['X-Subject-Token']
    stronger = {'application_credential': {'name': 'other', 'roles': [{'name': 'member'}]}}
    ask(f'POST {path}', stronger, by=token, expect=400)
    made = ask(f'POST {path}', {'application_credential': {'name': 'other'}}, by=token, expect=201)
    assert [role['name'] for role in made.json['application_credential']['roles']] == ['reader']


def test_the_life_of_an_access_rule(ask, admin, demo, robot, id_of, log_in):
    rule = {'service': 'compute', 'method': 'GET', 'path': '/v2.1/servers'}
    made, response = robot(access_rules=[rule])
    [bound] = made['access_rules']
    assert bound == rule | {'id': bound['id']}
    assert response.json['token']['application_credential']['access_rules'] == [bound]
    rules = f'/v3/users/{made["user_id"]}/access_rules'
    [shown] = ask(f'GET {rules}', by=demo).json['access_rules']
    assert shown.items() >= bound.items()
    on_system = log_in('admin', scope={'system': {'all': True}})
    assert ask(f'GET {rules}/{bound["id"]}', by=on_system).json['access_rule'] == shown
    for request in (f'GET {rules}', f'GET {rules}/{bound["id"]}', f'DELETE {rules}/{bound["id"]}'):
        ask(request, by=admin, expect=403)
    ask(f'DELETE {rules}/{bound["id"]}', by=demo, expect=403)
    other, _ = robot('other', access_rules=[{'id': bound['id']}, rule | {'method': 'POST'}])
    assert other['access_rules'][0] == bound
    for each in (made, other):
        path = f'/v3/users/{made["user_id"]}/application_credentials/{each["id"]}'
        assert ask(f'GET {path}', by=demo).json['application_credential']['access_rules'] == each['access_rules']
        ask(f'DELETE {path}', by=demo, expect=204)
    ask(f'DELETE {rules}/{bound["id"]}', by=demo, expect=204)
    ask(f'GET {rules}/{bound["id"]}', by=demo, expect=404)
    ask(f'GET /v3/users/{id_of("users", "admin")}/access_rules', by=demo, expect=403)
    ask('GET /v3/users/%ff/access_rules', by=on_system, expect=404)


def test_access_rules_bind_the_program(ask, robot):
    _, response = robot(access_rules=[{'service': 'identity', 'method': 'GET', 'path': '/v3/auth/catalog'}])
    token = response.headers['X-Subject-Token']
    assert ask('GET /v3/auth/catalog', by=token).json['catalog']
    ask('GET /v3/auth/projects', by=token, expect=401)
    ask('DELETE /v3/auth/tokens', by=token, X_Subject_Token=token, expect=401)


def test_a_bound_program_makes_no_freer_one(ask, robot, id_of):
    path = f'/v3/users/{id_of("users", "demo")}/application_credentials'
    rule = {'service': 'identity', 'method': 'POST', 'path': '/v3/users/*/application_credentials'}
    made, response = robot(access_rules=[rule], unrestricted=True)
    token = response.headers['X-Subject-Token']
    freer = {'name': 'freer', 'access_rules': [rule | {'method': 'DELETE'}]}
    ask(f'POST {path}', {'application_credential': freer}, by=token, expect=403)
    child = ask(f'POST {path}', {'application_credential': {'name': 'child'}}, by=token, expect=201).json
    assert child['application_credential']['access_rules'] == made['access_rules']


@pytest.mark.parametrize(
    ('rule', 'path', 'covered'),
    [
        ('/v2.1/servers', '/v2.1/servers', True),
        ('/v2.1/servers', '/compute/v2.1/servers', True),
        ('/v2.1/servers', '/v2.1/servers/x', False),
        ('/v2.1/servers', '/v2x1/servers', False),
        ('/v2.1/servers/*', '/v2.1/servers/x', True),
        ('/v2.1/servers/{server_id}', '/v2.1/servers/x', True),
        ('/v2.1/servers/*', '/v2.1/servers/x/tags', False),
        ('/v2.1/servers/*/tags', '/v2.1/servers/x/tags', True),
        ('/v2.1/servers/**', '/v2.1/servers/x/tags/red', True),
        ('/**', '/v3/volumes', True),
        ('/', '/', False),
        ('/v3/a**', '/v3/a', True),
        ('/v3/a*', '/v3/a', False),
        ('/v3/**/tags', '/v3/images/x/tags', True),
        ('/v3/{', '/v3/{', True),
        ('/v3/users', '/v3/users\nx', False),
        ('/**', '/v3/users\nx', True),
        ('/v3/us\nrs', '/v3/us\nrs', True),
    ],
)
def test_what_a_rule_covers(rule, path, covered):
    assert Permission('compute', 'GET', rule).covers('GET', path) is covered
    assert not Permission('compute', 'POST', rule).covers('GET', path)


def test_no_rule_takes_long_to_compare(ask, robot):
    """With as many wildcards as fit, each of which could match at any position."""
    _, response = robot(access_rules=[{'service': 'identity', 'method': 'GET', 'path': f'/v3/{"**a" * 40}b'}])
    token = response.headers['X-Subject-Token']
    ask(f'GET /v3/users/{"a" * 1000}', by=token, expect=401)
    ask('GET /v3/users/%ff', by=token, expect=401)
