"""Server groups, at the versions where the API changes."""

import pytest

ADMIN, BOB, ALICE = 'admin:admin', 'bob:project', 'alice:elsewhere'
GROUPS = '/os-server-groups'


def old(policy='affinity', name='g'):
    return {'server_group': {'name': name, 'policies': [policy]}}


def new(policy='affinity', name='g', **more):
    return {'server_group': {'name': name, 'policy': policy} | more}


@pytest.fixture
def group(api):
    return api.post(GROUPS, new(), '2.64', as_=BOB).json['server_group']


@pytest.mark.parametrize('version', ['2.1', '2.13', '2.64'])
def test_they_look_like_the_samples(api, sample, shape, version):
    folder = 'os-server-groups' + ('' if version == '2.1' else f'/v{version}')
    made = api.post(GROUPS, sample(f'{folder}/server-groups-post-req.json'), version)
    assert made.status == 200
    assert shape(made.json) == shape(sample(f'{folder}/server-groups-post-resp.json'))
    shown = api.get(f'{GROUPS}/{made.json["server_group"]["id"]}', version)
    assert shown.json == made.json
    assert shape(shown.json) == shape(sample(f'{folder}/server-groups-get-resp.json'))
    assert shape(api.get(GROUPS, version).json) == shape(sample(f'{folder}/server-groups-list-resp.json'))


@pytest.mark.parametrize(
    ('version', 'body', 'status'),
    [
        ('2.1', old(), 200),
        ('2.14', old('soft-affinity'), 400),
        ('2.15', old('soft-affinity'), 200),
        ('2.15', old('legacy'), 400),
        ('2.63', new(), 400),
        ('2.64', old(), 400),
        ('2.64', new('soft-anti-affinity'), 200),
        ('2.64', new('junk'), 400),
        ('2.64', new('anti-affinity', rules={'max_server_per_host': '3'}), 200),
        ('2.64', new('anti-affinity', rules={'max_server_per_host': 0}), 400),
        ('2.64', new('anti-affinity', rules={'other': 1}), 400),
        ('2.64', new('affinity', rules={'max_server_per_host': 3}), 400),
        ('2.64', new(name=' g'), 400),
        ('2.64', new(name=''), 400),
        ('2.1', {'server_group': {'name': 'g', 'policies': []}}, 400),
        ('2.1', {'server_group': {'name': 'g', 'policies': ['affinity', 'anti-affinity']}}, 400),
    ],
)
def test_what_can_be_asked_for(api, version, body, status):
    assert api.post(GROUPS, body, version).status == status


@pytest.mark.parametrize(
    ('most', 'text'), [('', "'' should be non-empty"), ('x', "'x' does not match '^[0-9]*$'"), (' 1', "' 1' does not")]
)
def test_a_rule_that_is_no_number(api, most, text):
    answer = api.post(GROUPS, new('anti-affinity', rules={'max_server_per_host': most}), '2.64')
    assert (answer.status, text in answer.json['badRequest']['message']) == (400, True), answer


def test_rules_are_numbers(api):
    made = api.post(GROUPS, new('anti-affinity', rules={'max_server_per_host': '3'}), '2.64').json['server_group']
    assert made['rules'] == {'max_server_per_host': 3}
    assert api.get(f'{GROUPS}/{made["id"]}', '2.63').json['server_group']['policies'] == ['anti-affinity']


def test_v2_drops_unknown_keys(legacy):
    body = {'server_group': {'name': 'g', 'policies': ['affinity'], 'unknown': 1}}
    made = legacy.post(GROUPS, body)
    assert made.status == 200 and 'project_id' not in made.json['server_group']


def test_groups_belong_to_a_project(api, group):
    path = f'{GROUPS}/{group["id"]}'
    missing = {'code': 404, 'message': f'Instance group {group["id"]} could not be found.'}
    for answer in (api.get(path, as_=ALICE), api.delete(path, as_=ALICE)):
        assert answer.json == {'itemNotFound': missing}
    assert api.get(path).status == 200
    assert api.get(GROUPS, as_=ALICE).json == {'server_groups': []}
    assert api.delete(path, as_=BOB).status == 204
    assert api.delete(path, as_=BOB).status == 404


def test_administrators_list_all_projects(api, group):
    assert api.get(GROUPS).json == {'server_groups': []}
    for value in ('', '1', 'False'):
        assert len(api.get(f'{GROUPS}?all_projects={value}').json['server_groups']) == 1
    assert api.get(f'{GROUPS}?all_projects=1', as_=ALICE).json == {'server_groups': []}


def test_limit_and_offset(api):
    for name in 'abc':
        api.post(GROUPS, old(name=name))

    def names(query):
        return [group['name'] for group in api.get(f'{GROUPS}?{query}').json['server_groups']]

    assert names('') == names('limit=0') == ['a', 'b', 'c']
    assert names('limit=1&limit=2') == ['a', 'b']
    assert names('offset=1&limit=1') == ['b']
    assert names('offset=' + '9' * 40) == []
    for query in ('limit=a', 'offset=-1', 'offset=', 'limit='):
        assert api.get(f'{GROUPS}?{query}').status == 400
    assert api.get(f'{GROUPS}?x=1', '2.74').status == 200
    assert api.get(f'{GROUPS}?x=1', '2.75').status == 400


def test_a_project_has_so_many(api):
    api.put('/os-quota-sets/project', {'quota_set': {'server_groups': 1}})
    assert api.post(GROUPS, old(), as_=BOB).status == 200
    answer = api.post(GROUPS, old(), as_=BOB)
    assert answer.json == {'forbidden': {'code': 403, 'message': 'Quota exceeded, too many server groups.'}}


def test_servers_are_members_until_they_or_the_group_are_deleted(api, group, servers):
    first, second = servers.add(server_group_id=group['id']), servers.add(server_group_id=group['id'])
    path = f'{GROUPS}/{group["id"]}'
    assert api.get(path, as_=BOB).json['server_group']['members'] == [first, second]
    assert api.get(GROUPS, as_=BOB).json['server_groups'][0]['members'] == [first, second]
    servers.change(second, deleted_at=servers.now())
    assert api.get(path, as_=BOB).json['server_group']['members'] == [first]
    assert api.delete(path, as_=BOB).status == 204
    assert servers.get(first).server_group_id is None


def test_groups_in_use_come_first(api, servers):
    made = [api.post(GROUPS, old(name=name), as_=BOB).json['server_group']['id'] for name in 'abc']
    servers.add(server_group_id=made[1])
    listed = api.get(GROUPS, as_=BOB).json['server_groups']
    assert [group['name'] for group in listed] == ['b', 'a', 'c']
