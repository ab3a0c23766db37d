"""From Liberty to the middle of Mitaka."""

import pytest

from tests.api.servers.conftest import BOB, NETWORK
from tests.history.conftest import ADMIN


def test_2_11_a_compute_service_is_forced_down(api, cloud):
    body = {'host': 'compute1', 'binary': 'nova-compute', 'forced_down': True}
    assert api.put('/os-services/force-down', body, '2.10').status == 400
    assert api.put('/os-services/force-down', body, '2.11').status == 200
    path = '/os-services?host=compute1&binary=nova-compute'
    assert 'forced_down' not in api.get(path, '2.10').json['services'][0]
    (service,) = api.get(path, '2.11').json['services']
    assert (service['forced_down'], service['state']) == (True, 'down')


def test_2_12_virtual_interfaces_name_their_network(api, server):
    path = f'/servers/{server}/os-virtual-interfaces'
    assert 'net_id' not in api.get(path, '2.11', as_=BOB).json['virtual_interfaces'][0]
    assert api.get(path, '2.12', as_=BOB).json['virtual_interfaces'][0]['net_id'] == NETWORK


def test_2_13_server_groups_say_whose_they_are(api):
    group = {'server_group': {'name': 'group', 'policies': ['affinity']}}
    old = api.post('/os-server-groups', group, '2.12', as_=BOB).json['server_group']
    new = api.get(f'/os-server-groups/{old["id"]}', '2.13', as_=BOB).json['server_group']
    assert new.keys() - old.keys() == {'project_id', 'user_id'}
    assert (new['project_id'], new['user_id']) == ('project', 'bob')


def test_2_14_evacuate_finds_out_about_shared_storage(cloud, boot, act, host):
    """It does not return a password any more, either."""
    first, second = boot(), boot()
    for server in (first, second):
        act(server, 'migrate', {'host': 'compute1'}, '2.56', as_=ADMIN)
        act(server, 'confirmResize')
    cloud.down('compute1')
    told = {'onSharedStorage': False}
    assert act(first, 'evacuate', {}, '2.13', as_=ADMIN).status == 400
    assert act(first, 'evacuate', told, '2.14', as_=ADMIN).status == 400
    assert act(first, 'evacuate', told, '2.13', as_=ADMIN).json['adminPass']
    assert act(second, 'evacuate', {}, '2.14', as_=ADMIN).json is None
    assert [host(server) for server in (first, second)] == ['compute2', 'compute2']


@pytest.mark.parametrize('policy', ['soft-affinity', 'soft-anti-affinity'])
def test_2_15_server_groups_have_soft_policies(api, policy):
    group = {'server_group': {'name': 'group', 'policies': [policy]}}
    assert api.post('/os-server-groups', group, '2.14').status == 400
    assert api.post('/os-server-groups', group, '2.15').json['server_group']['policies'] == [policy]


def test_2_16_servers_show_the_status_of_their_host(cloud, server, show, host):
    assert 'host_status' not in show(server, '2.15')
    assert show(server, '2.16')['host_status'] == 'UP'
    cloud.down(host(server))
    assert show(server, '2.16')['host_status'] == 'DOWN'
    assert 'host_status' not in show(server, '2.16', as_=BOB)


def test_2_17_a_crash_dump_is_triggered(server, act):
    assert act(server, 'trigger_crash_dump', None, '2.16').status == 404
    assert act(server, 'trigger_crash_dump', None, '2.17').status == 202
    log = act(server, 'os-getConsoleOutput', {}).json['output']
    assert 'crash dump' in log


@pytest.mark.parametrize('version', ['2.17', '2.18'])
def test_2_18_the_project_in_the_url_is_optional(api, version):
    """It tells clients that they need none; the service accepts both forms at every version."""
    project = '6f70656e737461636b20342065766572'
    for path in ('/servers', f'/{project}/servers'):
        assert api.get(path, version, as_=f'bob:{project}').status == 200
    assert api.get(f'/{project}/servers', version, as_='bob:other').status == 400


def test_2_19_servers_have_a_description(api, create, boot, show):
    assert create('2.18', description='first').status == 400
    server = boot('2.19', description='first')
    assert 'description' not in show(server, '2.18')
    assert show(server, '2.19')['description'] == 'first'
    change = {'server': {'description': 'second'}}
    assert api.put(f'/servers/{server}', change, '2.18', as_=BOB).status == 400
    assert api.put(f'/servers/{server}', change, '2.19', as_=BOB).json['server']['description'] == 'second'


def test_2_20_volumes_of_shelved_servers(api, cloud, shelved, attach, settle):
    volume = cloud.volume()
    assert attach(shelved, volume, '2.19').status == 409
    assert attach(shelved, volume, '2.20').status == 200
    path = f'/servers/{shelved}/os-volume_attachments/{volume}'
    assert api.delete(path, '2.19', as_=BOB).status == 409
    assert api.delete(path, '2.20', as_=BOB).status == 202
