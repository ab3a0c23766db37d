"""Creating servers: requests, results, and refusals."""

import base64
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from computeapi.compute.servers.creation import builder, rows
from computeapi.db.tables.servers import server_actions, tasks
from tests.api.servers.conftest import BOB, IMAGE, NETWORK, body, message

ADMIN = 'admin:project'
NIL = '00000000-0000-0000-0000-000000000000'


def work(world):
    """The tasks of workers, in order."""
    statement = sa.select(tasks.c.kind, tasks.c.server_id, tasks.c.arguments).order_by(tasks.c.id)
    with world.store.read() as connection:
        return list(connection.execute(statement))


# ------------------------------------------------------------------ results


def test_a_server_is_written_down_for_the_workers(create, made, world):
    answer = create()
    server = answer.json['server']
    assert (answer.status, answer.headers['Location']) == (202, f'http://localhost/v2.1/servers/{server["id"]}')
    assert server.keys() == {'id', 'links', 'adminPass', 'OS-DCF:diskConfig', 'security_groups'}
    assert server['security_groups'] == [{'name': 'default'}] and server['OS-DCF:diskConfig'] == 'MANUAL'
    row = made()[0]
    assert (row.uuid, row.project_id, row.user_id) == (server['id'], 'project', 'bob')
    assert (row.vm_state, row.task_state, row.power_state, row.host) == ('building', 'scheduling', 0, None)
    assert (row.image_id, row.flavor['flavorid'], row.network_info) == (IMAGE, '1', [])
    kind, server_id, arguments = work(world)[0]
    assert (kind, server_id) == ('build', row.uuid)
    assert arguments == {
        'networks': [{'network_id': NETWORK, 'port_id': None, 'fixed_ip': None, 'tag': None, 'is_outside': False}],
        'security_groups': [],
        'external_networks': False,
        'host': None,
        'node': None,
        'forced_host': False,
    }
    with world.store.read() as connection:
        action = connection.execute(sa.select(server_actions).order_by(server_actions.c.id)).first()
    assert (action.server_id, action.action, action.user_id) == (row.uuid, 'create', 'bob')


def test_what_was_asked_is_kept(made, api):
    api.post('/os-keypairs', {'keypair': {'name': 'key', 'public_key': PUBLIC_KEY}}, as_=BOB)
    (server,) = made(
        '2.94',
        description='what it is for',
        hostname='web.example.org',
        key_name='key',
        user_data='aGVsbG8=',
        config_drive='yes',
        metadata={'role': 'web'},
        tags=['b', 'a', 'a'],
        trusted_image_certificates=['certificate'],
        accessIPv4='192.0.2.1',
        accessIPv6='2001:DB8:0::1',
        availability_zone='nova',
        **{'OS-DCF:diskConfig': 'AUTO'},
    )
    assert (server.description, server.hostname) == ('what it is for', 'web.example.org')
    assert (server.key_name, server.public_key) == ('key', PUBLIC_KEY)
    assert (server.user_data, server.config_drive, server.disk_config) == ('aGVsbG8=', 'True', 'AUTO')
    assert (server.metadata, server.tags) == ({'role': 'web'}, ['a', 'b'])
    assert server.trusted_image_certificates == ['certificate']
    assert (server.access_ip_v4, server.access_ip_v6) == ('192.0.2.1', '2001:db8::1')
    assert server.pinned_availability_zone == 'nova'


PUBLIC_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGy0MJgpVcLSDb7uyZ1Ykn5rRw3Jbx2hF4vPrdh2VbGX bob@example.org'


def test_passwords_are_told_and_not_kept(create, world):
    given = create(adminPass='a secret').json['server']['adminPass']
    assert given == 'a secret' and create(adminPass='').json['server']['adminPass'] == ''
    generated = create().json['server']['adminPass']
    assert re.fullmatch(r'(?=.*\d)(?=.*[a-z])(?=.*[A-Z])\w{12}', generated)
    with world.store.read() as connection:
        for table in ('servers', 'tasks', 'server_actions'):
            stored = repr(connection.exec_driver_sql(f'SELECT * FROM {table}').all())
            assert 'a secret' not in stored and generated not in stored


def test_the_description_was_the_name_once(made):
    assert made('2.18')[-1].description == 'server'
    assert made('2.19')[-1].description is None


def test_several_are_numbered(made):
    found = made(min_count='2', max_count=3, name='web')
    assert [(server.name, server.hostname, server.launch_index) for server in found] == [
        ('web-1', 'web-1', 0),
        ('web-2', 'web-2', 1),
        ('web-3', 'web-3', 2),
    ]
    assert len({server.reservation_id for server in found}) == 1


@pytest.mark.parametrize('version', ['2.1', '2.104'])
def test_a_reservation_instead_of_a_server(create, version):
    answer = create(version, return_reservation_id='True', min_count=2)
    assert answer.status == 202 and 'Location' not in answer.headers
    assert answer.json.keys() == {'reservation_id'} and answer.json['reservation_id'].startswith('r-')


@pytest.mark.parametrize(
    ('name', 'hostname'),
    [
        ('Web Server_1.example', 'web-server-1-example'),
        ('-é€x.', 'x'),
        ('漢字', f'Server-{NIL}'),
        ('x' * 80, 'x' * 63),
        ('x' * 62 + ' y', 'x' * 62),
    ],
)
def test_host_names_follow_from_names(name, hostname):
    assert rows.hostname(name, NIL) == hostname


def test_what_was_read_from_a_file_has_its_end(create, made):
    (server,) = made('2.19', name='web\n', description='what it is for\n')
    assert (server.name, server.description) == ('web', 'what it is for\n')
    assert {create(name=name).status for name in ('\n', 'web\n\n', ' \n', 'a\nb')} == {400}


def test_v2_strips_the_name_and_drops_what_it_does_not_know(legacy, world):
    answer = legacy.post('/servers', body(name=' server ', tags=['a'], unknown=1) | {'other': 1}, as_=BOB)
    assert answer.status == 202, answer
    assert answer.headers['Location'].startswith('http://localhost/v2/servers/')


@pytest.mark.parametrize('metadata', [{'': 'v'}, {'k' * 256: 'v'}, {'?': 1}, {'?': 'v' * 256}])
def test_v2_takes_keys_of_all_characters_but_no_junk(legacy, world, metadata):
    assert legacy.post('/servers', body(metadata={'?': 'v'}), as_=BOB).status == 202
    assert legacy.post('/servers', body(metadata=metadata), as_=BOB).status == 400


# ------------------------------------------------------------------ samples


def sample_request(sample, name):
    """A recorded request, with the resources that exist here."""
    request = sample(name)
    for key in ('availability_zone', 'host', 'hypervisor_hostname'):
        if key in request['server']:
            request['server'][key] = 'nova' if key == 'availability_zone' else 'compute1'
    for hints in [value for key, value in request.items() if 'hints' in key]:
        hints.pop('group', None)
    return request


@pytest.mark.parametrize('version', ['2.1', '2.19', '2.32', '2.37', '2.42', '2.57', '2.63', '2.66', '2.67', '2.69'])
def test_they_look_like_the_samples(api, world, sample, shape, version):
    prepare(world)
    folder = 'servers' if version == '2.1' else f'servers/v{version}'
    answer = api.post('/servers', sample_request(sample, f'{folder}/server-create-req.json'), version, as_=ADMIN)
    assert answer.status == 202, answer
    assert shape(answer.json) == shape(sample(f'{folder}/server-create-resp.json'))


@pytest.mark.parametrize('version', ['2.71', '2.73', '2.100'])
def test_newer_samples(api, world, sample, shape, version):
    prepare(world)
    request = sample_request(sample, f'servers/v{version}/server-create-req.json')
    answer = api.post('/servers', request, version, as_=ADMIN)
    assert answer.status == 202, answer
    assert shape(answer.json) == shape(sample(f'servers/v{version}/server-create-resp.json'))


@pytest.mark.parametrize('kind', ['host-and-node', 'only-host', 'only-node'])
def test_samples_with_a_host(api, world, sample, kind):
    prepare(world)
    request = sample_request(sample, f'servers/v2.74/server-create-req-with-{kind}.json')
    assert api.post('/servers', request, '2.74', as_=ADMIN).status == 202
    (_, _, arguments), *_ = work(world)
    assert (arguments['host'], arguments['node']) == (
        request['server'].get('host'),
        request['server'].get('hypervisor_hostname'),
    )
    assert not arguments['forced_host']


@pytest.mark.parametrize('kind', ['multiple-create-no-resv', 'multiple-create'])
def test_samples_of_several(api, world, sample, shape, kind):
    answer = api.post('/servers', sample(f'os-multiple-create/{kind}-post-req.json'), as_=ADMIN)
    assert answer.status == 202, answer
    assert shape(answer.json) == shape(sample(f'os-multiple-create/{kind}-post-resp.json'))
    assert len(work(world)) == 3


def prepare(world):
    world.flavor('6', memory_mb=128)
    world.volumes.types.create('lvm-1')


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ('facts', 'field'),
    [
        ({'name': ''}, 'name'),
        ({'name': None}, "'name' is a required property"),
        ({'name': 'x' * 256}, 'name'),
        ({'flavorRef': None}, "'flavorRef' is a required property"),
        ({'flavorRef': ''}, 'flavorRef'),
        ({'imageRef': 'http://example.org/images/' + NIL}, 'imageRef'),
        ({'networks': 'none'}, 'networks'),
        ({'networks': [{'uuid': 'x'}]}, 'uuid'),
        ({'networks': [{'uuid': NETWORK, 'tag': 'nic'}]}, 'tag'),
        ({'security_groups': ['default']}, '0'),
        ({'min_count': 0}, 'min_count'),
        ({'min_count': 'x'}, 'min_count'),
        ({'max_count': '9' * 5000}, 'max_count'),
        ({'config_drive': 'maybe'}, 'config_drive'),
        ({'user_data': 'not base64!'}, 'user_data'),
        ({'user_data': 'é'}, 'user_data'),
        ({'personality': [{'path': '/x', 'contents': 'aGk=é'}]}, 'contents'),
        ({'user_data': 'A' * 65536}, 'user_data'),
        ({'metadata': {'k': 1}}, 'k'),
        ({'metadata': {'k' * 256: 'v'}}, 'metadata'),
        ({'personality': [{'path': '/x'}]}, 'contents'),
        ({'accessIPv4': '::1'}, 'accessIPv4'),
        ({'accessIPv6': '1.2.3.4'}, 'accessIPv6'),
        ({'OS-DCF:diskConfig': 'auto'}, 'OS-DCF:diskConfig'),
        ({'availability_zone': ''}, 'availability_zone'),
        ({'return_reservation_id': 'x'}, 'return_reservation_id'),
        ({'hostname': 'web'}, 'hostname'),
        ({'unknown': 1}, 'unknown'),
    ],
)
def test_a_bad_field_is_named(create, world, facts, field):
    status, text = message(create(**facts))
    assert (status, field in text) == (400, True), text
    assert work(world) == []


@pytest.mark.parametrize(
    ('facts', 'since', 'until'),
    [
        ({'description': 'd'}, '2.19', None),
        ({'networks': [{'uuid': NETWORK, 'tag': 'nic'}]}, '2.32', '2.37'),
        ({'networks': [{'uuid': NETWORK, 'tag': 'nic'}]}, '2.42', None),
        ({'networks': 'none'}, '2.37', None),
        ({'tags': ['a']}, '2.52', None),
        ({'personality': [{'path': '/x', 'contents': ''}]}, '2.1', '2.57'),
        ({'trusted_image_certificates': ['c']}, '2.63', None),
        ({'host': 'compute1'}, '2.74', None),
        ({'hypervisor_hostname': 'compute1'}, '2.74', None),
        ({'hostname': 'web'}, '2.90', None),
        ({'hostname': 'web.example.org'}, '2.94', None),
    ],
)
def test_fields_come_and_go(create, facts, since, until):
    def status(version):
        return create(version, as_=ADMIN, **facts).status

    before, last = int(since[2:]) - 1, until and f'2.{int(until[2:]) - 1}'
    assert status(since) == 202 and (before == 0 or status(f'2.{before}') == 400)
    if until:
        assert (status(last), status(until)) == (202, 400)


def test_hints(made, create):
    hints = {'same_host': [NIL], 'different_host': NIL, 'build_near_host_ip': '192.0.2.1', 'cidr': '/24', 'own': 'x'}
    (server,) = made(hints=hints)
    assert server.scheduler_hints['different_host'] == [NIL] and server.scheduler_hints['own'] == ['x']
    for wrong in ({'group': 'x'}, {'same_host': ['x']}, {'build_near_host_ip': 'x'}, {'cidr': '24'}, 'x'):
        assert create(hints=wrong).status == 400


def test_server_groups(made, create, api):
    group = {'server_group': {'name': 'g', 'policies': ['affinity']}}
    group_id = api.post('/os-server-groups', group, as_=BOB).json['server_group']['id']
    assert made(hints={'group': group_id})[0].server_group_id == group_id
    assert {server.server_group_id for server in made(hints={'group': [group_id]})} == {group_id}
    assert create(hints={'group': []}).status == 202
    unknown = f'Instance group {NIL} could not be found.'
    assert message(create(hints={'group': NIL})) == (400, unknown)
    assert create(hints={'group': group_id}, as_='alice:other', networks=[]).status == 400
    api.put('/os-quota-sets/project', {'quota_set': {'server_group_members': 2}})
    full = 'Quota exceeded, too many servers in group'
    assert message(create(hints={'group': group_id}, min_count=2)) == (403, full)


@pytest.mark.parametrize(
    ('facts', 'status', 'text'),
    [
        ({'flavorRef': 'x'}, 400, 'Flavor x could not be found.'),
        ({'flavorRef': 'https://example.org/flavors/1'}, 202, None),
        ({'imageRef': NIL}, 400, 'Can not find requested image'),
        ({'imageRef': None}, 400, 'Missing imageRef attribute'),
        ({'imageRef': ''}, 400, 'Missing imageRef attribute'),
        ({'key_name': 'x'}, 400, 'Invalid key_name provided.'),
        ({'availability_zone': 'x'}, 400, 'The requested availability zone is not available'),
        ({'availability_zone': 'internal'}, 400, 'The requested availability zone is not available'),
        ({'availability_zone': 'a:b:c:d'}, 400, 'Invalid input received: Unable to parse availability_zone'),
        ({'min_count': 3, 'max_count': 2}, 400, 'min_count must be <= max_count'),
        (
            {'min_count': 2, 'name': 'x' * 254},
            400,
            'Invalid input for field/attribute name. With its number it has more than 255 characters.',
        ),
        ({'metadata': {f'k{n}': 'v' for n in range(129)}}, 403, 'Maximum number of metadata items exceeds 128'),
        (
            {'personality': [{'path': f'/{n}', 'contents': ''} for n in range(6)]},
            403,
            'Personality file limit exceeded',
        ),
        ({'security_groups': [{'name': 'x'}]}, 400, "Unable to find security_group with name or id 'x'"),
        ({'security_groups': [{'name': 'default'}, {'name': 'default'}]}, 202, None),
    ],
)
def test_what_is_not_there(create, facts, status, text):
    answer = create(**facts)
    assert answer.status == status and (text is None or message(answer)[1] == text), answer


def test_several_cannot_have_one_host_name(create):
    text = 'Unable to allocate a single hostname to multiple instances'
    assert message(create('2.90', hostname='web', max_count=2)) == (400, text)


def test_images_that_do_not_fit(create, world):
    world.flavor('tiny', memory_mb=32, root_gb=0)
    cases = {
        world.image(active=False): 'is not active.',
        world.image(min_ram=65): "Flavor's memory is too small for requested image.",
        world.image(min_disk=2): 'Flavor disk is 1073741824 bytes, minimum size is 2147483648 bytes.',
        world.image(properties={'img_config_drive': 'x'}): "Image's config drive option 'x' is invalid",
    }
    for image_id, text in cases.items():
        status, found = message(create(imageRef=image_id))
        assert (status, text in found) == (400, True), found
    zero = 'Only volume-backed servers are allowed for flavors with zero disk.'
    assert message(create(flavorRef='tiny')) == (403, zero)
    assert create(flavorRef='tiny', as_=ADMIN).status == 202


def test_other_projects_things_are_not_there(create, world):
    world.flavor('theirs', is_public=False)
    assert create(flavorRef='theirs').status == 400
    assert message(create(as_='alice:other', networks=[])) == (400, 'Can not find requested image')


def test_images_say_how_disks_and_drives_are(made, create, world):
    image_id = world.image(
        properties={'auto_disk_config': 'True', 'root_device_name': '/dev/sda', 'kernel_id': NIL, 'os_distro': 'x'}
    )
    (server,) = made(imageRef=image_id)
    assert (server.disk_config, server.root_device_name, server.kernel_id) == ('AUTO', '/dev/sda', NIL)
    assert server.image_properties['os_distro'] == 'x'
    disabled = world.image(properties={'auto_disk_config': 'disabled'})
    assert create(imageRef=disabled, **{'OS-DCF:diskConfig': 'AUTO'}).status == 400


# ------------------------------------------------------------------ zones and hosts


@pytest.mark.parametrize(
    ('zone', 'pinned', 'host', 'node'),
    [
        ('nova', 'nova', None, None),
        ('nova:compute1', 'nova', 'compute1', None),
        ('nova:compute1:node', 'nova', 'compute1', 'node'),
        ('nova::node', 'nova', None, 'node'),
        (':compute1', None, 'compute1', None),
        ('x:compute1', None, 'compute1', None),
        ('x:anything', None, 'anything', None),
        ('x::node', None, None, 'node'),
    ],
)
def test_zones(made, world, zone, pinned, host, node):
    (server,) = made(as_=ADMIN, availability_zone=zone)
    assert server.pinned_availability_zone == pinned
    assert server.availability_zone == (zone.split(':')[0] or None)
    ((_, _, arguments),) = work(world)
    assert (arguments['host'], arguments['node']) == (host, node)
    assert arguments['forced_host'] == bool(host or node)


def test_a_host_must_be_there(create):
    for facts in ({'host': 'x'}, {'hypervisor_hostname': 'x'}, {'host': 'compute1', 'hypervisor_hostname': 'x'}):
        status, text = message(create('2.74', as_=ADMIN, **facts))
        assert status == 400 and re.fullmatch('Compute host .* could not be found.', text)
    both = create('2.74', as_=ADMIN, availability_zone='nova:compute1', host='compute1')
    assert both.status == 400 and 'mutually exclusive' in both.text


@pytest.mark.parametrize(
    ('version', 'facts', 'rule'),
    [
        ('2.1', {'availability_zone': 'nova:x'}, 'os_compute_api:servers:create:forced_host'),
        ('2.1', {'availability_zone': 'nova::x'}, 'os_compute_api:servers:create:forced_host'),
        ('2.74', {'host': 'compute1'}, 'compute:servers:create:requested_destination'),
        ('2.74', {'hypervisor_hostname': 'x'}, 'compute:servers:create:requested_destination'),
    ],
)
def test_hosts_are_chosen_by_administrators(create, version, facts, rule):
    assert message(create(version, **facts)) == (403, f"Policy doesn't allow {rule} to be performed.")


def test_readers_create_nothing(create):
    answer = create(as_='bob:project:reader')
    assert message(answer) == (403, "Policy doesn't allow os_compute_api:servers:create to be performed.")


# ------------------------------------------------------------------ quotas


def test_quotas(create, api):
    api.put('/os-quota-sets/project', {'quota_set': {'instances': 2, 'cores': 3}})
    assert create(min_count=2, return_reservation_id=True).status == 202
    text = 'Quota exceeded for cores, instances: Requested 2, 2, but already used 2, 2 of 3, 2 cores, instances'
    assert message(create(min_count=2)) == (403, text)
    text = 'Quota exceeded for cores, instances: Requested 9, 2-9, but already used 2, 2 of 3, 2 cores, instances'
    assert message(create(min_count=2, max_count=9)) == (403, text)


def test_as_many_as_fit(made, api):
    api.put('/os-quota-sets/project', {'quota_set': {'instances': 3}})
    assert len(made(min_count=1, max_count=5)) == 3


def test_one_request_does_not_make_any_number_of_servers(create, made, api, monkeypatch):
    api.put('/os-quota-sets/project', {'quota_set': {'instances': -1, 'cores': -1, 'ram': -1}})
    monkeypatch.setattr(builder, 'MAX_SERVERS', 3)
    assert message(create(min_count=4)) == (400, 'min_count must be <= 3')
    assert len(made(min_count=3, max_count=5)) == 3


@pytest.mark.several_writers
def test_creates_at_once_end_with_the_quota_used(create, api):
    api.put('/os-quota-sets/project', {'quota_set': {'instances': -1, 'cores': 10, 'ram': -1}})
    with ThreadPoolExecutor(20) as pool:
        statuses = list(pool.map(lambda _: create().status, range(20)))
    assert sorted(statuses) == [202] * 10 + [403] * 10
    used = api.get('/os-quota-sets/project/detail').json['quota_set']['cores']
    assert (used['in_use'], used['limit']) == (10, 10)


def test_files_are_bounded(create, api):
    api.put('/os-quota-sets/project', {'quota_set': {'injected_file_content_bytes': 8, 'injected_file_path_bytes': 4}})
    contents = base64.b64encode(b'123456789').decode()
    assert create(personality=[{'path': '/x', 'contents': 'MTIz'}]).status == 202
    assert 'content' in message(create(personality=[{'path': '/x', 'contents': contents}]))[1]
    assert 'path' in message(create(personality=[{'path': '/long', 'contents': ''}]))[1]
