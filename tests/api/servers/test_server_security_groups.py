"""The security groups of a server."""

import pytest

BOB, ALICE, ADMIN = 'bob:project', 'alice:elsewhere', 'admin:admin'
ABSENT = '00000000-0000-0000-0000-000000000000'


@pytest.fixture
def server(servers, world):
    """The ID of a server with a port."""
    return connected(servers, world)


def connected(servers, world, **kwargs):
    server_id = servers.add()
    network = world.network(**kwargs)
    port = world.networks.create_port(world.bob, network, server_id=server_id, host='compute1')
    entry = {'port_id': port.id, 'created': True, 'tag': None, 'mac_address': port.mac_address, 'addresses': []}
    servers.change(server_id, network_info=[entry])
    world.service.cloud.addresses.refresh(world.bob, [server_id])
    return server_id


@pytest.fixture
def group(world):
    """The ID of a group `web` that allows HTTP from everywhere, and all traffic from its own members."""
    create = world.networks.resources.create
    made = create(world.bob, 'security-groups', {'name': 'web', 'description': 'for tests'})['id']
    rule = {'security_group_id': made, 'direction': 'ingress'}
    ports = {'protocol': 'tcp', 'port_range_min': 80, 'port_range_max': 81}
    create(world.bob, 'security-group-rules', rule | ports)
    create(world.bob, 'security-group-rules', rule | {'protocol': 'udp', 'ethertype': 'IPv6'})
    create(world.bob, 'security-group-rules', rule | {'protocol': 'icmp', 'remote_ip_prefix': '10.0.0.0/8'})
    create(world.bob, 'security-group-rules', rule | {'remote_group_id': made})
    return made


@pytest.fixture
def act(api):
    """act('addSecurityGroup', server, 'web'): the response."""

    def post(action, server_id, name, as_=BOB, version=None):
        return api.post(f'/servers/{server_id}/action', {action: {'name': name}}, version, as_=as_)

    return post


def shown(api, server_id):
    answer = api.get(f'/servers/{server_id}/os-security-groups', as_=BOB)
    return {each['name']: each for each in answer.json['security_groups']}


def fault(answer):
    (body,) = answer.json.values()
    return answer.status, body['message']


def test_it_looks_like_the_sample(api, server, sample):
    (listed,) = api.get(f'/servers/{server}/os-security-groups', '2.104', as_=BOB).json['security_groups']
    (expected,) = sample('os-security-groups/server-security-groups-list-resp.json')['security_groups']
    assert listed.keys() == expected.keys()
    assert (listed['name'], listed['tenant_id']) == ('default', 'project')


def test_a_server_enters_and_leaves_a_group(api, act, server, servers, group):
    answer = act('addSecurityGroup', server, 'web')
    assert (answer.status, answer.text) == (202, '')
    assert servers.get(server).network_info[0]['security_groups'] == ['default', 'web']
    assert set(shown(api, server)) == {'default', 'web'}
    assert act('removeSecurityGroup', server, group).status == 202
    assert servers.get(server).network_info[0]['security_groups'] == ['default']


def test_rules_in_the_words_of_the_api(api, act, server, group):
    act('addSecurityGroup', server, group)
    found = shown(api, server)['web']
    assert (found['id'], found['description'], found['tenant_id']) == (group, 'for tests', 'project')
    rules = {
        (rule['ip_protocol'], rule['from_port'], rule['to_port'], rule['ip_range'].get('cidr'))
        for rule in found['rules']
    }
    assert rules == {
        ('tcp', 80, 81, '0.0.0.0/0'),
        ('udp', 1, 65535, '::/0'),
        ('icmp', -1, -1, '10.0.0.0/8'),
        (None, None, None, None),
    }
    (own,) = [rule['group'] for rule in found['rules'] if rule['group']]
    assert own == {'name': 'web', 'tenant_id': 'project'}
    assert all(rule['parent_group_id'] == group for rule in found['rules'])


def test_groups_that_do_not_fit(act, server, group):
    assert act('addSecurityGroup', server, 'web').status == 202
    status, text = fault(act('addSecurityGroup', server, 'web'))
    assert status == 400 and group in text
    assert act('removeSecurityGroup', server, 'web').status == 202
    gone = f'Security group web not associated with the instance {server}'
    assert fault(act('removeSecurityGroup', server, 'web')) == (404, gone)
    unknown = 'Security group nothing is not found for project project'
    for action in ('addSecurityGroup', 'removeSecurityGroup'):
        assert fault(act(action, server, 'nothing')) == (404, unknown)


def test_a_name_that_two_groups_have(act, world, server, group):
    world.networks.resources.create(world.bob, 'security-groups', {'name': 'web'})
    assert act('addSecurityGroup', server, 'web').status == 409
    assert act('addSecurityGroup', server, group).status == 202


def test_ports_without_security_stay_out(act, servers, world, group):
    open_server = connected(servers, world, port_security_enabled=False)
    assert act('addSecurityGroup', open_server, group).status == 400
    unconnected = servers.add()
    for action in ('addSecurityGroup', 'removeSecurityGroup'):
        text = f'instance_id {unconnected} could not be found as device id on any ports'
        assert fault(act(action, unconnected, group)) == (404, text)


def test_who_may(api, act, server, group):
    assert act('addSecurityGroup', server, 'web', as_=ALICE).status == 404
    assert api.get(f'/servers/{server}/os-security-groups', as_=ALICE).status == 404
    assert api.get(f'/servers/{server}/os-security-groups', as_=ADMIN).json['security_groups'][0]['name'] == 'default'
    assert act('addSecurityGroup', ABSENT, 'web').status == 404


@pytest.mark.parametrize('wanted', [{}, {'name': ''}, {'name': 5}, {'name': 'web', 'other': 1}, None])
def test_bad_names_are_refused(api, legacy, server, group, wanted):
    for action in ('addSecurityGroup', 'removeSecurityGroup'):
        assert api.post(f'/servers/{server}/action', {action: wanted}, as_=BOB).status == 400
    if wanted == {'name': 'web', 'other': 1}:
        assert legacy.post(f'/servers/{server}/action', {'addSecurityGroup': wanted}, as_=BOB).status == 202


def test_an_administrator_has_the_network_read_again(api, server, servers):
    info = servers.get(server).network_info
    servers.change(server, network_info=[info[0] | {'network_name': 'old'}])
    for body in (None, {}, [], 'x'):
        assert api.post(f'/servers/{server}/action', {'injectNetworkInfo': body}).status == 202
    assert servers.get(server).network_info == info
    assert api.post(f'/servers/{server}/action', {'injectNetworkInfo': None}, as_=BOB).status == 403
