"""From Ussuri to Xena."""

from tests.api.servers.conftest import BOB, IMAGE, ROOT_VOLUME
from tests.history.conftest import ADMIN


def test_2_81_images_are_cached_ahead(api, cloud):
    aggregate = api.post('/os-aggregates', {'aggregate': {'name': 'fast'}}).json['aggregate']
    path = f'/os-aggregates/{aggregate["id"]}/images'
    assert api.post(path, {'cache': [{'id': IMAGE}]}, '2.80').status == 404
    assert api.post(path, {'cache': [{'id': IMAGE}]}, '2.81').status == 202
    assert api.post(path, {'cache': []}, '2.81').status == 400


def test_2_82_an_accelerator_tells_that_it_was_bound(server, send_event):
    assert send_event('accelerator-request-bound', server, '2.81', tag='arq').status == 400
    assert send_event('accelerator-request-bound', server, '2.82', tag='arq').status == 200


def test_2_83_everybody_filters_by_more_attributes(api, server):
    filters = 'availability_zone=none config_drive=True key_name=none power_state=4 task_state=none vm_state=stopped'
    filters += ' user_id=none progress=50 launched_at=2000-01-01T00:00:00 created_at=2000-01-01T00:00:00'
    for text in filters.split():
        found = [api.get(f'/servers?{text}', version, as_=BOB).json['servers'] for version in ('2.82', '2.83')]
        assert [len(each) for each in found] == [1, 0], text


def test_2_84_events_that_failed_have_details(api, cloud, server, act):
    cloud.service.conf.set_override('fail', ['pause'], 'simulated')
    act(server, 'pause')
    path = f'/servers/{server}/os-instance-actions'
    path += '/' + api.get(path).json['instanceActions'][0]['request_id']
    old, new = (api.get(path, version, as_=ADMIN).json['instanceAction']['events'] for version in ('2.83', '2.84'))
    assert 'details' not in old[0]
    assert 'told to fail: pause' in new[0]['details']


def test_2_85_a_volume_is_told_to_go_with_its_server(api, cloud, server, attach):
    volume = cloud.volume()
    attach(server, volume)
    path = f'/servers/{server}/os-volume_attachments/{volume}'
    change = {'volumeAttachment': {'volumeId': volume, 'delete_on_termination': True}}
    assert api.put(path, change, '2.84', as_=ADMIN).status == 400
    assert api.put(path, change, '2.85', as_=BOB).status == 202
    assert api.get(path, '2.85', as_=BOB).json['volumeAttachment']['delete_on_termination'] is True


def test_2_86_extra_specs_that_are_known_are_validated(api, cloud):
    wrong = {'extra_specs': {'hw:cpu_policy': 'sharrred'}}
    assert [api.post('/flavors/1/os-extra_specs', wrong, version).status for version in ('2.85', '2.86')] == [200, 400]
    one = {'hw:numa_nodes': 'many'}
    path = '/flavors/1/os-extra_specs/hw:numa_nodes'
    assert [api.put(path, one, version).status for version in ('2.85', '2.86')] == [200, 400]
    assert api.post('/flavors/1/os-extra_specs', {'extra_specs': {'my:own': 'anything'}}, '2.86').status == 200


def test_2_87_servers_on_volumes_are_rescued(cloud, boot, act, show):
    server = boot(imageRef=None, block_device_mapping_v2=[ROOT_VOLUME])
    rescue = {'rescue_image_ref': cloud.image(properties={'hw_rescue_device': 'disk', 'hw_rescue_bus': 'usb'})}
    assert act(server, 'rescue', rescue, '2.86').status == 400
    assert act(server, 'rescue', rescue, '2.87').status == 200
    assert show(server)['status'] == 'RESCUE'


GONE = 'current_workload cpu_info vcpus vcpus_used free_disk_gb local_gb local_gb_used disk_available_least'
GONE += ' free_ram_mb memory_mb memory_mb_used running_vms'


def test_2_88_hypervisors_show_no_usage(api, cloud):
    old, new = (api.get('/os-hypervisors/detail', version).json['hypervisors'][0] for version in ('2.87', '2.88'))
    assert old.keys() - new.keys() == set(GONE.split())
    assert new.keys() - old.keys() == {'uptime'}
    for path in ('/os-hypervisors/statistics', f'/os-hypervisors/{new["id"]}/uptime'):
        assert api.get(path, '2.88').status == 404
    assert api.get('/os-hypervisors/statistics', '2.87').json['hypervisor_statistics']['count'] == 2


def test_2_89_attached_volumes_show_two_more_ids(api, cloud, server, attach):
    volume = cloud.volume()
    attach(server, volume)
    path = f'/servers/{server}/os-volume_attachments/{volume}'
    old, new = (api.get(path, version, as_=BOB).json['volumeAttachment'] for version in ('2.88', '2.89'))
    assert new.keys() - old.keys() == {'attachment_id', 'bdm_uuid'} and old.keys() - new.keys() == {'id'}
    assert cloud.volumes.attachment(cloud.bob, new['attachment_id']).volume_id == volume


def test_2_90_servers_have_a_hostname_of_their_own(api, create, boot, show):
    assert create('2.89', hostname='web').status == 400
    server = boot('2.90', hostname='web')
    name = 'OS-EXT-SRV-ATTR:hostname'
    assert name not in show(server, '2.89', as_=BOB)
    assert show(server, '2.90', as_=BOB)[name] == 'web'
    change = {'server': {'hostname': 'db'}}
    assert api.put(f'/servers/{server}', change, '2.89', as_=BOB).status == 400
    assert api.put(f'/servers/{server}', change, '2.90', as_=BOB).status == 200
    assert show(server, '2.90', as_=BOB)[name] == 'db'
    assert create('2.90', hostname='web.example.org').status == 400
