"""The interfaces recorded for servers follow the network service."""

import uuid

import pytest

from computeapi.clock import utcnow
from computeapi.context import Context
from computeapi.db import servers as rows

BOB = Context(user_id='bob', project_id='project', roles=frozenset({'member', 'reader'}), request_id='req-1')


@pytest.fixture
def resources(service):
    """The network service as its REST API changes it, with a private and a public network."""
    service.networks.populate(BOB)
    return service.networks.resources


@pytest.fixture
def network(service, resources):
    return service.networks.networks(BOB)[0]


@pytest.fixture
def server(service, network, servers):
    """Creates a server with a port that compute created; returns its ID."""
    server_id = servers.add()
    port = service.networks.create_port(BOB, network.id, server_id=server_id, host='compute1')
    entry = {'port_id': port.id, 'created': True, 'tag': 'nic', 'mac_address': port.mac_address, 'addresses': []}
    servers.change(server_id, network_info=[entry])
    service.cloud.addresses.refresh(BOB, [server_id])
    return server_id


def interface(servers, server_id):
    (entry,) = servers.get(server_id).network_info
    return entry


def test_a_refresh_describes_the_ports(server, servers, network):
    entry = interface(servers, server)
    assert (entry['network_id'], entry['network_name'], entry['status']) == (network.id, network.name, 'ACTIVE')
    assert (entry['created'], entry['tag'], entry['security_groups']) == (True, 'nic', ['default'])
    assert [address['version'] for address in entry['addresses']] == [4]


def test_floating_ips_follow_wherever_they_lead(service, resources, server, servers):
    port_id = interface(servers, server)['port_id']
    floating = service.networks.create_floating_ip(BOB)

    def shown():
        return interface(servers, server)['addresses'][0]['floating']

    resources.update(BOB, 'floatingips', floating.id, {'port_id': port_id})
    assert shown() == [floating.address]
    resources.update(BOB, 'floatingips', floating.id, {'port_id': None})
    assert shown() == []
    service.networks.associate_floating_ip(BOB, floating.address, port_id)
    assert shown() == [floating.address]
    resources.delete(BOB, 'floatingips', floating.id)
    assert shown() == []


def test_addresses_and_security_groups_follow(resources, network, server, servers):
    port_id = interface(servers, server)['port_id']
    group = resources.create(BOB, 'security-groups', {'name': 'web'})
    resources.update(BOB, 'ports', port_id, {'security_groups': [group['id']]})
    assert interface(servers, server)['security_groups'] == ['web']
    resources.update(BOB, 'security-groups', group['id'], {'name': 'www'})
    assert interface(servers, server)['security_groups'] == ['www']
    (subnet,) = network.subnets
    wanted = [{'subnet_id': subnet['id']}, {'subnet_id': subnet['id']}]
    resources.update(BOB, 'ports', port_id, {'fixed_ips': wanted})
    assert len(interface(servers, server)['addresses']) == 2
    resources.update(BOB.elevated(), 'networks', network.id, {'name': 'renamed'})
    assert interface(servers, server)['network_name'] == 'renamed'


def test_a_port_that_is_gone_is_unplugged(service, resources, server, servers):
    service.hypervisor.spawn(servers.get(server), [])
    entry = interface(servers, server)
    # Whatever the server is doing meanwhile.
    servers.change(server, task_state='powering-off')
    resources.delete(BOB, 'ports', entry['port_id'])
    assert servers.get(server).network_info == []
    while service.worker.step():
        pass
    assert f'link down {entry["mac_address"]}' in service.hypervisor.console_output(servers.get(server), None)
    assert servers.get(server).task_state == 'powering-off'


def test_ports_that_are_still_to_be_made_are_not_gone(service, server, servers):
    planned = {'port_id': str(uuid.uuid4()), 'created': True, 'tag': None, 'mac_address': None, 'addresses': []}
    servers.change(server, network_info=[planned], task_state='networking')
    service.cloud.addresses.refresh(BOB, [server])
    assert servers.get(server).network_info == [planned]


def test_what_is_described_already_is_not_written_again(service, server, servers):
    before = servers.get(server).updated_at
    service.cloud.addresses.refresh(BOB, [server, str(uuid.uuid4())])
    assert servers.get(server).updated_at == before


def test_neither_of_two_changes_at_one_moment_is_lost(service, store, server, servers, monkeypatch):
    """While the ports are read, the server is changed elsewhere; that change is not overwritten with the older data."""
    ports, disturbances = service.networks.ports, []

    def slowly(*arguments, **more):
        found = ports(*arguments, **more)
        if not disturbances:
            disturbances.append(1)
            info = [interface(servers, server) | {'tag': 'other', 'status': 'OLD'}]
            with store.write() as connection:
                rows.update(connection, server, {'network_info': info, 'updated_at': utcnow()})
        return found

    servers.change(server, network_info=[interface(servers, server) | {'status': 'DOWN'}])
    monkeypatch.setattr(service.networks, 'ports', slowly)
    service.cloud.addresses.refresh(BOB, [server])
    entry = interface(servers, server)
    assert (entry['tag'], entry['status']) == ('other', 'ACTIVE')


def test_who_died_before_it_told_is_heard_at_the_next_start(service, resources, server, servers, monkeypatch):
    def die(context, server_ids):
        raise SystemExit

    port_id = interface(servers, server)['port_id']
    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr(resources.notifications, 'listeners', [die])
        resources.update(BOB, 'ports', port_id, {'security_groups': []})
    assert interface(servers, server)['security_groups'] == ['default']
    service.start()
    service.stop()
    assert interface(servers, server)['security_groups'] == []


def test_many_servers_are_read_at_once(service, network, servers, store):
    ids = []
    for _ in range(3):
        server_id = servers.add()
        port = service.networks.create_port(BOB, network.id, server_id=server_id)
        entry = {'port_id': port.id, 'created': True, 'tag': None, 'mac_address': port.mac_address, 'addresses': []}
        servers.change(server_id, network_info=[entry])
        ids.append(server_id)
    service.cloud.addresses.refresh(BOB, ids)
    assert len({interface(servers, server_id)['addresses'][0]['address'] for server_id in ids}) == 3
