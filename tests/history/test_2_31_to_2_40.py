"""From the beginning of Newton to the beginning of Ocata."""

import uuid

import pytest

from tests.api.servers.conftest import BOB, IMAGE, NETWORK
from tests.history.conftest import ADMIN


def test_2_31_tokens_of_every_console_are_shown(api, server, cloud):
    cloud.service.conf.set_override('enabled', True, 'rdp')
    tokens = []
    for protocol, kind in (('rdp', 'rdp-html5'), ('serial', 'serial')):
        body = {'remote_console': {'protocol': protocol, 'type': kind}}
        opened = api.post(f'/servers/{server}/remote-consoles', body, '2.6', as_=BOB)
        tokens.append(opened.json['remote_console']['url'].partition('token=')[2])
    assert [api.get(f'/os-console-auth-tokens/{token}', '2.30').status for token in tokens] == [200, 401]
    assert [api.get(f'/os-console-auth-tokens/{token}', '2.31').status for token in tokens] == [200, 200]


TAGGED_NETWORK = {'networks': [{'uuid': NETWORK, 'tag': 'nic1'}]}
DISK = {'source_type': 'image', 'destination_type': 'local', 'uuid': IMAGE, 'boot_index': 0}
TAGGED_DISK = {'block_device_mapping_v2': [DISK | {'tag': 'disk1'}]}


def test_2_32_devices_of_a_new_server_have_tags(create, boot, tags):
    assert create('2.31', **TAGGED_NETWORK).status == create('2.31', **TAGGED_DISK).status == 400
    assert tags(boot('2.32', **TAGGED_NETWORK, **TAGGED_DISK)) == ['nic1', 'disk1']


def test_2_33_hypervisors_are_listed_in_pages(api, cloud, create):
    """Disk tags were lost by mistake until 2.42."""
    assert len(api.get('/os-hypervisors?limit=1', '2.32').json['hypervisors']) == 2
    first = api.get('/os-hypervisors?limit=1', '2.33').json
    (one,), (link,) = first['hypervisors'], first['hypervisors_links']
    assert link['href'].endswith(f'/os-hypervisors?limit=1&marker={one["id"]}')
    second = api.get(f'/os-hypervisors?limit=1&marker={one["id"]}', '2.33').json['hypervisors']
    assert [each['id'] != one['id'] for each in second] == [True]
    assert [create(version, **TAGGED_DISK).status for version in ('2.32', '2.33')] == [202, 400]
    assert create('2.33', **TAGGED_NETWORK).status == 202


def test_2_34_live_migration_checks_after_the_answer(api, cloud, server, act, show):
    cloud.service.conf.set_override('fail', ['check_live_migration'], 'simulated')
    argument = {'host': None, 'block_migration': 'auto'}
    for version, answered, recorded in (('2.33', 400, 'error'), ('2.34', 202, 'failed')):
        assert act(server, 'os-migrateLive', argument, version, as_=ADMIN).status == answered
        assert {each['status'] for each in api.get('/os-migrations').json['migrations']} >= {recorded}
        assert show(server)['status'] == 'ACTIVE'


def test_2_35_key_pairs_are_listed_in_pages(api):
    for name in ('b', 'a'):
        api.post('/os-keypairs', {'keypair': {'name': name}})
    assert len(api.get('/os-keypairs?limit=1', '2.34').json['keypairs']) == 2
    first = api.get('/os-keypairs?limit=1', '2.35').json
    assert [each['keypair']['name'] for each in first['keypairs']] == ['a']
    assert first['keypairs_links'][0]['href'].endswith('/os-keypairs?limit=1&marker=a')
    second = api.get('/os-keypairs?limit=1&marker=a', '2.35').json['keypairs']
    assert [each['keypair']['name'] for each in second] == ['b']


PROXIES = 'images os-networks os-tenant-networks os-floating-ips os-floating-ips-bulk os-floating-ip-pools'
PROXIES += ' os-floating-ip-dns os-security-groups os-volumes os-snapshots'


def test_2_36_other_services_are_asked_themselves(api, cloud):
    for path in PROXIES.split():
        assert [api.get(f'/{path}', version).status for version in ('2.35', '2.36')] == [200, 404], path
    assert [api.get('/os-fixed-ips/10.0.0.45', version).status for version in ('2.35', '2.36')] == [200, 404]
    old, new = (api.get('/os-quota-sets/project', version).json['quota_set'] for version in ('2.35', '2.36'))
    assert old.keys() - new.keys() == {'fixed_ips', 'floating_ips', 'security_group_rules', 'security_groups'}
    limits = [api.get('/limits', version).json['limits']['absolute'] for version in ('2.35', '2.36')]
    assert {'maxSecurityGroups', 'maxTotalFloatingIps', 'totalFloatingIpsUsed'} <= limits[0].keys() - limits[1].keys()


def test_2_37_a_new_server_says_its_networks(create, boot, show):
    """The request may leave the networks to the service, or ask for none. Network tags were lost by mistake until
    2.42."""
    assert [create(version, networks=None).status for version in ('2.36', '2.37')] == [202, 400]
    assert [create(version, networks='auto').status for version in ('2.36', '2.37')] == [400, 202]
    assert show(boot('2.37', networks='none'))['addresses'] == {}
    assert show(boot('2.37', networks='auto'))['addresses'] != {}
    assert [create(version, **TAGGED_NETWORK).status for version in ('2.36', '2.37')] == [202, 400]


@pytest.mark.parametrize('as_', [ADMIN, BOB])
def test_2_38_a_status_that_there_is_not(api, server, as_):
    assert api.get('/servers?status=invalid_status', '2.37', as_=as_).json['servers'] == []
    assert api.get('/servers?status=invalid_status', '2.38', as_=as_).status == 400


def test_2_39_metadata_of_images_is_the_image_services(api, cloud):
    path = f'/images/{IMAGE}/metadata'
    assert api.get(path, '2.38', as_=BOB).json == {'metadata': {}}
    assert api.get(path, '2.39', as_=BOB).status == 404
    limits = [api.get('/limits', version).json['limits']['absolute'] for version in ('2.38', '2.39')]
    assert limits[0].keys() - limits[1].keys() == {'maxImageMeta'}


def test_2_40_usage_is_listed_in_pages(api, boot):
    first, second = boot(), boot()
    path = '/os-simple-tenant-usage/project?detailed=1&limit=1'
    assert len(api.get(path, '2.39').json['tenant_usage']['server_usages']) == 2
    page = api.get(path, '2.40').json
    (shown,) = page['tenant_usage']['server_usages']
    assert page['tenant_usage_links'][0]['href'].endswith(f'marker={shown["instance_id"]}')
    (other,) = api.get(f'{path}&marker={shown["instance_id"]}', '2.40').json['tenant_usage']['server_usages']
    assert {shown['instance_id'], other['instance_id']} == {first, second}
    assert api.get(f'{path}&marker={uuid.uuid4()}', '2.40').status == 400
