"""Domains, groups in them, and project trees."""

import pytest

from tests.standalone.identity.conftest import UNKNOWN, proof


@pytest.fixture
def domain(make):
    return make('domains', name='orchard')


def test_the_life_of_a_domain(ask, admin, domain):
    assert (domain['name'], domain['enabled'], domain['options'], domain['tags']) == ('orchard', True, {}, [])
    path = f'/v3/domains/{domain["id"]}'
    assert ask(f'GET {path}', by=admin).json['domain'] == domain
    assert [each['name'] for each in ask('GET /v3/domains?name=orchard', by=admin).json['domains']] == ['orchard']
    ask(f'DELETE {path}', by=admin, expect=403)
    changed = ask(f'PATCH {path}', {'domain': {'enabled': False, 'description': 'x'}}, by=admin).json['domain']
    assert changed == domain | {'enabled': False, 'description': 'x'}
    ask(f'DELETE {path}', by=admin, expect=204)
    ask(f'GET {path}', by=admin, expect=404)
    ask('PATCH /v3/domains/default', {'domain': {'enabled': True}}, by=admin)
    ask('DELETE /v3/domains/default', by=admin, expect=403)


def test_the_id_of_a_domain_can_be_given(ask, admin, make):
    chosen = 'd0' * 16
    domain = make('domains', name='orchard', explicit_domain_id=chosen)
    assert (domain['id'], 'explicit_domain_id' in domain) == (chosen, False)
    for given, expected in ((chosen, 409), ('default', 400)):
        body = {'domain': {'name': 'other', 'explicit_domain_id': given}}
        ask('POST /v3/domains', body, by=admin, expect=expected)


def test_logins_ignore_the_case_of_a_domain_that_no_other_resembles(ask, make):
    """Many services are configured with the domain `default`."""
    ask('POST /v3/auth/tokens', proof('demo', domain={'name': 'default'}), expect=201)
    ask('POST /v3/auth/tokens', proof('demo', domain={'name': 'defaults'}), expect=401)
    make('domains', name='DEFAULT')
    ask('POST /v3/auth/tokens', proof('demo', domain={'name': 'default'}), expect=401)
    ask('POST /v3/auth/tokens', proof('demo', domain={'name': 'Default'}), expect=201)


@pytest.mark.parametrize(
    ('query', 'found'),
    [
        ('name__contains=rch', ['orchard']),
        ('name__contains=RCH', []),
        ('name__icontains=RCH', ['orchard']),
        ('name__startswith=orch', ['orchard']),
        ('name__istartswith=RCH', []),
        ('name__endswith=ard', ['orchard']),
        ('name__contains=o&name__startswith=x', []),
        ('name__explodes=x', ['Default', 'orchard']),
        ('description__contains=x', ['Default', 'orchard']),
        ('__contains=x', ['Default', 'orchard']),
    ],
)
def test_lists_are_asked_for_names_like_another(ask, admin, domain, query, found):
    """Unknown comparisons are ignored, as in Keystone."""
    assert sorted(each['name'] for each in ask(f'GET /v3/domains?{query}', by=admin).json['domains']) == found


def test_a_domain_goes_with_all_that_is_in_it(ask, admin, make, domain, id_of):
    inside = {'domain_id': domain['id']}
    project, user = make('projects', name='apples', **inside), make('users', name='eve', **inside)
    group, role = make('groups', name='pickers', **inside), make('roles', name='picker', **inside)
    member = id_of('roles', 'member')
    ask(f'PUT /v3/groups/{group["id"]}/users/{user["id"]}', by=admin, expect=204)
    ask(f'PUT /v3/projects/{project["id"]}/groups/{group["id"]}/roles/{member}', by=admin, expect=204)
    ask(f'PUT /v3/projects/{id_of("projects", "demo")}/users/{user["id"]}/roles/{member}', by=admin, expect=204)
    before = ask('GET /v3/role_assignments', by=admin).json['role_assignments']
    ask(f'PATCH /v3/domains/{domain["id"]}', {'domain': {'enabled': False}}, by=admin)
    ask(f'DELETE /v3/domains/{domain["id"]}', by=admin, expect=204)
    for kind, record in (('projects', project), ('users', user), ('groups', group), ('roles', role)):
        ask(f'GET /v3/{kind}/{record["id"]}', by=admin, expect=404)
    assert len(ask('GET /v3/role_assignments', by=admin).json['role_assignments']) == len(before) - 2


@pytest.mark.parametrize('of', ['user', 'project'])
def test_tokens_end_with_the_domain_of_their_user_or_project(ask, admin, make, domain, id_of, of):
    """Including tokens cached elsewhere; and nobody can log in."""
    inside = {'domain_id': domain['id']}
    user = make('users', name='eve', password='x', **(inside if of == 'user' else {}))
    project = make('projects', name='apples', **(inside if of == 'project' else {}))
    path = f'/v3/projects/{project["id"]}/users/{user["id"]}/roles/{id_of("roles", "member")}'
    ask(f'PUT {path}', by=admin, expect=204)
    login = proof('eve', 'x', domain={'id': user['domain_id']})
    login['auth']['scope'] = {'project': {'id': project['id']}}
    token = ask('POST /v3/auth/tokens', login, expect=201).headers['X-Subject-Token']
    ask(f'PATCH /v3/domains/{domain["id"]}', {'domain': {'enabled': False}}, by=admin)
    ask('GET /v3/auth/catalog', by=token, expect=401)
    ask('POST /v3/auth/tokens', login, expect=401)
    ask(f'PATCH /v3/domains/{domain["id"]}', {'domain': {'enabled': True}}, by=admin)
    ask('GET /v3/auth/catalog', by=token, expect=401)
    ask('POST /v3/auth/tokens', login, expect=201)


def test_projects_in_a_domain_that_is_disabled_are_neither_made_nor_enabled(ask, admin, make, domain):
    inside, body = {'domain_id': domain['id']}, {'project': {'enabled': True}}
    outer = make('projects', name='outer', **inside)
    inner = make('projects', name='inner', parent_id=outer['id'], enabled=False, **inside)
    other = make('projects', name='other', enabled=False, **inside)
    ask(f'PATCH /v3/domains/{domain["id"]}', {'domain': {'enabled': False}}, by=admin)
    for place in (inside, {'parent_id': outer['id']}, {'parent_id': domain['id']}):
        ask('POST /v3/projects', {'project': {'name': 'new', 'enabled': False} | place}, by=admin, expect=403)
    for each in (inner, other):
        ask(f'PATCH /v3/projects/{each["id"]}', body, by=admin, expect=403)
    ask(f'PATCH /v3/domains/{domain["id"]}', {'domain': {'enabled': True}}, by=admin)
    for each in (inner, other):
        ask(f'PATCH /v3/projects/{each["id"]}', body, by=admin)


@pytest.mark.parametrize('lifted', [False, None])
@pytest.mark.parametrize('kind', ['domains', 'projects', 'roles'])
def test_what_is_immutable_stays_until_that_is_lifted(ask, admin, make, kind, lifted):
    record = make(kind, name='rock', options={'immutable': True})
    noun, path = kind.removesuffix('s'), f'/v3/{kind}/{record["id"]}'
    assert record['options'] == {'immutable': True}
    ask(f'PATCH {path}', {noun: {'description': 'x'}}, by=admin, expect=403)
    ask(f'DELETE {path}', by=admin, expect=403)
    changed = ask(f'PATCH {path}', {noun: {'options': {'immutable': lifted}, 'description': 'x'}}, by=admin).json[noun]
    assert changed['description'] == 'x'


def test_a_domain_is_a_project_too(ask, admin, make):
    project = make('projects', name='orchard', is_domain=True, domain_id=None, description='Trees', tags=['b', 'a'])
    around = {'domain_id': None, 'parent_id': None, 'is_domain': True}
    assert project.items() >= around.items()
    path, domain = f'/v3/projects/{project["id"]}', f'/v3/domains/{project["id"]}'
    assert ask(f'GET {path}', by=admin).json['project'] == project
    shown = ask(f'GET {domain}', by=admin).json['domain']
    assert (shown['name'], shown['description'], shown['tags']) == ('orchard', 'Trees', project['tags'])
    inside = make('projects', name='orchard', domain_id=project['id'])
    seen = ask(f'GET {path}?parents_as_ids&subtree_as_ids', by=admin).json['project']
    assert (seen['parents'], seen['subtree']) == (None, {inside['id']: None})
    ask(f'PUT {path}/tags/c', by=admin, expect=201)
    assert ask(f'GET {path}/tags', by=admin).json['tags'] == ['a', 'b', 'c']
    ask(f'DELETE {path}', by=admin, expect=403)
    changed = ask(f'PATCH {path}', {'project': {'enabled': False}}, by=admin).json['project']
    assert changed == project | {'enabled': False, 'tags': ['a', 'b', 'c']}
    assert ask(f'PATCH {domain}', {'domain': {'tags': ['d']}}, by=admin).json['domain']['tags'] == ['d']
    ask(f'DELETE {path}', by=admin, expect=204)
    ask(f'GET {domain}', by=admin, expect=404)


def test_lists_of_projects_have_domains_when_asked_for(ask, admin, make):
    project = make('projects', name='orchard', is_domain=True, tags=['fruit'])
    default = ask('GET /v3/projects/default', by=admin).json['project']
    for query, expected in {
        'is_domain=true': [default, project],
        'is_domain=true&name=orchard': [project],
        'is_domain=true&tags=fruit': [project],
        'is_domain=true&enabled=false': [],
        'is_domain=true&domain_id=default': [],
        'name=orchard': [],
        'is_domain=false&name=orchard': [],
    }.items():
        assert ask(f'GET /v3/projects?{query}', by=admin).json['projects'] == expected


def test_a_project_stays_a_domain_or_none(ask, admin, make, id_of):
    body = {'name': 'orchard', 'is_domain': True}
    ask('POST /v3/projects', {'project': body | {'parent_id': 'default'}}, by=admin, expect=400)
    project = make('projects', **body)
    ask('POST /v3/projects', {'project': body}, by=admin, expect=409)
    ask(f'PATCH /v3/projects/{project["id"]}', {'project': {'is_domain': False}}, by=admin, expect=400)
    ask(f'PATCH /v3/projects/{id_of("projects", "demo")}', {'project': {'is_domain': True}}, by=admin, expect=400)
    ask('DELETE /v3/projects/default', by=admin, expect=403)


@pytest.mark.parametrize('noun', ['user', 'group'])
def test_nobody_is_in_a_domain_that_is_not_there(ask, admin, noun):
    body = {noun: {'name': 'x', 'domain_id': UNKNOWN}}
    assert UNKNOWN in ask(f'POST /v3/{noun}s', body, by=admin, expect=404).json['error']['message']


# Groups


def test_the_life_of_a_group(ask, admin, demo, make, id_of):
    group = make('groups', name='pickers', description='They pick')
    assert (group['domain_id'], group['description']) == ('default', 'They pick')
    path, user = f'/v3/groups/{group["id"]}', id_of('users', 'demo')
    changed = ask(f'PATCH {path}', {'group': {'name': 'growers'}}, by=admin).json['group']
    assert changed == group | {'name': 'growers'}
    ask(f'GET {path}/users/{user}', by=admin, expect=404)
    for _ in range(2):
        ask(f'PUT {path}/users/{user}', by=admin, expect=204)
    ask(f'HEAD {path}/users/{user}', by=admin, expect=204)
    assert [each['name'] for each in ask(f'GET {path}/users', by=admin).json['users']] == ['demo']
    assert ask(f'GET /v3/users/{user}/groups', by=demo).json['groups'] == [changed]
    for request in (f'GET {path}', 'GET /v3/groups', f'PUT {path}/users/{user}', f'DELETE {path}/users/{user}'):
        ask(request, by=demo, expect=403)
    ask(f'GET /v3/users/{id_of("users", "admin")}/groups', by=demo, expect=403)
    ask(f'PUT {path}/users/{UNKNOWN}', by=admin, expect=404)
    ask(f'DELETE {path}/users/{user}', by=admin, expect=204)
    ask(f'DELETE {path}/users/{user}', by=admin, expect=404)
    ask(f'DELETE {path}', by=admin, expect=204)
    ask(f'GET {path}', by=admin, expect=404)


def test_who_leaves_a_group_has_its_roles_no_longer(ask, admin, make, id_of, log_in):
    group, project = make('groups', name='pickers'), make('projects', name='apples')
    path, user = f'/v3/groups/{group["id"]}', id_of('users', 'demo')
    ask(f'PUT {path}/users/{user}', by=admin, expect=204)
    ask(f'PUT /v3/projects/{project["id"]}/groups/{group["id"]}/roles/{id_of("roles", "member")}', by=admin, expect=204)
    token = log_in('demo', scope={'project': {'id': project['id']}})
    found = ask('GET /v3/auth/projects', by=token).json['projects']
    assert [each['name'] for each in found] == ['apples', 'demo']
    ask(f'DELETE {path}/users/{user}', by=admin, expect=204)
    ask('GET /v3/auth/projects', by=token, expect=401)


# Project trees


@pytest.fixture
def tree(make):
    """Projects by name: a is the parent of b, and b of c; z is separate."""
    found = {'a': make('projects', name='a')}
    found['b'] = make('projects', name='b', parent_id=found['a']['id'])
    found['c'] = make('projects', name='c', parent_id=found['b']['id'], domain_id='default')
    return found | {'z': make('projects', name='z', parent_id='default')}


def test_projects_above_and_below(ask, admin, make, tree, id_of):
    a, b, c, _ = (each['id'] for each in tree.values())

    def shown(project, query):
        return ask(f'GET /v3/projects/{project}?{query}', by=admin).json['project']

    assert (tree['c']['parent_id'], tree['z']['parent_id']) == (b, 'default')
    assert shown(c, 'parents_as_ids')['parents'] == {b: {a: {'default': None}}}
    assert shown(a, 'subtree_as_ids')['subtree'] == {b: {c: None}}
    assert shown(c, 'subtree_as_ids')['subtree'] is None
    ask(f'PUT /v3/projects/{b}/users/{id_of("users", "admin")}/roles/{id_of("roles", "reader")}', by=admin, expect=204)
    assert [each['project']['name'] for each in shown(c, 'parents_as_list')['parents']] == ['b']
    assert [each['project']['name'] for each in shown(a, 'subtree_as_list')['subtree']] == ['b']
    ask(f'GET /v3/projects/{a}?subtree_as_list&subtree_as_ids', by=admin, expect=400)
    children = ask(f'GET /v3/projects?parent_id={a}', by=admin).json['projects']
    assert [each['name'] for each in children] == ['b']


def test_what_is_above_others_stays(ask, admin, make, tree):
    a, b, c, _ = (f'/v3/projects/{each["id"]}' for each in tree.values())
    ask(f'DELETE {a}', by=admin, expect=403)
    ask(f'PATCH {a}', {'project': {'enabled': False}}, by=admin, expect=403)
    ask(f'PATCH {c}', {'project': {'parent_id': tree['a']['id']}}, by=admin, expect=400)
    for path in (c, b, a):
        ask(f'PATCH {path}', {'project': {'enabled': False}}, by=admin)
    below = {'project': {'name': 'd', 'parent_id': tree['c']['id']}}
    ask('POST /v3/projects', below, by=admin, expect=403)
    ask(f'PATCH {b}', {'project': {'enabled': True}}, by=admin, expect=403)
    ask(f'PATCH {b}', {'project': {'enabled': False, 'name': 'B'}}, by=admin)
    for path in (a, b):
        ask(f'PATCH {path}', {'project': {'enabled': True}}, by=admin)
    for path in (c, b, a):
        ask(f'DELETE {path}', by=admin, expect=204)


def test_trees_have_an_end_and_one_domain(ask, admin, make, tree):
    parent = tree['c']
    for name in 'de':
        parent = make('projects', name=name, parent_id=parent['id'])
    ask('POST /v3/projects', {'project': {'name': 'f', 'parent_id': parent['id']}}, by=admin, expect=403)
    other = make('domains', name='other')['id']
    for parent_id in (tree['a']['id'], 'default', UNKNOWN):
        body = {'project': {'name': 'x', 'parent_id': parent_id, 'domain_id': other}}
        ask('POST /v3/projects', body, by=admin, expect=400)


def test_tags_of_a_project(ask, admin, demo, id_of):
    tags = f'/v3/projects/{id_of("projects", "demo")}/tags'
    assert ask(f'PUT {tags}', {'tags': ['red', 'big']}, by=admin).json['tags'] == ['big', 'red']
    ask(f'PUT {tags}/sweet', by=admin, expect=201)
    ask(f'PUT {tags}/a,b', by=admin, expect=400)
    ask(f'GET {tags}/sweet', by=demo, expect=204)
    ask(f'DELETE {tags}/red', by=admin, expect=204)
    ask(f'DELETE {tags}/red', by=admin, expect=404)
    assert ask(f'GET {tags}', by=demo).json['tags'] == ['big', 'sweet']
    for request in (f'PUT {tags}/mine', f'DELETE {tags}'):
        ask(request, by=demo, expect=403)
    ask(f'GET /v3/projects/{id_of("projects", "admin")}/tags', by=demo, expect=403)
    ask(f'DELETE {tags}', by=admin, expect=204)
    assert ask(f'GET {tags}', by=demo).json['tags'] == []
    ask(f'PUT {tags}', {'tags': [str(number) for number in range(80)]}, by=admin)
    ask(f'PUT {tags}/more', by=admin, expect=400)
