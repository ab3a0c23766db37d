"""From the middle of Pike to Queens."""

from tests.api.servers.conftest import BOB, IMAGE
from tests.history.conftest import ADMIN, OTHER


def test_2_51_volumes_in_use_are_extended(api, cloud, server, attach, send_event, settle):
    """The project can also see the events of an action."""
    volume = cloud.volume()
    attach(server, volume)
    assert send_event('volume-extended', server, '2.50', tag=volume).status == 400
    assert send_event('volume-extended', server, '2.51', tag=volume).status == 200
    settle()
    path = f'/servers/{server}/os-instance-actions'
    extended = api.get(path, '2.51', as_=BOB).json['instanceActions'][0]
    assert extended['action'] == 'extend_volume'
    one = f'{path}/{extended["request_id"]}'
    assert 'events' not in api.get(one, '2.50', as_=BOB).json['instanceAction']
    (event,) = api.get(one, '2.51', as_=BOB).json['instanceAction']['events']
    assert event['result'] == 'Success' and 'traceback' not in event


def test_2_52_a_server_is_created_with_tags(create, boot, show):
    assert create('2.51', tags=['foo']).status == 400
    assert show(boot('2.52', tags=['foo', 'bar']), '2.52')['tags'] == ['bar', 'foo']


def test_2_53_services_have_a_uuid(api, cloud):
    path = '/os-services?host=compute1&binary=nova-compute'
    (old,), (new,) = (api.get(path, version).json['services'] for version in ('2.52', '2.53'))
    assert isinstance(old['id'], int) and len(new['id']) == 36
    assert api.put('/os-services/disable', {'host': 'compute1', 'binary': 'nova-compute'}, '2.53').status == 400
    change = {'status': 'disabled', 'disabled_reason': 'repair'}
    assert api.put(f'/os-services/{new["id"]}', change, '2.52').status == 400
    changed = api.put(f'/os-services/{new["id"]}', change, '2.53').json['service']
    assert changed | change == changed and changed.keys() == new.keys()


def test_2_53_hypervisors_have_a_uuid(api, cloud, server):
    old, new = (api.get('/os-hypervisors', version).json['hypervisors'][0]['id'] for version in ('2.52', '2.53'))
    assert isinstance(old, int) and len(new) == 36
    assert [api.get(f'/os-hypervisors/{one}', '2.53').status for one in (old, new)] == [400, 200]
    for path in ('/os-hypervisors/compute1/search', '/os-hypervisors/compute1/servers'):
        assert [api.get(path, version).status for version in ('2.52', '2.53')] == [200, 404]
    listed = api.get('/os-hypervisors?hypervisor_hostname_pattern=compute&with_servers=true', '2.53').json
    assert [one['uuid'] for each in listed['hypervisors'] for one in each.get('servers', ())] == [server]


def test_2_54_rebuild_sets_the_key_pair(api, server, act, show):
    api.post('/os-keypairs', {'keypair': {'name': 'key'}}, as_=BOB)
    assert act(server, 'rebuild', {'imageRef': IMAGE, 'key_name': 'key'}, '2.53').status == 400
    rebuilt = act(server, 'rebuild', {'imageRef': IMAGE, 'key_name': 'key'}, '2.54')
    assert rebuilt.json['server']['key_name'] == show(server)['key_name'] == 'key'
    act(server, 'rebuild', {'imageRef': IMAGE, 'key_name': None}, '2.54')
    assert show(server)['key_name'] is None


def test_2_55_flavors_have_a_description(api):
    flavor = {'name': 'new', 'ram': 64, 'vcpus': 1, 'disk': 1, 'id': 'new'}
    assert api.post('/flavors', {'flavor': flavor | {'description': 'text'}}, '2.54').status == 400
    assert api.post('/flavors', {'flavor': flavor | {'description': 'text'}}, '2.55').status == 200
    assert 'description' not in api.get('/flavors/new', '2.54').json['flavor']
    assert api.get('/flavors', '2.55').json['flavors'][0]['description'] == 'text'
    change = {'flavor': {'description': None}}
    assert [api.put('/flavors/new', change, version).status for version in ('2.54', '2.55')] == [404, 200]
    assert api.get('/flavors/new', '2.55').json['flavor']['description'] is None


def test_2_56_migrate_names_a_host(server, act, host):
    there = OTHER[host(server)]
    assert act(server, 'migrate', {'host': there}, '2.56').status == 403
    assert act(server, 'migrate', {'host': 'nowhere'}, '2.56', as_=ADMIN).status == 400
    assert act(server, 'migrate', {'host': there}, '2.56', as_=ADMIN).status == 202
    assert host(server) == there


def test_2_57_personality_is_gone(api, create, server, act, show):
    files = [{'path': '/etc/motd', 'contents': 'SGVsbG8='}]
    assert [create(version, personality=files).status for version in ('2.56', '2.57')] == [202, 400]
    rebuild = {'imageRef': IMAGE}
    assert act(server, 'rebuild', rebuild | {'user_data': 'SGVsbG8='}, '2.56').status == 400
    assert act(server, 'rebuild', rebuild | {'user_data': 'SGVsbG8='}, '2.57').status == 202
    assert show(server, '2.57')['OS-EXT-SRV-ATTR:user_data'] == 'SGVsbG8='
    assert act(server, 'rebuild', rebuild | {'personality': files}, '2.57').status == 400
    limits = [api.get('/limits', version).json['limits']['absolute'] for version in ('2.56', '2.57')]
    assert limits[0].keys() - limits[1].keys() == {'maxPersonality', 'maxPersonalitySize'}
    quotas = [api.get('/os-quota-sets/project', version).json['quota_set'] for version in ('2.56', '2.57')]
    gone = {'injected_files', 'injected_file_content_bytes', 'injected_file_path_bytes'}
    assert quotas[0].keys() - quotas[1].keys() == gone


def test_2_58_actions_are_listed_in_pages(api, server, act):
    act(server, 'pause')
    path = f'/servers/{server}/os-instance-actions'
    assert len(api.get(f'{path}?limit=1', '2.57', as_=BOB).json['instanceActions']) == 2
    first = api.get(f'{path}?limit=1', '2.58', as_=BOB).json
    (one,) = first['instanceActions']
    assert one['action'] == 'pause' and 'updated_at' in one and len(first['links']) == 1
    (other,) = api.get(f'{path}?limit=1&marker={one["request_id"]}', '2.58', as_=BOB).json['instanceActions']
    assert other['action'] == 'create'
    assert api.get(f'{path}?changes-since=2100-01-01T00:00:00', '2.58', as_=BOB).json['instanceActions'] == []


def test_2_59_migrations_are_listed_in_pages(api, server, act):
    for _ in range(2):
        act(server, 'os-migrateLive', {'host': None, 'block_migration': 'auto'}, '2.34', as_=ADMIN)
    assert len(api.get('/os-migrations?limit=1', '2.58').json['migrations']) == 2
    first = api.get('/os-migrations?limit=1', '2.59').json
    (one,) = first['migrations']
    assert first['migrations_links'][0]['href'].endswith(f'marker={one["uuid"]}')
    assert len(api.get(f'/os-migrations?limit=1&marker={one["uuid"]}', '2.59').json['migrations']) == 1
    assert api.get('/os-migrations?changes-since=2100-01-01T00:00:00', '2.59').json['migrations'] == []
    assert [api.get('/os-migrations?unknown=1', version).status for version in ('2.58', '2.59')] == [200, 400]


def test_2_60_a_volume_is_attached_to_several_servers(cloud, boot, attach):
    volume = cloud.volume(volume_type='multiattach')
    first, second = boot(), boot()
    assert attach(first, volume, '2.59').status == 400
    assert [attach(server, volume, '2.60').status for server in (first, second)] == [200, 200]
