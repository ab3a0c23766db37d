"""From Ocata to the middle of Pike."""

from tests.api.servers.conftest import BOB, NETWORK
from tests.history.conftest import ADMIN
from tests.history.test_2_31_to_2_40 import TAGGED_DISK, TAGGED_NETWORK


def test_2_41_aggregates_have_a_uuid(api):
    api.post('/os-aggregates', {'aggregate': {'name': 'fast'}}, '2.40')
    (old,), (new,) = (api.get('/os-aggregates', version).json['aggregates'] for version in ('2.40', '2.41'))
    assert new.keys() - old.keys() == {'uuid'}
    assert api.get(f'/os-aggregates/{old["id"]}', '2.41').json['aggregate']['uuid'] == new['uuid']


def test_2_42_devices_of_a_new_server_have_tags_again(create, boot, tags):
    assert create('2.41', **TAGGED_NETWORK).status == create('2.41', **TAGGED_DISK).status == 400
    assert tags(boot('2.42', **TAGGED_NETWORK, **TAGGED_DISK)) == ['nic1', 'disk1']


def test_2_43_hosts_are_hypervisors(api, cloud):
    for path in ('/os-hosts', '/os-hosts/compute1'):
        assert [api.get(path, version).status for version in ('2.42', '2.43')] == [200, 404]
    assert api.put('/os-hosts/compute1', {'status': 'disable'}, '2.42').status == 200
    assert api.put('/os-hosts/compute1', {'status': 'enable'}, '2.43').status == 404


def test_2_44_addresses_are_the_network_services(api, server, act, show):
    assert act(server, 'addFixedIp', {'networkId': NETWORK}, '2.43').status == 202
    first, second = show(server)['addresses']['network']
    assert act(server, 'removeFixedIp', {'address': second['addr']}, '2.43').status == 202
    assert act(server, 'addFixedIp', {'networkId': NETWORK}, '2.44').status == 404
    for action in ('removeFixedIp', 'addFloatingIp', 'removeFloatingIp'):
        assert act(server, action, {'address': first['addr']}, '2.44').status == 404
    path = f'/servers/{server}/os-virtual-interfaces'
    assert [api.get(path, version).status for version in ('2.43', '2.44')] == [200, 404]


def test_2_45_a_new_image_is_named_in_the_body(cloud, server, act):
    old = act(server, 'createImage', {'name': 'old'}, '2.44')
    assert old.json is None
    new = act(server, 'createImage', {'name': 'new'}, '2.45')
    assert 'Location' not in new.headers
    for image_id, name in ((old.headers['Location'].rpartition('/')[2], 'old'), (new.json['image_id'], 'new')):
        assert cloud.images.get(cloud.bob, image_id).name == name


def test_2_46_the_request_id_has_the_name_that_all_services_use(api):
    """It tells clients that they may read the header; the service sends it at every version, with every response."""
    for version in ('2.45', '2.46'):
        for path in ('/flavors', '/flavors/absent', ''):
            headers = api.get(path, version).headers
            assert headers['X-OpenStack-Request-ID'] == headers['X-Compute-Request-ID']


def test_2_47_servers_embed_their_flavor(api, server, show):
    assert show(server, '2.46')['flavor'].keys() == {'id', 'links'}
    api.delete('/flavors/1')
    shown = show(server, '2.47')['flavor']
    assert shown.pop('original_name') == 'flavor-1'
    assert shown == {'vcpus': 1, 'ram': 64, 'disk': 1, 'ephemeral': 0, 'swap': 0, 'extra_specs': {}}


def test_2_48_diagnostics_have_one_format(api, server):
    old = api.get(f'/servers/{server}/diagnostics', '2.47', as_=ADMIN).json
    new = api.get(f'/servers/{server}/diagnostics', '2.48', as_=ADMIN).json
    assert 'memory' in old and 'cpu0_time' in old
    assert (new['state'], new['hypervisor'], new['num_cpus'], new['num_nics']) == ('running', 'simulated', 1, 1)
    assert new.keys() >= {'cpu_details', 'disk_details', 'nic_details', 'memory_details', 'config_drive', 'uptime'}


def test_2_49_what_is_attached_has_a_tag(api, cloud, server, attach, settle, tags):
    interface = {'interfaceAttachment': {'net_id': NETWORK, 'tag': 'nic2'}}
    volume = cloud.volume()
    assert api.post(f'/servers/{server}/os-interface', interface, '2.48', as_=BOB).status == 400
    assert attach(server, volume, '2.48', tag='disk2').status == 400
    assert api.post(f'/servers/{server}/os-interface', interface, '2.49', as_=BOB).status == 200
    assert attach(server, volume, '2.49', tag='disk2').status == 200
    assert tags(server) == ['nic2', 'disk2']


def test_2_50_quota_classes_know_server_groups_and_no_networks(api):
    path = '/os-quota-class-sets/default'
    old, new = (api.get(path, version).json['quota_class_set'] for version in ('2.49', '2.50'))
    assert new.keys() - old.keys() == {'server_groups', 'server_group_members'}
    assert old.keys() - new.keys() == {'fixed_ips', 'floating_ips', 'security_group_rules', 'security_groups'}
    change = {'quota_class_set': {'floating_ips': 5}}
    assert [api.put(path, change, version).status for version in ('2.49', '2.50')] == [200, 400]
