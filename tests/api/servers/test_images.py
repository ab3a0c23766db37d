"""Images created from servers: createImage and createBackup."""

import json

import pytest

from tests.api.servers.conftest import IMAGE, message

BOB = 'bob:project:member,reader'


@pytest.fixture
def server(made, settle):
    """A running server."""
    (server,) = made()
    settle()
    return server.uuid


@pytest.fixture
def act(api, server):
    """act('createImage', '2.45', name='image')"""

    def post(action, version='2.104', as_=BOB, client=api, **kwargs):
        return client.post(f'/servers/{server}/action', {action: kwargs}, version, as_=as_)

    return post


@pytest.fixture
def back_up(act):
    """back_up(2): creates a `daily` backup with a rotation of two; returns the response."""

    def post(rotation, version='2.104', kind='daily', name='backup', **more):
        return act('createBackup', version, name=name, backup_type=kind, rotation=rotation, **more)

    return post


@pytest.fixture
def images(world):
    """images(): the names of the images that bob sees, newest first."""
    return lambda: [image.name for image in world.images.list(world.bob) if image.name != 'image']


# ------------------------------------------------------------------ both actions


@pytest.mark.parametrize(
    ('facts', 'name'),
    [
        ({'createImage': {'name': 'made'}}, 'servers/v2.45/server-action-create-image-resp.json'),
        (
            {'createBackup': {'name': 'made', 'backup_type': 'daily', 'rotation': 1}},
            'os-create-backup/v2.45/create-backup-resp.json',
        ),
    ],
)
def test_the_id_is_in_the_body_from_2_45_on(api, world, server, settle, sample, shape, facts, name):
    answer = api.post(f'/servers/{server}/action', facts, '2.45', as_=BOB)
    assert answer.status == 202 and shape(answer.json) == shape(sample(name))
    assert 'Location' not in answer.headers
    settle()
    image = world.images.get(world.bob, answer.json['image_id'])
    assert (image.name, image.status, image.properties['instance_uuid']) == ('made', 'active', server)


def test_the_location_until_2_44(act, back_up):
    answer = act('createImage', '2.44', name='image')
    assert answer.status == 202 and answer.text == '' and answer.headers['Content-Type'] == 'text/html; charset=UTF-8'
    assert answer.headers['Location'].startswith('http://localhost/image/images/')


def test_the_location_of_a_backup_until_2_44(back_up):
    answer = back_up(1, '2.44')
    assert answer.status == 202 and answer.text == ''
    assert answer.headers['Location'].startswith('http://localhost/v2.1/images/')


@pytest.fixture
def behind_a_proxy(conf):
    conf.set_override('compute_link_prefix', 'https://cloud.example.org/compute/', 'api')


def test_the_location_of_a_backup_is_below_the_configured_prefix(behind_a_proxy, back_up):
    location = back_up(1, '2.44').headers['Location']
    assert location.startswith('https://cloud.example.org/compute/v2.1/images/')


def test_where_images_are_can_be_configured(conf, act):
    conf.set_override('glance_link_prefix', 'https://images.example.org', 'api')
    assert act('createImage', '2.1', name='image').headers['Location'].startswith('https://images.example.org/images/')


def test_metadata_is_kept_with_the_image(world, act, settle):
    image_id = act('createImage', name='image', metadata={'key': 'value'}).json['image_id']
    settle()
    properties = world.images.get(world.bob, image_id).properties
    assert properties['key'] == 'value' and properties['image_type'] == 'snapshot'


def test_a_shelved_server_has_an_image_like_its_own(world, api, create, settle):
    base = world.images.create(world.bob, 'base', disk_format='qcow2', container_format='bare', min_ram=32)
    world.images.upload(world.bob, base.id, iter([b'data']))
    server = create(imageRef=base.id).json['server']['id']
    settle()
    assert api.post(f'/servers/{server}/action', {'shelve': None}, as_=BOB).status == 202
    settle()
    (image,) = [each for each in world.images.list(world.bob) if each.name == 'server-shelved']
    assert (image.disk_format, image.min_ram, image.min_disk) == ('qcow2', 32, 1)


def test_an_image_tells_of_the_server_and_of_who_made_it(world, api, made, settle):
    world.images.update(world.bob, IMAGE, properties={'hw_vif_model': 'virtio', 'description': 'a disk'})
    server = made()[-1].uuid
    settle()
    body = {'createImage': {'name': 'made', 'metadata': {'key': 'value'}}}
    answer = api.post(f'/servers/{server}/action', body, '2.45', as_='admin:project:admin')
    assert world.images.get(world.bob, answer.json['image_id']).properties == {
        'hw_vif_model': 'virtio',
        'base_image_ref': IMAGE,
        'owner_user_name': 'bob',
        'boot_roles': 'member,reader',
        'image_type': 'snapshot',
        'image_location': 'snapshot',
        'image_state': 'available',
        'instance_uuid': server,
        'user_id': 'admin',
        'owner_id': 'project',
        'key': 'value',
    }


@pytest.fixture
def few_items(conf):
    conf.set_override('metadata_items', 1, 'quota')


@pytest.mark.parametrize(('version', 'status'), [('2.38', 403), ('2.39', 202)])
@pytest.mark.parametrize('name', ['createImage', 'createBackup'])
def test_the_quota_of_metadata_until_2_38(few_items, act, version, status, name):
    facts = {'backup_type': 'daily', 'rotation': 1} if name == 'createBackup' else {}
    answer = act(name, version, name='image', metadata={'one': '1', 'two': '2'}, **facts)
    assert answer.status == status, answer
    assert status == 202 or message(answer) == (403, 'Image metadata limit exceeded')


def test_more_properties_than_the_image_service_keeps(act, server, servers):
    answer = act('createImage', name='image', metadata={f'key{number}': 'value' for number in range(129)})
    assert message(answer) == (403, 'An image may have at most 128 properties.')
    assert servers.get(server).task_state is None


@pytest.mark.parametrize('name', ['createImage', 'shelve'])
def test_more_images_than_a_project_may_have(world, act, server, servers, name, monkeypatch):
    monkeypatch.setattr(world.images, 'max_images', 1)
    answer = act(name, **({'name': 'image'} if name == 'createImage' else {}))
    assert message(answer) == (403, 'A project may have at most 1 images.')
    assert servers.get(server).task_state is None


def test_a_lock_does_not_matter(servers, server, act, back_up, settle):
    servers.change(server, locked_by='owner')
    assert act('createImage', name='image').status == 202
    settle()
    assert back_up(1).status == 202


def test_states_in_which_a_server_is_not_whole(servers, server, act, back_up, images):
    for state in ('error', 'building', 'rescued', 'resized'):
        servers.change(server, vm_state=state)
        for answer, name in ((act('createImage', name='x'), 'createImage'), (back_up(1), 'createBackup')):
            assert message(answer) == (409, f"Cannot '{name}' instance {server} while it is in vm_state {state}")
    assert images() == []


def test_names_of_images_have_no_spaces_around_them(legacy, act):
    for client in (legacy, None):
        answer = act('createImage', None, name=' image ', **({'client': client} if client else {}))
        assert answer.status == 400 and 'Can not start or end with whitespace' in answer.text


def test_names_of_backups_are_stripped_on_v2(legacy, act, back_up, images):
    answer = act('createBackup', None, client=legacy, name=' backup ', backup_type='daily', rotation='1', other=1)
    assert answer.status == 202 and images() == ['backup']
    assert back_up(1, name=' backup ').status == 400


def test_a_snapshot_that_fails_leaves_no_image(conf, servers, server, act, back_up, settle, images):
    conf.set_override('fail', ['snapshot'], 'simulated')
    assert act('createImage', name='image').status == 202
    settle()
    assert back_up(1).status == 202
    settle()
    assert images() == [] and (servers.get(server).vm_state, servers.get(server).task_state) == ('active', None)


# ------------------------------------------------------------------ backups


def test_what_a_backup_needs(act):
    needed = {'name': 'backup', 'backup_type': 'daily', 'rotation': 1}
    for field in needed:
        facts = {name: value for name, value in needed.items() if name != field}
        assert f"'{field}' is a required property" in act('createBackup', **facts).text


def test_rotations_that_are_no_numbers(back_up):
    for rotation in (-1, 'x', 1.5, None):
        answer = back_up(rotation)
        assert answer.status == 400 and 'rotation' in answer.text
    assert "'' should be non-empty" in back_up('').text


def test_more_backups_than_there_can_be_are_kept(back_up, settle, images):
    for rotation in (2**70, '9' * 400):
        assert back_up(rotation).status == 202
        settle()
    assert images() == ['backup', 'backup']


def test_only_so_many_backups_of_a_type_are_kept(back_up, settle, images):
    for number in range(4):
        back_up(2, name=f'daily{number}')
        settle()
    back_up(1, name='weekly', kind='weekly')
    settle()
    assert images() == ['weekly', 'daily3', 'daily2']


def test_a_backup_of_which_none_is_kept(back_up, settle, images):
    back_up(1, name='old')
    settle()
    answer = back_up(0, '2.44')
    assert answer.status == 202 and 'Location' not in answer.headers
    settle()
    assert 'image_id' in back_up(0, '2.45').json
    settle()
    assert images() == []


def test_other_images_with_the_properties_of_a_backup_stay(world, server, back_up, settle, images):
    """Others cannot displace a project's backups with images of their own."""
    forged = {'instance_uuid': server, 'backup_type': 'daily', 'image_type': 'backup'}
    mallory = world.admin.__class__(user_id='mallory', project_id='other', roles=frozenset({'member', 'reader'}))
    back_up(1, name='mine')
    settle()
    theirs = world.images.create(mallory, 'theirs', properties=forged)
    back_up(2, name='mine too')
    settle()
    assert images() == ['mine too', 'mine'] and world.images.get(mallory, theirs.id)


def test_protected_backups_stay(world, back_up, settle, images, servers, server):
    first = back_up(1, name='protected').json['image_id']
    settle()
    world.images.update(world.bob, first, protected=True)
    back_up(1, name='second')
    settle()
    back_up(1, name='third')
    settle()
    assert images() == ['third', 'protected'] and servers.get(server).vm_state == 'active'


def test_who_may_back_up(back_up, act):
    facts = {'name': 'backup', 'backup_type': 'daily', 'rotation': 1}
    assert act('createBackup', as_='carol:project:reader', **facts).status == 403
    assert act('createBackup', as_='carol:other', **facts).status == 404


# ------------------------------------------------------------------ servers on volumes


@pytest.fixture
def on_volume(world, made, settle):
    """A server booted from a volume."""
    disk = {
        'boot_index': 0,
        'uuid': world.volume(image_id=IMAGE),
        'source_type': 'volume',
        'destination_type': 'volume',
    }
    server = made(imageRef=None, block_device_mapping_v2=[disk])[-1]
    settle()
    return server.uuid


def test_volumes_are_not_backed_up(api, on_volume):
    body = {'createBackup': {'name': 'backup', 'backup_type': 'daily', 'rotation': 1}}
    answer = api.post(f'/servers/{on_volume}/action', body, '2.104', as_=BOB)
    assert message(answer) == (400, 'Backup is not supported for volume-backed instances.')


def test_an_image_of_a_server_on_volumes_is_made_of_snapshots(world, api, on_volume):
    body = {'createImage': {'name': 'of volume'}}
    answer = api.post(f'/servers/{on_volume}/action', body, '2.45', as_=BOB)
    image = world.images.get(world.bob, answer.json['image_id'])
    (disk,) = json.loads(image.properties['block_device_mapping'])
    (snapshot,) = world.volumes.list_snapshots(world.bob)
    assert (disk['source_type'], disk['snapshot_id'], disk['boot_index']) == ('snapshot', snapshot.id, 0)
    assert image.status == 'active' and image.size == 0
    assert image.properties['boot_roles'] == 'member,reader' and 'instance_uuid' not in image.properties
    shown = api.get(f'/images/{image.id}', as_=BOB).json['image']
    assert shown['metadata']['block_device_mapping'] == [disk] and 'server' not in shown


def test_the_snapshots_of_an_image_are_called_after_it_however_long_its_name_is(world, api, on_volume):
    body = {'createImage': {'name': 'x' * 255}}
    assert api.post(f'/servers/{on_volume}/action', body, '2.45', as_=BOB).status == 202
    (snapshot,) = world.volumes.list_snapshots(world.bob)
    assert snapshot.name == 'snapshot for ' + 'x' * 242


@pytest.fixture
def no_images_of_volumes(conf, tmp_path):
    rules = tmp_path / 'policy.yaml'
    rules.write_text("'os_compute_api:servers:create_image:allow_volume_backed': '!'")
    conf.set_override('policy_file', str(rules), 'oslo_policy')


def test_more_properties_for_a_server_on_volumes_than_the_image_service_keeps(world, api, on_volume, servers):
    body = {'createImage': {'name': 'image', 'metadata': {f'key{number}': 'value' for number in range(129)}}}
    answer = api.post(f'/servers/{on_volume}/action', body, '2.104', as_=BOB)
    assert message(answer) == (403, 'An image may have at most 128 properties.')
    assert servers.get(on_volume).task_state is None and world.volumes.list_snapshots(world.bob) == []


def test_an_image_of_a_server_on_volumes_has_a_rule_of_its_own(no_images_of_volumes, api, act, on_volume):
    answer = api.post(f'/servers/{on_volume}/action', {'createImage': {'name': 'x'}}, '2.45', as_=BOB)
    assert answer.status == 403 and 'allow_volume_backed' in answer.text
    assert act('createImage', name='image').status == 202
