"""The versions of Kilo and of the beginning of Liberty, each tested just below it and at it."""

from tests.api.servers.conftest import BOB
from tests.history.conftest import ADMIN


def test_2_2_key_pairs_have_a_type(api):
    assert api.post('/os-keypairs', {'keypair': {'name': 'old', 'type': 'ssh'}}, '2.1').status == 400
    assert api.post('/os-keypairs', {'keypair': {'name': 'old'}}, '2.1').status == 200
    made = api.post('/os-keypairs', {'keypair': {'name': 'new', 'type': 'x509'}}, '2.2')
    assert made.status == 201 and made.json['keypair']['type'] == 'x509'
    assert api.get('/os-keypairs/old', '2.2').json['keypair']['type'] == 'ssh'
    assert 'type' not in api.get('/os-keypairs/new', '2.1').json['keypair']
    assert api.delete('/os-keypairs/old', '2.1').status == 202
    assert api.delete('/os-keypairs/new', '2.2').status == 204


def test_2_3_servers_show_what_ec2_needs(server, show, attach, cloud):
    attach(server, cloud.volume())
    old, new = show(server, '2.2'), show(server, '2.3')
    names = 'hostname kernel_id launch_index ramdisk_id reservation_id root_device_name user_data'
    assert new.keys() - old.keys() == {f'OS-EXT-SRV-ATTR:{name}' for name in names.split()}
    assert old['os-extended-volumes:volumes_attached'][0].keys() == {'id'}
    assert new['os-extended-volumes:volumes_attached'][0]['delete_on_termination'] is False


def test_2_4_fixed_ips_say_whether_they_are_reserved(api, cloud):
    path = '/os-fixed-ips/10.0.0.45'
    assert 'reserved' not in api.get(path, '2.3').json['fixed_ip']
    assert api.get(path, '2.4').json['fixed_ip']['reserved'] is False
    assert api.post(f'{path}/action', {'reserve': None}, '2.4').status == 202
    assert api.get(path, '2.4').json['fixed_ip']['reserved'] is True
    assert api.post(f'{path}/action', {'unreserve': None}, '2.4').status == 202
    assert api.get(path, '2.4').json['fixed_ip']['reserved'] is False


def test_2_5_everybody_filters_by_ipv6_address(api, server):
    assert len(api.get('/servers?ip6=2001:db8::1', '2.4', as_=BOB).json['servers']) == 1
    assert api.get('/servers?ip6=2001:db8::1', '2.5', as_=BOB).json['servers'] == []


def test_2_6_consoles_are_a_resource(api, server, act):
    body = {'remote_console': {'protocol': 'vnc', 'type': 'novnc'}}
    assert act(server, 'os-getVNCConsole', {'type': 'novnc'}, '2.5').status == 200
    assert api.post(f'/servers/{server}/remote-consoles', body, '2.5', as_=BOB).status == 404
    for action in ('os-getVNCConsole', 'os-getSPICEConsole', 'os-getSerialConsole', 'os-getRDPConsole'):
        assert act(server, action, {'type': 'novnc'}, '2.6').status == 404
    console = api.post(f'/servers/{server}/remote-consoles', body, '2.6', as_=BOB).json['remote_console']
    assert console.keys() == {'protocol', 'type', 'url'}


def test_2_7_public_flavors_need_no_access(api, cloud):
    access = {'addTenantAccess': {'tenant': 'project'}}
    assert api.post('/flavors/1/action', access, '2.6').status == 200
    assert api.post('/flavors/1/action', access, '2.7').status == 409


def test_2_8_consoles_by_mks(api, server, cloud):
    cloud.service.conf.set_override('enabled', True, 'mks')
    body = {'remote_console': {'protocol': 'mks', 'type': 'webmks'}}
    assert api.post(f'/servers/{server}/remote-consoles', body, '2.7', as_=BOB).status == 400
    assert api.post(f'/servers/{server}/remote-consoles', body, '2.8', as_=BOB).status == 200


def test_2_9_servers_say_whether_they_are_locked(server, show, act):
    assert 'locked' not in show(server, '2.8')
    assert show(server, '2.9')['locked'] is False
    act(server, 'lock')
    assert show(server, '2.9')['locked'] is True


def test_2_10_administrators_have_key_pairs_of_others(api):
    body = {'keypair': {'name': 'key', 'user_id': 'bob'}}
    assert api.post('/os-keypairs', body, '2.9', as_=ADMIN).status == 400
    assert api.post('/os-keypairs', body, '2.10', as_=ADMIN).status == 201
    assert len(api.get('/os-keypairs?user_id=bob', '2.10', as_=ADMIN).json['keypairs']) == 1
    assert api.get('/os-keypairs?user_id=bob', '2.9', as_=ADMIN).json['keypairs'] == []
    assert api.get('/os-keypairs?user_id=admin', '2.10', as_=BOB).status == 403
    assert api.delete('/os-keypairs/key?user_id=bob', '2.10', as_=ADMIN).status == 204
