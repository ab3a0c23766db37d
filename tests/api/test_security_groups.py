"""The proxy APIs for security groups and their rules, until 2.35."""

import pytest

from computeapi.context import Context

BOB, READER, ALICE, ADMIN = 'bob:project', 'rea:project:reader', 'alice:elsewhere', 'admin:admin'
GROUPS, RULES = '/os-security-groups', '/os-security-group-rules'
MISSING = '00000000-0000-4000-8000-00000000dead'
CONTEXT = Context(user_id='bob', project_id='project', roles=frozenset({'member', 'reader'}))


@pytest.fixture
def group(api):
    body = {'security_group': {'name': 'g', 'description': 'd'}}
    return api.post(GROUPS, body, as_=BOB).json['security_group']['id']


@pytest.fixture
def add(api, group):
    """add(from_port=1, ...): the response to bob's request for a rule in the group."""

    def post(as_=BOB, **kwargs):
        rule = {'parent_group_id': group, 'ip_protocol': 'tcp'} | kwargs
        return api.post(RULES, {'security_group_rule': rule}, as_=as_)

    return post


@pytest.mark.parametrize('path', [GROUPS, f'{GROUPS}/{MISSING}'])
def test_they_end_with_2_35(api, path):
    assert api.get(path, '2.36').json['itemNotFound']['message'] == 'The resource could not be found.'


def test_groups_look_like_the_samples(api, sample, shape):
    made = api.post(GROUPS, sample('os-security-groups/security-group-post-req.json'), as_=BOB)
    assert made.status == 200
    assert shape(made.json) == shape(sample('os-security-groups/security-groups-create-resp.json'))
    shown = api.get(f'{GROUPS}/{made.json["security_group"]["id"]}', as_=READER)
    assert shown.json == made.json
    assert shape(shown.json) == shape(sample('os-security-groups/security-groups-get-resp.json'))
    (new,) = [each for each in api.get(GROUPS, as_=READER).json['security_groups'] if each['name'] == 'test']
    (listed,) = sample('os-security-groups/security-groups-list-get-resp.json')['security_groups']
    assert shape(new) == shape(listed)


def test_the_default_group_lets_its_own_members_in(api):
    (default,) = api.get(GROUPS, as_=BOB).json['security_groups']
    assert default['name'] == 'default' and default['rules']
    for rule in default['rules']:
        assert rule['group'] == {'name': 'default', 'tenant_id': 'project'} and rule['ip_range'] == {}
        assert rule['from_port'] is rule['to_port'] is rule['ip_protocol'] is None


def test_pages(api, group):
    def names(query, as_=BOB):
        return sorted(each['name'] for each in api.get(f'{GROUPS}?{query}', as_=as_).json['security_groups'])

    assert names('limit=0') == names('all_tenants=0') == names('x=1') == ['default', 'g']
    assert len(names('limit=1')) == len(names('offset=1')) == 1
    assert names('offset=9') == []
    assert names('all_tenants=1', ALICE) == ['default']
    assert names('', ADMIN) == ['default']
    # Whatever its value.
    for query in ('all_tenants=1', 'all_tenants=0', 'all_tenants'):
        assert 'g' in names(query, ADMIN)
    for query in ('limit=a', 'offset=a', 'limit=-1'):
        assert api.get(f'{GROUPS}?{query}', as_=BOB).status == 400


def test_a_page_is_in_the_order_of_projects_and_names(api):
    for name, as_ in (('z', BOB), ('a', BOB), ('m', ALICE)):
        body = {'security_group': {'name': name, 'description': ''}}
        assert api.post(GROUPS, body, as_=as_).status == 200
    listed = api.get(f'{GROUPS}?all_tenants=1', as_=ADMIN).json['security_groups']
    found = [(each['tenant_id'], each['name']) for each in listed]
    assert found == sorted(found) and {('elsewhere', 'm'), ('project', 'a'), ('project', 'z')} <= {*found}


@pytest.mark.parametrize(
    ('facts', 'status'),
    [
        ({}, 200),
        ({'description': ''}, 200),
        ({'other': 1}, 200),
        ({'name': 5}, 400),
        ({'name': 'x' * 256}, 400),
        ({'description': None}, 400),
        ({'name': 'default'}, 403),
    ],
)
def test_what_groups_can_be_asked_for(api, facts, status):
    body = {'security_group': {'name': 'new', 'description': 'd'} | facts}
    assert api.post(GROUPS, body, as_=BOB).status == status


def test_groups_change(api, group):
    body = {'security_group': {'name': 'other', 'description': 'new'}}
    answer = api.put(f'{GROUPS}/{group}', body, as_=BOB)
    assert answer.status == 200
    assert api.get(f'{GROUPS}/{group}', as_=BOB).json == answer.json
    assert (answer.json['security_group']['name'], answer.json['security_group']['description']) == ('other', 'new')
    assert api.put(f'{GROUPS}/{group}', {'security_group': {'name': 'x'}}, as_=BOB).status == 400
    taken = {'security_group': {'name': 'default', 'description': ''}}
    assert api.put(f'{GROUPS}/{group}', taken, as_=BOB).status == 400


def test_groups_are_deleted_when_they_are_not_used(api, service, group):
    service.networks.populate(CONTEXT)
    network = service.networks.networks(CONTEXT)[0].id
    port = service.networks.create_port(CONTEXT, network, server_id=MISSING, security_groups=[group])
    answer = api.delete(f'{GROUPS}/{group}', as_=BOB)
    assert answer.json == {'badRequest': {'code': 400, 'message': f'Security Group {group} in use.'}}
    service.networks.delete_port(CONTEXT, port.id)
    assert api.delete(f'{GROUPS}/{group}', as_=BOB).status == 202
    missing = {'code': 404, 'message': f'Security group {group} does not exist'}
    assert api.delete(f'{GROUPS}/{group}', as_=BOB).json == {'itemNotFound': missing}


def test_ids_are_uuids(api):
    wrong = {'badRequest': {'code': 400, 'message': 'Security group id should be uuid'}}
    body = {'security_group': {'name': 'x', 'description': ''}}
    assert api.get(f'{GROUPS}/x').json == api.put(f'{GROUPS}/x', body).json == wrong
    assert api.delete(f'{GROUPS}/x').json == api.delete(f'{RULES}/x').json == wrong


def test_who_may(api, add, group):
    body = {'security_group': {'name': 'x', 'description': ''}}
    assert api.post(GROUPS, body, as_=READER).status == 403
    assert add(as_=READER, from_port=1, to_port=2).status == 403
    for answer in (
        api.get(f'{GROUPS}/{group}', as_=ALICE),
        api.put(f'{GROUPS}/{group}', body, as_=ALICE),
        api.delete(f'{GROUPS}/{group}', as_=ALICE),
        add(as_=ALICE, from_port=1, to_port=2),
    ):
        assert answer.status == 404
    assert api.get(f'{GROUPS}/{group}', as_=ADMIN).status == 200


# ------------------------------------------------------------------ rules


def test_rules_look_like_the_sample(api, add, group, sample, shape):
    facts = sample('os-security-groups/security-group-rules-post-req.json')['security_group_rule']
    answer = add(**facts | {'parent_group_id': group})
    assert answer.status == 200
    assert shape(answer.json) == shape(sample('os-security-groups/security-group-rules-post-resp.json'))
    rule = answer.json['security_group_rule']
    assert api.get(f'{GROUPS}/{group}', as_=BOB).json['security_group']['rules'] == [rule]
    assert api.delete(f'{RULES}/{rule["id"]}', as_=READER).status == 403
    assert api.delete(f'{RULES}/{rule["id"]}', as_=BOB).status == 202
    assert api.delete(f'{RULES}/{rule["id"]}', as_=BOB).status == 404
    assert api.get(f'{GROUPS}/{group}', as_=BOB).json['security_group']['rules'] == []


@pytest.mark.parametrize(
    ('facts', 'protocol', 'ports', 'cidr'),
    [
        ({'from_port': '80', 'to_port': '81'}, 'tcp', (80, 81), '0.0.0.0/0'),
        ({'from_port': 1, 'to_port': 65535, 'ip_protocol': 'UDP'}, 'udp', (1, 65535), '0.0.0.0/0'),
        ({'from_port': -1, 'to_port': -1, 'ip_protocol': 'icmp'}, 'icmp', (-1, -1), '0.0.0.0/0'),
        ({'from_port': 8, 'to_port': 0, 'ip_protocol': 'icmp'}, 'icmp', (8, 0), '0.0.0.0/0'),
        ({'from_port': 1, 'to_port': 2, 'cidr': '2001::/64'}, 'tcp', (1, 2), '2001::/64'),
        ({'from_port': 1, 'to_port': 2, 'cidr': '10.1.2.3/8'}, 'tcp', (1, 2), '10.1.2.3/8'),
        ({'from_port': 1, 'to_port': 2, 'cidr': ''}, 'tcp', (1, 2), '0.0.0.0/0'),
        ({'from_port': 1, 'to_port': 2, 'other': 1}, 'tcp', (1, 2), '0.0.0.0/0'),
    ],
)
def test_what_may_come_in(add, facts, protocol, ports, cidr):
    answer = add(**facts)
    assert answer.status == 200, answer
    rule = answer.json['security_group_rule']
    assert (rule['ip_protocol'], (rule['from_port'], rule['to_port'])) == (protocol, ports)
    assert rule['ip_range'] == {'cidr': cidr} and rule['group'] == {}


@pytest.mark.parametrize(
    ('facts', 'message'),
    [
        ({}, 'Not enough parameters to build a valid rule.'),
        ({'from_port': 1}, 'Not enough parameters to build a valid rule.'),
        ({'from_port': 1, 'to_port': 2, 'ip_protocol': None}, 'Not enough parameters to build a valid rule.'),
        ({'from_port': 1, 'to_port': 2, 'ip_protocol': 'xtp'}, 'Invalid IP protocol xtp.'),
        ({'from_port': 1, 'to_port': 2, 'cidr': '300.1.1.1/8'}, '300.1.1.1/8 is not a valid IP network.'),
        ({'from_port': 1, 'to_port': 2, 'cidr': '10.0.0.0/0'}, 'Bad prefix for network in cidr 10.0.0.0/0'),
        ({'from_port': 5, 'to_port': 2}, 'Invalid port range 5:2. Former value cannot be greater than the later'),
        ({'from_port': 0, 'to_port': 2}, 'Invalid port range 0:2. Valid TCP ports should be between 1-65535'),
        ({'from_port': 300, 'to_port': 2, 'ip_protocol': 'icmp'}, 'For ICMP, the type:code must be valid'),
        ({'from_port': 'a', 'to_port': 'b'}, 'To and From ports must be integers'),
        ({'from_port': 5, 'to_port': 70000}, 'Valid TCP ports should be between 1-65535'),
        ({'from_port': [1], 'to_port': {}}, 'To and From ports must be integers'),
        ({'from_port': 1, 'to_port': 2, 'ip_protocol': 6}, 'Invalid IP protocol 6.'),
        ({'from_port': 1, 'to_port': 2, 'cidr': ['10.0.0.0/8']}, "['10.0.0.0/8'] is not a valid IP network."),
        ({'from_port': 1, 'to_port': 2, 'cidr': '10.0.0.1'}, '10.0.0.1 is not a valid IP network.'),
        ({'parent_group_id': 'x'}, "'x' is not a 'uuid'"),
        ({'group_id': 'x'}, "'x' is not a 'uuid'"),
        ({'group_id': 5}, "5 is not of type 'string', 'null'"),
    ],
)
def test_what_makes_no_rule(add, facts, message):
    answer = add(**facts)
    assert answer.status == 400
    assert answer.json['badRequest']['message'].endswith(message)


def test_rules_may_name_a_group(add, group):
    answer = add(group_id=group, from_port=1, to_port=2)
    assert answer.json['security_group_rule']['group'] == {'name': 'g', 'tenant_id': 'project'}
    assert answer.json['security_group_rule']['ip_range'] == {}
    whole = add(group_id=group, ip_protocol='udp').json['security_group_rule']
    assert (whole['from_port'], whole['to_port']) == (1, 65535)
    anything = add(group_id=group, ip_protocol=None).json['security_group_rule']
    assert (anything['ip_protocol'], anything['from_port']) == (None, None)
    assert add(group_id=MISSING, from_port=1, to_port=2).status == 404
    assert add(parent_group_id=MISSING, cidr='x').status == 404


def test_a_rule_is_there_once(add, group):
    assert add(from_port=1, to_port=2).status == 200
    message = f'This rule already exists in group {group}'
    assert add(from_port=1, to_port=2).json == {'badRequest': {'code': 400, 'message': message}}
