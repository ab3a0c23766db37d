"""What readers, managers and administrators of a domain may do, and what they may not."""

import pytest

from tests.standalone.identity.conftest import UNKNOWN, proof


@pytest.fixture
def domain(make):
    return make('domains', name='orchard')['id']


@pytest.fixture
def grant(ask, admin, id_of):
    """grant('reader', user_id, f'domains/{id}')"""

    def grant(role, user, target):
        ask(f'PUT /v3/{target}/users/{user}/roles/{id_of("roles", role)}', by=admin, expect=204)

    return grant


@pytest.fixture
def on_domain(ask, make, domain, grant):
    """on_domain('reader') -> the token of a user of the domain with this role on it."""

    def on_domain(role):
        user = make('users', name=role, password='x', domain_id=domain)['id']
        grant(role, user, f'domains/{domain}')
        body = proof(role, 'x', domain={'id': domain})
        body['auth']['scope'] = {'domain': {'id': domain}}
        return ask('POST /v3/auth/tokens', body, expect=201).headers['X-Subject-Token']

    return on_domain


@pytest.fixture
def inside(make, domain):
    """A user, a group and a project in the domain."""
    place = {'domain_id': domain}
    kinds = ('users', 'groups', 'projects')
    return {kind: make(kind, name='apple', **place)['id'] for kind in kinds}


@pytest.fixture
def outside(make, id_of):
    """The same in the default domain."""
    return {
        'users': id_of('users', 'demo'),
        'groups': make('groups', name='pickers')['id'],
        'projects': id_of('projects', 'demo'),
    }


REQUESTS = (
    *('POST /v3/domains', 'PATCH /v3/domains/default', 'DELETE /v3/domains/default'),
    *(
        f'{request}{kind}{record}'
        for kind in ('services', 'endpoints', 'policies', 'OS-EP-FILTER/endpoint_groups')
        for request, record in (('GET /v3/', ''), ('POST /v3/', ''))
    ),
    *('POST /v3/regions', 'PUT /v3/regions/x', 'PATCH /v3/regions/RegionOne', 'DELETE /v3/regions/RegionOne'),
    *('POST /v3/registered_limits', 'POST /v3/limits'),
    *('POST /v3/roles', 'GET /v3/roles?domain_id={domain}', 'PATCH /v3/roles/{role}', 'DELETE /v3/roles/{role}'),
    *('GET /v3/roles/{role}/implies', 'PUT /v3/roles/{role}/implies/{role}', 'GET /v3/role_inferences'),
    *('GET /v3/system/users/{user}/roles', 'HEAD /v3/system/users/{user}/roles/{role}'),
    *('PUT /v3/system/users/{user}/roles/{role}', 'DELETE /v3/system/users/{user}/roles/{role}'),
    *('GET /v3/OS-TRUST/trusts', 'POST /v3/OS-TRUST/trusts'),
    *('GET /v3/users/{user}/application_credentials', 'POST /v3/users/{user}/application_credentials'),
    *('GET /v3/users/{user}/access_rules', 'GET /v3/users/{user}/credentials/OS-EC2'),
    'POST /v3/users/{user}/credentials/OS-EC2',
)


def test_the_cloud_is_not_for_tokens_for_a_domain(ask, on_domain, inside, domain, id_of):
    """Not even with the role admin, which is one on the whole cloud if it is held on a project."""
    names = {'user': inside['users'], 'role': id_of('roles', 'member'), 'domain': domain}
    by = on_domain('admin')
    for request in REQUESTS:
        method, path = request.split(' ')
        body = {} if method in ('POST', 'PATCH') else None
        ask(f'{method} {path.format(**names)}', body, by=by, expect=403)


@pytest.mark.parametrize('kind', ['users', 'groups', 'projects'])
def test_managers_of_a_domain_make_and_change_what_is_in_it(ask, on_domain, domain, outside, kind):
    by, noun = on_domain('manager'), kind.removesuffix('s')
    body = {noun: {'name': 'pear', 'domain_id': domain}}
    made = ask(f'POST /v3/{kind}', body, by=by, expect=201).json[noun]
    changed = ask(f'PATCH /v3/{kind}/{made["id"]}', {noun: {'description': 'x'}}, by=by).json[noun]
    assert changed['description'] == 'x'
    ask(f'DELETE /v3/{kind}/{made["id"]}', by=by, expect=204)
    for place in ({}, {'domain_id': 'default'}, {'domain_id': UNKNOWN}):
        ask(f'POST /v3/{kind}', {noun: {'name': 'pear', **place}}, by=by, expect=403)
    for method, body in (('GET', None), ('PATCH', {noun: {'description': 'x'}}), ('DELETE', None)):
        ask(f'{method} /v3/{kind}/{outside[kind]}', body, by=by, expect=403)


@pytest.mark.parametrize('kind', ['users', 'groups', 'projects'])
def test_readers_of_a_domain_see_what_is_in_it(ask, on_domain, inside, outside, domain, kind):
    by, noun = on_domain('reader'), kind.removesuffix('s')
    assert ask(f'GET /v3/{kind}/{inside[kind]}', by=by).json[noun]['domain_id'] == domain
    ask(f'GET /v3/{kind}/{outside[kind]}', by=by, expect=403)
    for query in ('', '?enabled=true'):
        assert {each['domain_id'] for each in ask(f'GET /v3/{kind}{query}', by=by).json[kind]} == {domain}
    assert ask(f'GET /v3/{kind}?domain_id=default', by=by).json[kind] == []
    ask(f'POST /v3/{kind}', {noun: {'name': 'pear', 'domain_id': domain}}, by=by, expect=403)
    for method, body in (('PATCH', {noun: {'description': 'x'}}), ('DELETE', None)):
        ask(f'{method} /v3/{kind}/{inside[kind]}', body, by=by, expect=403)


@pytest.mark.parametrize('kind', ['users', 'groups', 'projects'])
def test_administrators_of_a_domain_have_lists_of_it(ask, on_domain, inside, outside, domain, kind):
    by, noun = on_domain('admin'), kind.removesuffix('s')
    assert {each['domain_id'] for each in ask(f'GET /v3/{kind}', by=by).json[kind]} == {domain}
    assert ask(f'POST /v3/{kind}', {noun: {'name': 'pear'}}, by=by, expect=201).json[noun]['domain_id'] == domain


def test_a_domain_as_a_project_is_made_by_administrators_only(ask, on_domain, domain):
    body = {'project': {'name': 'pear', 'is_domain': True}}
    ask('POST /v3/projects', body, by=on_domain('manager'), expect=403)
    ask(f'PATCH /v3/projects/{domain}', {'project': {'description': 'x'}}, by=on_domain('member'), expect=403)
    assert ask('GET /v3/projects?is_domain=true', by=on_domain('reader')).json['projects'] == []


def test_domains_for_those_in_them(ask, on_domain, domain, make, log_in, demo):
    reader = on_domain('reader')
    assert [each['id'] for each in ask('GET /v3/domains', by=reader).json['domains']] == [domain]
    ask(f'GET /v3/domains/{domain}', by=reader)
    for other in ('default', UNKNOWN):
        ask(f'GET /v3/domains/{other}', by=reader, expect=403)
    ask('GET /v3/domains/default', by=demo)
    ask('GET /v3/domains/default', by=log_in('demo', scope='unscoped'), expect=403)
    ask('GET /v3/domains', by=demo, expect=403)


def test_members_of_the_groups_of_a_domain(ask, admin, on_domain, inside, outside):
    manager, reader = on_domain('manager'), on_domain('reader')
    mine = f'/v3/groups/{inside["groups"]}/users'
    ask(f'PUT {mine}/{inside["users"]}', by=manager, expect=204)
    ask(f'PUT {mine}/{outside["users"]}', by=admin, expect=204)
    assert [each['id'] for each in ask(f'GET {mine}', by=reader).json['users']] == [inside['users']]
    ask(f'HEAD {mine}/{inside["users"]}', by=reader, expect=204)
    ask(f'PUT /v3/groups/{outside["groups"]}/users/{inside["users"]}', by=admin, expect=204)
    [group] = ask(f'GET /v3/users/{inside["users"]}/groups', by=reader).json['groups']
    assert group['id'] == inside['groups']
    for path in (f'{mine}/{outside["users"]}', f'/v3/groups/{outside["groups"]}/users/{inside["users"]}'):
        for method, by in (('HEAD', reader), ('PUT', manager), ('DELETE', manager)):
            ask(f'{method} {path}', by=by, expect=403)
    for path in (f'groups/{outside["groups"]}/users', f'users/{outside["users"]}/groups'):
        ask(f'GET /v3/{path}', by=reader, expect=403)
    ask(f'DELETE {mine}/{inside["users"]}', by=reader, expect=403)
    ask(f'DELETE {mine}/{inside["users"]}', by=manager, expect=204)


def test_tags_of_the_projects_of_a_domain(ask, on_domain, inside, outside):
    manager, reader = on_domain('manager'), on_domain('reader')
    mine, others = (f'/v3/projects/{each["projects"]}/tags' for each in (inside, outside))
    requests = (('PUT', '', {'tags': ['x']}, 200), ('PUT', '/y', None, 201), ('DELETE', '/y', None, 204))
    for method, tag, body, status in (*requests, ('DELETE', '', None, 204)):
        ask(f'{method} {others}{tag}', body, by=manager, expect=403)
        ask(f'{method} {mine}{tag}', body, by=reader, expect=403)
        ask(f'{method} {mine}{tag}', body, by=manager, expect=status)
    assert ask(f'GET {mine}', by=reader).json['tags'] == []
    ask(f'GET {others}', by=reader, expect=403)
    assert ask(f'GET /v3/users/{inside["users"]}/projects', by=reader).json['projects'] == []
    ask(f'GET /v3/users/{outside["users"]}/projects', by=reader, expect=403)


@pytest.mark.parametrize('inherited', [False, True])
@pytest.mark.parametrize('actor', ['users', 'groups'])
@pytest.mark.parametrize('target', ['projects', 'domains'])
def test_managers_of_a_domain_grant_roles_like_theirs(
    ask, admin, on_domain, domain, inside, outside, id_of, target, actor, inherited
):
    manager, reader = on_domain('manager'), on_domain('reader')
    mine, others = inside | {'domains': domain}, outside | {'domains': 'default'}
    start, end = ('/v3/OS-INHERIT', '/inherited_to_projects') if inherited else ('/v3', '')

    def path(role='member', target_id=None, actor_id=None):
        target_id, actor_id = target_id or mine[target], actor_id or mine[actor]
        return f'{start}/{target}/{target_id}/{actor}/{actor_id}/roles/{id_of("roles", role)}{end}'

    for role in ('manager', 'member', 'reader'):
        ask(f'PUT {path(role)}', by=reader, expect=403)
        ask(f'PUT {path(role)}', by=manager, expect=204)
        ask(f'HEAD {path(role)}', by=reader, expect=204)
    listed = path().rpartition('/roles/')[0] + f'/roles{end}'
    assert len(ask(f'GET {listed}', by=reader).json['roles']) == 3
    ask(f'DELETE {path()}', by=manager, expect=204)
    ask(f'PUT {path("admin")}', by=admin, expect=204)
    for refused in (path('admin'), path(target_id=others[target]), path(actor_id=others[actor])):
        for method in ('PUT', 'DELETE'):
            ask(f'{method} {refused}', by=manager, expect=403)
    for refused in (path(target_id=others[target]), path(actor_id=others[actor])):
        ask(f'HEAD {refused}', by=reader, expect=403)


def test_grants_of_the_roles_of_another_domain(ask, admin, make, on_domain, domain, inside):
    by, path = on_domain('reader'), f'/v3/projects/{inside["projects"]}/users/{inside["users"]}/roles'
    mine, others = (make('roles', name='picker', domain_id=each)['id'] for each in (domain, 'default'))
    ask(f'PUT {path}/{mine}', by=admin, expect=204)
    ask(f'PUT {path}/{others}', by=admin, expect=403)
    ask(f'HEAD {path}/{mine}', by=by, expect=204)
    ask(f'HEAD {path}/{others}', by=by, expect=403)
    ask(f'HEAD {path}/{others}', by=admin, expect=404)


def test_role_assignments_of_a_domain(ask, on_domain, grant, domain, inside, outside):
    grant('member', inside['users'], f'projects/{inside["projects"]}')
    grant('member', inside['users'], f'projects/{outside["projects"]}')
    for role in ('reader', 'admin'):
        by = on_domain(role)
        scopes = [each['scope'] for each in ask('GET /v3/role_assignments', by=by).json['role_assignments']]
        assert {(kind, scope[kind]['id']) for scope in scopes for kind in scope} == {
            ('project', inside['projects']),
            ('domain', domain),
        }
    tree = '/v3/role_assignments?include_subtree&scope.project.id='
    reader = on_domain('member')
    assert len(ask(f'GET {tree}{inside["projects"]}', by=reader).json['role_assignments']) == 1
    ask(f'GET {tree}{outside["projects"]}', by=reader, expect=403)


def test_managers_see_the_roles_that_they_grant(ask, on_domain, make, demo, domain, id_of, grant, log_in):
    manager = on_domain('manager')
    assert {each['name'] for each in ask('GET /v3/roles', by=manager).json['roles']} >= {'admin', 'member'}
    ask(f'GET /v3/roles/{id_of("roles", "member")}', by=manager)
    ask(f'GET /v3/roles/{id_of("roles", "admin")}', by=manager, expect=403)
    ask(f'GET /v3/roles/{make("roles", name="member", domain_id=domain)["id"]}', by=manager, expect=403)
    for by in (on_domain('reader'), demo):
        ask('GET /v3/roles', by=by, expect=403)
        ask(f'GET /v3/roles/{id_of("roles", "member")}', by=by, expect=403)


def test_limits_of_a_domain_and_its_projects(ask, admin, on_domain, make, grant, log_in, domain, inside, outside, demo):
    place = {'service_id': make('services', type='object-store')['id'], 'resource_name': 'cores'}
    body = {'registered_limits': [place | {'default_limit': 1}]}
    ask('POST /v3/registered_limits', body, by=admin, expect=201)
    owners = [{'project_id': each['projects']} for each in (inside, outside)]
    owners += [{'domain_id': each} for each in (domain, 'default')]
    body = {'limits': [place | {'resource_limit': 2} | owner for owner in owners]}
    made = ask('POST /v3/limits', body, by=admin, expect=201).json['limits']
    for by, seen in ((on_domain('reader'), {inside['projects'], domain}), (demo, {outside['projects']})):
        found = ask('GET /v3/limits', by=by).json['limits']
        assert {each['project_id'] or each['domain_id'] for each in found} == seen
        for limit in made:
            ask(f'GET /v3/limits/{limit["id"]}', by=by, expect=200 if limit in found else 403)
    assert ask(f'GET /v3/limits?project_id={inside["projects"]}', by=demo).json['limits'] == []
    grant('service', make('users', name='swift', password='x')['id'], f'projects/{outside["projects"]}')
    service = log_in('swift', 'x', scope={'project': {'id': outside['projects']}})
    assert len(ask('GET /v3/limits', by=service).json['limits']) == len(made)


def test_what_is_not_there_is_told_before_what_is_forbidden(ask, demo, id_of):
    """For the records for which Keystone does so too."""
    for request in ('GET roles', 'PATCH roles', 'DELETE roles', 'PATCH domains', 'DELETE domains', 'DELETE groups'):
        method, kind = request.split(' ')
        ask(f'{method} /v3/{kind}/{UNKNOWN}', {} if method == 'PATCH' else None, by=demo, expect=404)
    for kind in ('domains', 'groups', 'users', 'projects', 'credentials', 'services', 'endpoints', 'policies'):
        ask(f'GET /v3/{kind}/{UNKNOWN}', by=demo, expect=403)
    ask(f'DELETE /v3/roles/{id_of("roles", "reader")}', by=demo, expect=403)
    ask('PUT /v3/regions/north', {'region': {}}, by=demo, expect=403)


def test_who_may_only_read_makes_no_keys_for_ec2(ask, admin, make, grant, log_in, id_of):
    user, project = make('users', name='eve', password='x')['id'], id_of('projects', 'demo')
    grant('reader', user, f'projects/{project}')
    path = f'/v3/users/{user}/credentials/OS-EC2'
    keys = ask(f'POST {path}', {'tenant_id': project}, by=admin, expect=201).json['credential']
    reader = log_in('eve', 'x', scope={'project': {'id': project}})
    assert ask(f'GET {path}', by=reader).json['credentials'] == [keys]
    ask(f'POST {path}', {'tenant_id': project}, by=reader, expect=403)
    ask(f'DELETE {path}/{keys["access"]}', by=reader, expect=403)
    ask(f'DELETE {path}/{UNKNOWN}', by=reader, expect=404)


def test_a_token_for_the_system_gives_no_trusts(ask, log_in, id_of):
    trust = {'trustor_user_id': id_of('users', 'admin'), 'trustee_user_id': id_of('users', 'demo')}
    trust |= {'project_id': id_of('projects', 'admin'), 'impersonation': False, 'roles': [{'name': 'reader'}]}
    for scope, status in (({'system': {'all': True}}, 403), ({'domain': {'id': 'default'}}, 403), (None, 201)):
        ask('POST /v3/OS-TRUST/trusts', {'trust': trust}, by=log_in('admin', scope=scope), expect=status)
