"""The roles that users have by group membership, inheritance and implication."""

import pytest

from tests.standalone.identity.conftest import DEFAULT


@pytest.fixture
def orchard(ask, admin, make, id_of):
    """IDs by name: the user eve is in the group pickers; the project tree is below the project garden, in a domain."""
    domain = make('domains', name='orchard')['id']
    inside = {'domain_id': domain}
    garden = make('projects', name='garden', **inside)['id']
    found = {
        'domain': domain,
        'garden': garden,
        'tree': make('projects', name='tree', parent_id=garden)['id'],
        'eve': make('users', name='eve', password='x', **inside)['id'],
        'pickers': make('groups', name='pickers', **inside)['id'],
        **{name: id_of('roles', name) for name in ('admin', 'manager', 'member', 'reader')},
    }
    ask(f'PUT /v3/groups/{found["pickers"]}/users/{found["eve"]}', by=admin, expect=204)
    return found


@pytest.fixture
def roles_of_eve(ask, orchard):
    """roles_of_eve('tree') -> the names of eve's roles there; None if she cannot get a token for it."""

    def roles_of_eve(name):
        user = {'id': orchard['eve'], 'password': 'x'}
        kind = 'domain' if name == 'domain' else 'project'
        body = {
            'identity': {'methods': ['password'], 'password': {'user': user}},
            'scope': {kind: {'id': orchard[name]}},
        }
        response = ask_status('POST /v3/auth/tokens', {'auth': body})
        return None if response.status_code == 401 else [role['name'] for role in response.json['token']['roles']]

    def ask_status(request, body):
        try:
            return ask(request, body, expect=201)
        except AssertionError:
            return ask(request, body, expect=401)

    return roles_of_eve


MEMBER = ['member', 'reader']
GRANTS = {
    # The path of the grant: eve's roles on the domain, the project, and the one below it.
    'projects/{garden}/users/{eve}/roles/{member}': (None, MEMBER, None),
    'projects/{garden}/groups/{pickers}/roles/{member}': (None, MEMBER, None),
    'domains/{domain}/users/{eve}/roles/{member}': (MEMBER, None, None),
    'domains/{domain}/groups/{pickers}/roles/{reader}': (['reader'], None, None),
    'OS-INHERIT/domains/{domain}/users/{eve}/roles/{member}/inherited_to_projects': (None, MEMBER, MEMBER),
    'OS-INHERIT/domains/{domain}/groups/{pickers}/roles/{reader}/inherited_to_projects': (None, ['reader'], ['reader']),
    'OS-INHERIT/projects/{garden}/users/{eve}/roles/{member}/inherited_to_projects': (None, None, MEMBER),
    'OS-INHERIT/projects/{garden}/groups/{pickers}/roles/{member}/inherited_to_projects': (None, None, MEMBER),
    'OS-INHERIT/projects/{tree}/users/{eve}/roles/{member}/inherited_to_projects': (None, None, None),
}


@pytest.mark.parametrize('grant', GRANTS)
def test_where_a_grant_reaches(ask, admin, orchard, roles_of_eve, grant):
    path = f'/v3/{grant.format(**orchard)}'
    role_id = next(each for each in path.split('/') if each in (orchard['member'], orchard['reader']))
    ask(f'GET {path}', by=admin, expect=404)
    for _ in range(2):
        ask(f'PUT {path}', by=admin, expect=204)
    for method in ('GET', 'HEAD'):
        ask(f'{method} {path}', by=admin, expect=204)
    listed = ask(f'GET {path.replace("/" + role_id, "", 1)}', by=admin).json['roles']
    assert [role['id'] for role in listed] == [role_id]
    assert tuple(roles_of_eve(name) for name in ('domain', 'garden', 'tree')) == GRANTS[grant]
    effective = ask(f'GET /v3/role_assignments?effective&user.id={orchard["eve"]}', by=admin).json['role_assignments']
    held = {(next(iter(each['scope'].values()))['id'], each['role']['id']) for each in effective}
    assert held == {
        (orchard[name], orchard[role])
        for name, roles in zip(('domain', 'garden', 'tree'), GRANTS[grant], strict=True)
        for role in roles or ()
    }
    ask(f'DELETE {path}', by=admin, expect=204)
    ask(f'DELETE {path}', by=admin, expect=404)
    assert [roles_of_eve(name) for name in ('domain', 'garden', 'tree')] == [None] * 3


@pytest.fixture
def granted(ask, admin, orchard):
    """Three grants: of a user on a project, of a group on the domain for its projects, of a group on the system."""
    for grant in (
        'projects/{garden}/users/{eve}/roles/{member}',
        'OS-INHERIT/domains/{domain}/groups/{pickers}/roles/{reader}/inherited_to_projects',
        'system/groups/{pickers}/roles/{reader}',
    ):
        ask(f'PUT /v3/{grant.format(**orchard)}', by=admin, expect=204)


FOUND = {
    'user.id={eve}': {'garden/member'},
    'group.id={pickers}': {'domain/reader', 'system/reader'},
    'group.id={pickers}&scope.system=all': {'system/reader'},
    'group.id={pickers}&role.id={member}': set(),
    'scope.domain.id={domain}': {'domain/reader'},
    'scope.project.id={garden}': {'garden/member'},
    'scope.project.id={garden}&include_subtree': {'garden/member'},
    'scope.OS-INHERIT:inherited_to=projects': {'domain/reader'},
    'scope.project.id={garden}&effective': {'garden/member', 'garden/reader'},
    'scope.project.id={garden}&effective&include_subtree': {'garden/member', 'garden/reader', 'tree/reader'},
    'scope.OS-INHERIT:inherited_to=projects&effective': {'garden/reader', 'tree/reader'},
    'user.id={eve}&role.id={reader}&effective': {'garden/reader', 'tree/reader', 'system/reader'},
    'user.id={eve}&scope.domain.id={domain}&effective': set(),
}


@pytest.mark.parametrize('query', FOUND)
def test_filters(ask, admin, orchard, granted, query):
    names = {value: name for name, value in orchard.items()}
    found = ask(f'GET /v3/role_assignments?{query.format(**orchard)}', by=admin).json['role_assignments']
    shown = set()
    for each in found:
        kind = next(kind for kind in ('project', 'domain', 'system') if kind in each['scope'])
        target = 'system' if kind == 'system' else names[each['scope'][kind]['id']]
        shown.add(f'{target}/{names[each["role"]["id"]]}')
    assert shown == FOUND[query]


@pytest.mark.parametrize(
    'query',
    [
        'effective&group.id={pickers}',
        'user.id={eve}&group.id={pickers}',
        'scope.project.id={garden}&scope.domain.id={domain}',
        'include_subtree',
    ],
)
def test_filters_that_contradict_each_other(ask, admin, orchard, query):
    ask(f'GET /v3/role_assignments?{query.format(**orchard)}', by=admin, expect=400)


def test_an_assignment_tells_where_it_comes_from(ask, admin, orchard, granted):
    base = 'http://cloud.example/identity/v3'
    grant = f'{base}/OS-INHERIT/domains/{orchard["domain"]}/groups/{orchard["pickers"]}/roles/{orchard["reader"]}'
    orchard_domain = {'id': orchard['domain'], 'name': 'orchard'}
    [given] = ask('GET /v3/role_assignments?include_names&scope.domain.id=' + orchard['domain'], by=admin).json[
        'role_assignments'
    ]
    assert given == {
        'group': {'id': orchard['pickers'], 'name': 'pickers', 'domain': orchard_domain},
        'role': {'id': orchard['reader'], 'name': 'reader'},
        'scope': {'domain': orchard_domain, 'OS-INHERIT:inherited_to': 'projects'},
        'links': {'assignment': f'{grant}/inherited_to_projects'},
    }
    [held] = ask(f'GET /v3/role_assignments?effective&scope.project.id={orchard["tree"]}', by=admin).json[
        'role_assignments'
    ]
    assert held == {
        'user': {'id': orchard['eve']},
        'role': {'id': orchard['reader']},
        'scope': {'project': {'id': orchard['tree']}},
        'links': {
            'assignment': f'{grant}/inherited_to_projects',
            'membership': f'{base}/groups/{orchard["pickers"]}/users/{orchard["eve"]}',
        },
    }


# Implied roles


def test_a_role_implies_others(ask, admin, demo, make, id_of, orchard, roles_of_eve):
    picker = make('roles', name='picker')['id']
    ask(f'PUT /v3/projects/{orchard["garden"]}/users/{orchard["eve"]}/roles/{picker}', by=admin, expect=204)
    implies = f'/v3/roles/{picker}/implies'
    ask(f'GET {implies}/{orchard["member"]}', by=admin, expect=404)
    for _ in range(2):
        inference = ask(f'PUT {implies}/{orchard["member"]}', by=admin, expect=201).json['role_inference']
    assert (inference['prior_role']['name'], inference['implies']['name']) == ('picker', 'member')
    ask(f'HEAD {implies}/{orchard["member"]}', by=admin, expect=204)
    [implied] = ask(f'GET {implies}', by=admin).json['role_inference']['implies']
    assert implied['name'] == 'member'
    found = ask('GET /v3/role_inferences', by=admin).json['role_inferences']
    assert {each['prior_role']['name']: [role['name'] for role in each['implies']] for each in found} == {
        'admin': ['manager'],
        'manager': ['member'],
        'member': ['reader'],
        'picker': ['member'],
    }
    assert roles_of_eve('garden') == ['member', 'picker', 'reader']
    for request in (f'PUT {implies}/{picker}', f'DELETE {implies}/{orchard["member"]}', f'GET {implies}'):
        ask(request, by=demo, expect=403)
    ask(f'PUT {implies}/{orchard["admin"]}', by=admin, expect=403)
    ask(f'DELETE {implies}/{orchard["member"]}', by=admin, expect=204)
    ask(f'DELETE {implies}/{orchard["member"]}', by=admin, expect=404)
    assert roles_of_eve('garden') == ['picker']


def test_roles_may_imply_each_other(ask, admin, make, orchard, roles_of_eve):
    one, other = make('roles', name='one')['id'], make('roles', name='other')['id']
    for path in (f'{one}/implies/{other}', f'{other}/implies/{one}'):
        ask(f'PUT /v3/roles/{path}', by=admin, expect=201)
    ask(f'PUT /v3/projects/{orchard["garden"]}/users/{orchard["eve"]}/roles/{one}', by=admin, expect=204)
    assert roles_of_eve('garden') == ['one', 'other']


def test_a_role_of_a_domain_is_worth_what_it_implies(ask, admin, make, orchard, roles_of_eve, id_of):
    """Its name may be that of another role, and is in no token: a domain's `admin` has no administrator's rights."""
    role = make('roles', name='admin', domain_id=orchard['domain'])
    assert [each['id'] for each in ask(f'GET /v3/roles?domain_id={orchard["domain"]}', by=admin).json['roles']] == [
        role['id']
    ]
    assert role['id'] not in [each['id'] for each in ask('GET /v3/roles', by=admin).json['roles']]
    path = f'/v3/projects/{orchard["garden"]}/users/{orchard["eve"]}/roles/{role["id"]}'
    ask(f'PUT {path}', by=admin, expect=204)
    assert roles_of_eve('garden') is None
    ask(f'PUT /v3/roles/{role["id"]}/implies/{orchard["member"]}', by=admin, expect=201)
    assert roles_of_eve('garden') == MEMBER
    given = f'users/{orchard["eve"]}/roles/{role["id"]}'
    ask(f'PUT /v3/projects/{id_of("projects", "demo")}/{given}', by=admin, expect=403)
    ask(f'PUT /v3/system/{given}', by=admin, expect=400)
    ask(f'PUT /v3/domains/default/{given}', by=admin, expect=204)
    ask(f'PATCH /v3/roles/{role["id"]}', {'role': {'domain_id': None}}, by=admin, expect=400)


def test_a_role_of_the_whole_cloud_implies_none_of_a_domain(ask, admin, make, orchard):
    [one, other] = [make('roles', name=name, domain_id=orchard['domain'])['id'] for name in ('picker', 'grower')]
    ask(f'PUT /v3/roles/{orchard["member"]}/implies/{one}', by=admin, expect=403)
    ask(f'PUT /v3/roles/{other}/implies/{one}', by=admin, expect=201)


def test_readers_of_the_system_see_what_administrators_see(ask, admin, log_in, orchard, id_of):
    user = id_of('users', 'demo')
    ask(f'PUT /v3/system/users/{user}/roles/{orchard["reader"]}', by=admin, expect=204)
    reader, member = log_in('demo', scope={'system': {'all': True}}), log_in('demo')
    for kind in ('domains', 'projects', 'users', 'groups', 'roles', 'role_assignments', 'services', 'endpoints'):
        assert ask(f'GET /v3/{kind}', by=reader).json == ask(f'GET /v3/{kind}', by=admin).json
        ask(f'GET /v3/{kind}', by=member, expect=403)
    ask('POST /v3/domains', {'domain': {'name': 'x'}}, by=reader, expect=403)
    ask(f'PATCH /v3/projects/{orchard["garden"]}', {'project': {'name': 'x'}}, by=reader, expect=403)
    assert DEFAULT['id'] in [domain['id'] for domain in ask('GET /v3/domains', by=reader).json['domains']]
