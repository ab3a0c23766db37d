"""Ports with bandwidth requests, which servers can be created with since 2.72; see also test_placed_ports."""

import pytest

from tests.api.servers.conftest import BOB, NETWORK


@pytest.fixture
def policy(world):
    """The ID of a policy with a minimum bandwidth rule."""
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


def test_such_a_port_is_attached_and_such_a_network_not(api, create, settle, port, network):
    server = create(networks=[{'uuid': NETWORK}]).json['server']['id']
    settle()
    path = f'/servers/{server}/os-interface'
    status, reason = message(api.post(path, {'interfaceAttachment': {'net_id': network}}, '2.72', as_=BOB))
    assert status == 400 and reason == (
        f'Using networks with QoS policy is not supported for instance {server}. (Network ID is {network})'
    )
    assert api.post(path, {'interfaceAttachment': {'port_id': port}}, '2.72', as_=BOB).status == 200
    assert len(api.get(path).json['interfaceAttachments']) == 2


def test_such_a_port_is_detached(api, server, port, settle):
    assert api.delete(f'/servers/{server}/os-interface/{port}', as_=BOB).status == 202
    settle()
    assert api.get(f'/servers/{server}/os-interface').json == {'interfaceAttachments': []}
