"""From Stein to Ussuri."""

import pytest

from tests.api.servers.conftest import BOB, IMAGE
from tests.history.conftest import ADMIN, OTHER


def test_2_71_servers_show_their_groups(api, boot, show):
    group = {'server_group': {'name': 'group', 'policies': ['affinity']}}
    group_id = api.post('/os-server-groups', group, as_=BOB).json['server_group']['id']
    server = boot(hints={'group': group_id})
    assert 'server_groups' not in show(server, '2.70')
    assert show(server, '2.71')['server_groups'] == [group_id]
    assert 'server_groups' not in api.get('/servers/detail', '2.71', as_=BOB).json['servers'][0]


def test_2_72_a_server_is_created_with_ports_that_request_resources(cloud, create, boot, show):
    make = cloud.networks.resources.create
    policy = make(cloud.admin, 'qos/policies', {'name': 'gold'})['id']
    rule = {'type': 'minimum_bandwidth', 'direction': 'egress', 'min_kbps': 1000}
    make(cloud.admin, 'qos/rules', rule | {'qos_policy_id': policy})
    networks = [{'port': cloud.port(qos_policy_id=policy)}]
    assert create('2.71', networks=networks).status == 400
    assert show(boot('2.72', networks=networks))['status'] == 'ACTIVE'


def test_2_73_a_server_is_locked_with_a_reason(api, server, show, act):
    act(server, 'lock', {'locked_reason': 'not looked at'}, '2.72')
    assert show(server, '2.73')['locked_reason'] is None
    act(server, 'unlock')
    assert act(server, 'lock', {'locked_reason': 'busy'}, '2.73').status == 202
    assert 'locked_reason' not in show(server, '2.72')
    assert show(server, '2.73')['locked_reason'] == 'busy'
    assert len(api.get('/servers?locked=true', '2.73', as_=BOB).json['servers']) == 1
    assert api.get('/servers?locked=false', '2.73', as_=BOB).json['servers'] == []
    assert act(server, 'unlock', None, '2.73').status == 202
    assert show(server, '2.73')['locked_reason'] is None


@pytest.mark.parametrize('name', ['host', 'hypervisor_hostname'])
def test_2_74_a_server_is_created_on_a_named_host(create, boot, host, settle, name):
    there = {name: 'compute2'}
    assert create('2.73', as_=ADMIN, **there).status == 400
    assert create('2.74', as_=BOB, **there).status == 403
    assert create('2.74', as_=ADMIN, availability_zone='nova:compute1:compute1', **there).status == 400
    assert create('2.74', as_=ADMIN, **{name: 'nowhere'}).status == 400
    assert host(boot('2.74', as_=ADMIN, **there)) == 'compute2'


STRICT = '/servers /servers/detail /flavors /flavors/detail /limits /os-keypairs /os-quota-sets/project'
STRICT += ' /os-server-groups /os-services /os-simple-tenant-usage'


def test_2_75_unknown_parameters_are_errors(api, cloud):
    for path in STRICT.split():
        assert [api.get(f'{path}?unknown=1', version).status for version in ('2.74', '2.75')] == [200, 400], path


def test_2_75_one_form_of_a_server_of_no_swap_and_of_no_servers(api, cloud, server, show, act):
    for version, whole in (('2.74', False), ('2.75', True)):
        updated = api.put(f'/servers/{server}', {'server': {'name': 'new'}}, version, as_=ADMIN).json['server']
        rebuilt = act(server, 'rebuild', {'imageRef': IMAGE}, version, as_=ADMIN).json['server']
        assert (updated.keys() == show(server, version).keys()) is whole
        assert ('OS-EXT-STS:vm_state' in rebuilt) is whole
    assert [api.get('/flavors/1', version).json['flavor']['swap'] for version in ('2.74', '2.75')] == ['', 0]
    api.delete(f'/servers/{server}')
    path = '/os-hypervisors?with_servers=true'
    old, new = (api.get(path, version).json['hypervisors'][-1] for version in ('2.74', '2.75'))
    assert new.keys() - old.keys() <= {'servers'} and 'servers' in new


def test_2_76_the_power_of_a_server_changes_from_outside(api, server, send_event, settle, show):
    assert send_event('power-update', server, '2.75', tag='POWER_OFF').status == 400
    assert send_event('power-update', server, '2.76', tag='POWER_OFF').status == 200
    settle()
    assert show(server)['status'] == 'SHUTOFF'
    (action, *_) = api.get(f'/servers/{server}/os-instance-actions').json['instanceActions']
    assert action['action'] == 'stop'


def test_2_77_a_server_is_unshelved_to_a_zone(api, shelved, act, host):
    api.post('/os-aggregates', {'aggregate': {'name': 'second', 'availability_zone': 'second'}})
    (aggregate,) = api.get('/os-aggregates').json['aggregates']
    api.post(f'/os-aggregates/{aggregate["id"]}/action', {'add_host': {'host': 'compute2'}})
    assert act(shelved, 'unshelve', {'availability_zone': 'nowhere'}, '2.77').status == 400
    assert act(shelved, 'unshelve', {'availability_zone': 'second'}, '2.77').status == 202
    assert host(shelved) == 'compute2'


def test_2_77_before_it_the_zone_is_not_looked_at(shelved, act):
    assert act(shelved, 'unshelve', {'availability_zone': 'nowhere'}, '2.76').status == 202


def test_2_78_servers_show_their_topology(api, server):
    path = f'/servers/{server}/topology'
    assert api.get(path, '2.77', as_=BOB).status == 404
    assert api.get(path, '2.78', as_=BOB).json.keys() == {'nodes', 'pagesize_kb'}
    assert api.get(path, '2.78', as_='alice:elsewhere').status == 404


def test_2_79_attached_volumes_go_with_their_server(api, cloud, server, attach, settle):
    kept, given_up = cloud.volume(), cloud.volume()
    assert attach(server, given_up, '2.78', delete_on_termination=True).status == 400
    answer = attach(server, given_up, '2.79', delete_on_termination=True)
    assert answer.json['volumeAttachment']['delete_on_termination'] is True
    assert 'delete_on_termination' not in attach(server, kept, '2.78').json['volumeAttachment']
    listed = api.get(f'/servers/{server}/os-volume_attachments', '2.79', as_=BOB).json['volumeAttachments']
    assert [each['delete_on_termination'] for each in listed] == [True, False]
    api.delete(f'/servers/{server}', as_=BOB)
    settle()
    assert [each.id for each in cloud.volumes.list(cloud.bob)] == [kept]


def test_2_80_migrations_show_whose_they_are(api, server, act, host):
    act(server, 'migrate', {'host': OTHER[host(server)]}, '2.56', as_=ADMIN)
    (old,), (new,) = (api.get('/os-migrations', version).json['migrations'] for version in ('2.79', '2.80'))
    assert new.keys() - old.keys() == {'user_id', 'project_id'}
    assert (new['user_id'], new['project_id']) == ('admin', 'project')
    for query, found in (('user_id=admin', 1), ('user_id=bob', 0), ('project_id=project', 1), ('project_id=x', 0)):
        assert len(api.get(f'/os-migrations?{query}', '2.80').json['migrations']) == found
    assert api.get('/os-migrations?user_id=admin', '2.79').status == 400
