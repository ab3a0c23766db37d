"""Ports that ask a host for bandwidth: 2.72 creates servers with them, and nothing moves them."""

import pytest

from tests.api.servers.conftest import BOB, NETWORK

ADMIN = 'admin:project'


@pytest.fixture
def policy(world):
    """The id of a policy with a rule of minimum bandwidth."""
    create = world.networks.resources.create
    policy = create(world.admin, 'qos/policies', {'name': 'gold'})['id']
    rule = {'qos_policy_id': policy, 'type': 'minimum_bandwidth', 'direction': 'egress', 'min_kbps': 1000}
    create(world.admin, 'qos/rules', rule)
    return policy


@pytest.fixture
def port(world, policy):
    return world.port(qos_policy_id=policy)


@pytest.fixture
def network(world, policy):
    return world.network(subnet='10.1.0.0/24', qos_policy_id=policy)


@pytest.fixture
def server(create, settle, port):
    """A server with the port."""
    made = create('2.72', networks=[{'port': port}]).json['server']['id']
    settle()
    return made


def message(answer):
    return answer.status, answer.json['badRequest']['message']


def test_servers_have_such_ports_from_2_72(api, create, port, settle):
    status, reason = message(create('2.71', networks=[{'port': port}]))
    assert status == 400 and 'not supported until microversion 2.72' in reason
    made = create('2.72', networks=[{'port': port}])
    assert made.status == 202
    settle()
    shown = api.get(f'/servers/{made.json["server"]["id"]}').json['server']
    assert shown['status'] == 'ACTIVE' and shown['addresses']


@pytest.mark.parametrize('version', ['2.71', '2.72'])
def test_servers_are_not_created_on_such_networks(create, world, network, version):
    status, reason = message(create(version, networks=[{'uuid': network}]))
    assert status == 400 and network in reason
    world.networks.resources.update(world.admin, 'networks', network, {'qos_policy_id': None})
    assert create(version, networks=[{'uuid': network}]).status == 202


@pytest.mark.parametrize('networks', [None, 'auto'])
def test_nor_where_it_is_the_only_network(create, world, policy, networks):
    world.networks.resources.update(world.admin, 'networks', NETWORK, {'qos_policy_id': policy})
    assert message(create('2.36' if networks is None else '2.37', networks=networks))[0] == 400


def test_neither_is_attached(api, create, settle, port, network):
    server = create(networks=[{'uuid': NETWORK}]).json['server']['id']
    settle()
    for facts in ({'port_id': port}, {'net_id': network}):
        answer = api.post(f'/servers/{server}/os-interface', {'interfaceAttachment': facts}, '2.72', as_=BOB)
        assert message(answer) == (400, f'Attaching interfaces with QoS policy is not supported for instance {server}.')
    assert len(api.get(f'/servers/{server}/os-interface').json['interfaceAttachments']) == 1


def test_such_a_port_is_detached(api, server, port, settle):
    assert api.delete(f'/servers/{server}/os-interface/{port}', as_=BOB).status == 202
    settle()
    assert api.get(f'/servers/{server}/os-interface').json == {'interfaceAttachments': []}


@pytest.mark.parametrize(
    ('before', 'action'),
    [
        (None, {'resize': {'flavorRef': '2'}}),
        (None, {'migrate': None}),
        (None, {'os-migrateLive': {'host': None, 'block_migration': 'auto'}}),
        ('down', {'evacuate': {}}),
        ('shelve', {'unshelve': None}),
    ],
)
def test_its_server_is_not_moved(api, world, server, settle, before, action):
    world.flavor('2', vcpus=2)
    path, host = f'/servers/{server}', api.get(f'/servers/{server}').json['server']['OS-EXT-SRV-ATTR:host']
    if before == 'down':
        world.down(host)
    if before == 'shelve':
        api.post(f'{path}/action', {'shelve': None})
        settle()
    status, reason = message(api.post(f'{path}/action', action, '2.72', as_=ADMIN))
    assert status == 400 and 'resource requests' in reason
    assert api.get(path).json['server']['OS-EXT-STS:task_state'] is None
    assert api.get('/os-migrations', '2.72').json['migrations'] == []
