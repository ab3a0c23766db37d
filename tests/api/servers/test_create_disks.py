"""The disks of new servers: from either form of the request, from the image, and from the flavor."""

import json

import pytest

from computeapi.db import block_devices
from tests.api.servers.conftest import IMAGE, message

NIL = '00000000-0000-0000-0000-000000000000'
ROOT = {'boot_index': 0, 'uuid': IMAGE, 'source_type': 'image', 'destination_type': 'local'}
NEW, OLD = 'block_device_mapping_v2', 'block_device_mapping'


def volume(volume_id, **more):
    return {'boot_index': 0, 'uuid': volume_id, 'source_type': 'volume', 'destination_type': 'volume'} | more


@pytest.fixture
def disks(create, world):
    """disks(version, ...): the disks of a new server, in order."""

    def made(*version, **kwargs):
        answer = create(*version, **kwargs)
        assert answer.status == 202, answer
        with world.store.read() as connection:
            return block_devices.of_servers(connection, [answer.json['server']['id']])

    return made


def facts(device, *names):
    return tuple(getattr(device, name) for name in names)


def status_of(world, volume_id):
    return world.volumes.get(world.bob, volume_id).status


# ------------------------------------------------------------------ results


def test_an_image_is_copied_to_the_host(disks):
    (root,) = disks()
    assert facts(root, 'source_type', 'destination_type', 'boot_index', 'image_id') == ('image', 'local', 0, IMAGE)


def test_flavors_give_ephemeral_disks_and_swap(disks, world):
    world.flavor('2', ephemeral_gb=5, swap=256)
    _, ephemeral, swap = disks(flavorRef='2')
    assert facts(ephemeral, 'source_type', 'volume_size', 'guest_format') == ('blank', 5, None)
    assert facts(swap, 'source_type', 'volume_size', 'guest_format') == ('blank', 256, 'swap')
    own = {'source_type': 'blank', 'destination_type': 'local', 'volume_size': 2, 'guest_format': 'ext4'}
    found = disks(flavorRef='2', **{NEW: [ROOT, own]})
    assert [device.volume_size for device in found] == [None, 2, 256]
    unsized = {key: value for key, value in own.items() if key != 'volume_size'}
    assert [device.volume_size for device in disks(flavorRef='2', **{NEW: [ROOT, unsized]})] == [None, 5, 256]


@pytest.mark.parametrize('networks', ['none', 'auto'])
def test_disks_have_names_whoever_made_them(disks, world, networks, settle, store):
    """From the start if all disks are local; a process of an older release left naming to the boot."""
    world.flavor('2', ephemeral_gb=5, swap=256)
    named = ['/dev/vda', '/dev/vdb', '/dev/vdc']
    made = disks('2.37', flavorRef='2', networks=networks)
    assert [device.device_name for device in made] == named
    for device in made:
        store.change(block_devices.update, device.uuid, {'device_name': None})
    settle()
    found = store.query(block_devices.of_servers, [made[0].server_id])
    assert [device.device_name for device in found] == named


@pytest.fixture
def with_volumes(disks, settle, world):
    """with_volumes(3): the disks of a new server with so many volumes besides the image, after the boot."""

    def made(count):
        world.volumes.quotas.set_limits('project', {'volumes': count})
        first = disks(**{NEW: [ROOT, *(volume(world.volume(), boot_index=-1) for _ in range(count))]})
        settle()
        with world.store.read() as connection:
            return block_devices.of_servers(connection, [first[0].server_id])

    return made


def test_any_number_of_disks_have_names(with_volumes):
    assert [device.device_name for device in with_volumes(28)][-4:] == [f'/dev/vd{x}' for x in ('z', 'aa', 'ab', 'ac')]


@pytest.mark.parametrize(('limit', 'status'), [(2, 'ERROR'), (3, 'ACTIVE')])
def test_the_number_of_disks_may_be_limited(with_volumes, api, world, limit, status):
    """The host refuses them; the volumes are given back."""
    world.service.conf.set_override('max_disk_devices_to_attach', limit, 'compute')
    _, first, second = with_volumes(2)
    shown = api.get(f'/servers/{first.server_id}').json['server']
    assert shown['status'] == status
    if status == 'ERROR':
        text = f'The maximum allowed number of disk devices ({limit}) to attach to a single instance has been exceeded.'
        assert shown['fault']['message'] == f'Build of instance {first.server_id} aborted: {text}'
        assert {status_of(world, each.volume_id) for each in (first, second)} == {'available'}


def test_no_limit_makes_servers_impossible(world):
    with pytest.raises(ValueError, match='-1, or at least 1'):
        world.service.conf.set_override('max_disk_devices_to_attach', 0, 'compute')


def test_a_volume_is_booted_from_and_reserved(disks, world):
    volume_id = world.volume(3, image_id=IMAGE)
    (root,) = disks(imageRef=None, **{NEW: [volume(volume_id, delete_on_termination='True', device_name='vda')]})
    assert facts(root, 'volume_id', 'volume_size', 'device_name') == (volume_id, 3, '/dev/vda')
    assert root.delete_on_termination is True and root.attachment_id is not None
    assert status_of(world, volume_id) == 'reserved'


def test_the_older_form_names_the_root(disks, world):
    volume_id = world.volume(image_id=IMAGE)
    (root,) = disks(imageRef='', **{OLD: [{'device_name': '/dev/vda', 'volume_id': volume_id}]})
    assert facts(root, 'source_type', 'boot_index', 'volume_id') == ('volume', 0, volume_id)
    data = world.volume()
    found = disks(**{OLD: [{'device_name': 'vdb', 'volume_id': data, 'delete_on_termination': True}]})
    assert [facts(device, 'source_type', 'boot_index') for device in found] == [('image', 0), ('volume', -1)]
    assert found[1].delete_on_termination


def test_volumes_are_made_from_images_and_snapshots(disks, world):
    snapshot = world.volumes.create_snapshot(world.bob, world.volume(2, image_id=IMAGE))
    from_image = {**ROOT, 'destination_type': 'volume', 'volume_size': '4', 'volume_type': 'multiattach'}
    (root,) = disks('2.67', imageRef=None, **{NEW: [from_image]})
    assert facts(root, 'image_id', 'volume_size', 'volume_type', 'volume_id') == (IMAGE, 4, 'multiattach', None)
    from_snapshot = {'boot_index': 0, 'uuid': snapshot.id, 'source_type': 'snapshot', 'destination_type': 'volume'}
    (root,) = disks(imageRef=None, **{NEW: [from_snapshot]})
    assert facts(root, 'snapshot_id', 'volume_size') == (snapshot.id, 2)


def test_an_image_may_define_the_disks(disks, world):
    snapshot = world.volumes.create_snapshot(world.bob, world.volume(2, image_id=IMAGE))
    mapping = [
        {
            'boot_index': 0,
            'source_type': 'snapshot',
            'destination_type': 'volume',
            'snapshot_id': snapshot.id,
            'device_name': '/dev/vda',
            'delete_on_termination': True,
            'volume_size': 2,
            'no_device': None,
        },
        {'source_type': 'blank', 'destination_type': 'volume', 'volume_size': 1, 'device_name': '/dev/vdb'},
    ]
    properties = {'bdm_v2': 'True', 'root_device_name': '/dev/vda', 'block_device_mapping': json.dumps(mapping)}
    image_id = world.image(size=0, properties=properties)
    root, data = disks(imageRef=image_id)
    assert facts(root, 'snapshot_id', 'boot_index', 'volume_size') == (snapshot.id, 0, 2)
    assert facts(data, 'source_type', 'destination_type', 'device_name') == ('blank', 'volume', '/dev/vdb')
    without = [{'device_name': 'vdb', 'no_device': True}, {**ROOT, 'uuid': image_id}]
    (root,) = disks(imageRef=image_id, **{NEW: without})
    assert root.snapshot_id == snapshot.id


def test_an_image_in_the_older_form(disks, world):
    snapshot = world.volumes.create_snapshot(world.bob, world.volume(2))
    mapping = [
        {'device_name': '/dev/vda', 'snapshot_id': snapshot.id},
        {'device_name': 'sdb', 'virtual_name': 'ephemeral0'},
    ]
    world.flavor('2', ephemeral_gb=5)
    image_id = world.image(properties={'block_device_mapping': json.dumps(mapping)})
    root, ephemeral = disks(imageRef=image_id, flavorRef='2')
    assert facts(root, 'snapshot_id', 'boot_index', 'volume_size') == (snapshot.id, 0, 2)
    assert facts(ephemeral, 'source_type', 'volume_size') == ('blank', 5)


@pytest.mark.parametrize(
    'mapping',
    [
        *('{', '{}', '[1]', '[{}, {"boot_index": "x"}]', '[{"volume_size": 4294967296}]', '[{"volume_id": [1]}]'),
        *('[{"source_type": "volume"}]', '[{"source_type": "snapshot", "snapshot_id": ""}]'),
    ],
)
def test_images_may_hold_anything(create, world, mapping):
    image_id = world.image(properties={'bdm_v2': 'true', 'block_device_mapping': mapping})
    status, text = message(create(imageRef=image_id))
    assert status == 400 and text.startswith('Block Device Mapping is Invalid: ')


# ------------------------------------------------------------------ versions


@pytest.mark.parametrize(
    ('version', 'status'),
    [('2.31', 400), ('2.32', 202), ('2.33', 400), ('2.41', 400), ('2.42', 202), ('2.104', 202)],
)
def test_tags_were_lost_for_a_while(create, version, status):
    assert create(version, **{NEW: [{**ROOT, 'tag': 'disk'}]}).status == status


def test_types_came_later(create):
    typed = {**ROOT, 'destination_type': 'volume', 'volume_size': 1, 'volume_type': 'multiattach'}
    assert create('2.66', **{NEW: [typed]}).status == 400
    assert create('2.67', **{NEW: [typed]}).status == 202


def test_shared_volumes_came_later(create, world):
    volume_id = world.volume(image_id=IMAGE, volume_type='multiattach')
    status, text = message(create('2.59', imageRef=None, **{NEW: [volume(volume_id)]}))
    assert (status, text) == (400, 'Multiattach volumes are only supported starting with compute API version 2.60.')
    for _ in range(2):
        assert create('2.60', imageRef=None, **{NEW: [volume(volume_id)]}).status == 202


# ------------------------------------------------------------------ refusals


BAD = 'Block Device Mapping is Invalid: '
ORDER = f'{BAD}Boot sequence for the instance and image/block device mapping combination is not valid.'
BLANK = {'source_type': 'blank', 'destination_type': 'local'}


@pytest.mark.parametrize(
    ('devices', 'text'),
    [
        ([ROOT, ROOT], ORDER),
        ([BLANK], ORDER),
        ([{**ROOT, 'boot_index': 1}], f'{BAD}Mapping image to local is not supported.'),
        ([{**ROOT, 'boot_index': None}], f'{BAD}Mapping image to local is not supported.'),
        ([ROOT, {**BLANK, 'uuid': NIL}], f'{BAD}Invalid device UUID.'),
        ([{'source_type': 'image'}], f'{BAD}Missing device UUID.'),
        ([{'uuid': NIL}], f'{BAD}Invalid source_type field.'),
        ([{**ROOT, 'virtual_name': 'x'}], f'{BAD}Some fields are invalid.'),
        ([volume(NIL)], f'Volume {NIL} could not be found.'),
        ([{**ROOT, 'uuid': NIL}], f'{BAD}failed to get image {NIL}.'),
        ([volume(NIL, source_type='snapshot')], f'{BAD}failed to get snapshot {NIL}.'),
        (
            [{**ROOT, 'destination_type': 'volume'}],
            "Images with destination_type 'volume' need to have a non-zero size specified",
        ),
        (
            [ROOT, {'source_type': 'blank', 'destination_type': 'volume'}],
            "Blank volumes (source: 'blank', dest: 'volume') need to have non-zero size",
        ),
        (
            [ROOT, {**BLANK, 'volume_size': 9}],
            'Ephemeral disks requested are larger than the instance type allows. '
            'If no size is given in one block device mapping, flavor ephemeral size will be used.',
        ),
        (
            [ROOT, {**BLANK, 'guest_format': 'swap', 'volume_size': 9}],
            'Swap drive requested is larger than instance type allows.',
        ),
        ([ROOT, *[{**BLANK, 'guest_format': 'swap'}] * 2], f'{BAD}More than one swap drive requested.'),
        ([ROOT, BLANK, BLANK, BLANK], 'You specified more local devices than the limit allows'),
        (
            [ROOT, volume(NIL, boot_index=1, device_name='/dev/vda')],
            'The volume cannot be assigned the same device name as the root device vda',
        ),
        (
            [{**ROOT, 'volume_type': 'x'}],
            f'{BAD}Specifying a volume_type with destination_type=local is not supported.',
        ),
        ([volume(NIL, volume_type='x')], f'{BAD}Specifying volume type to existing volume is not supported.'),
        (
            [{**ROOT, 'destination_type': 'volume', 'volume_size': 1, 'volume_type': 'x'}],
            'Volume type x could not be found.',
        ),
    ],
)
def test_disks_that_cannot_be(create, devices, text):
    assert message(create('2.67', networks='none', **{NEW: devices})) == (400, text)


@pytest.mark.parametrize(
    ('devices', 'text'),
    [
        ([{}], f'{BAD}Unrecognized legacy format.'),
        ([{'device_name': 'vda', 'volume_id': NIL}], f'Volume {NIL} could not be found.'),
    ],
)
def test_disks_in_the_older_form_that_cannot_be(create, devices, text):
    assert message(create(**{OLD: devices})) == (400, text)


@pytest.mark.parametrize(
    ('field', 'value'),
    [
        ('source_type', 'x'),
        ('destination_type', 'x'),
        ('uuid', 'a b'),
        ('boot_index', 'x'),
        ('boot_index', '9' * 5000),
        ('volume_size', 0),
        ('device_name', 'a b'),
        ('tag', 'a/b'),
        ('disk_bus', 'x' * 256),
        ('unknown', 1),
    ],
)
def test_a_bad_field_is_named(create, field, value):
    status, text = message(create('2.67', networks='none', **{NEW: [{**ROOT, field: value}]}))
    assert (status, field in text) == (400, True), text


def test_long_words_about_disks_are_kept(disks):
    (root,) = disks(**{NEW: [{**ROOT, 'guest_format': 'x' * 255, 'device_type': 'y' * 255}]})
    assert facts(root, 'guest_format', 'device_type') == ('x' * 255, 'y' * 255)


@pytest.mark.parametrize('bus', ['scsi', ''])
def test_a_disk_is_on_a_bus(disks, bus):
    (root,) = disks(**{NEW: [{**ROOT, 'disk_bus': bus}]})
    assert root.disk_bus == bus


@pytest.mark.parametrize('bus', ['VIRTIO', 'x' * 255])
def test_a_bus_that_there_is_not(create, bus):
    assert message(create(**{NEW: [{**ROOT, 'disk_bus': bus}]})) == (400, 'Block Device Mapping is Invalid.')


def test_a_snapshot_that_is_gone_is_no_root(create):
    devices = [volume(NIL, source_type='snapshot')]
    assert message(create(imageRef='', **{NEW: devices})) == (400, f'Snapshot {NIL} could not be found.')


def test_where_a_disk_may_be(create):
    text = message(create(**{NEW: [{**ROOT, 'destination_type': ''}]}))[1]
    assert text.endswith("'' is not one of ['local', 'volume']")


def test_one_form_at_a_time(create):
    both = {OLD: [{'volume_id': NIL}], NEW: [BLANK]}
    text = 'Using different block_device_mapping syntaxes is not allowed in the same request.'
    assert message(create(**both)) == (400, text)


def test_roots_that_cannot_be_booted(create, world):
    empty, small = world.volume(), world.image(min_disk=5)
    assert message(create(imageRef=None, **{NEW: [volume(empty)]})) == (400, f'Block Device {empty} is not bootable.')
    gone = f'{BAD}failed to get volume {NIL}.'
    assert message(create(imageRef=None, **{NEW: [volume(NIL)]})) == (400, gone)
    root = {**ROOT, 'uuid': small, 'destination_type': 'volume', 'volume_size': 1}
    status, text = message(create(imageRef=None, **{NEW: [root]}))
    assert status == 400 and text.startswith('Volume is smaller than the minimum size')
    certified = create('2.63', imageRef=None, trusted_image_certificates=['c'], **{NEW: [root]})
    assert message(certified) == (400, 'Image certificate validation is not supported when booting from volume')


def test_what_a_volume_tells_of_its_image_may_be_nonsense(create, world):
    bootable = world.volume(3, image_id=IMAGE)
    world.volumes.change(world.bob, bootable, lambda volume: {'image_metadata': {'min_disk': 'much'}})
    refused = create(imageRef=None, **{NEW: [volume(bootable)]})
    assert message(refused) == (400, "Image's min_disk 'much' is not an integer.")
    assert status_of(world, bootable) == 'available'


def test_a_volume_is_for_one_server(create, world):
    volume_id = world.volume(image_id=IMAGE)
    several = create(imageRef=None, max_count=2, **{NEW: [volume(volume_id)]})
    assert message(several) == (400, 'Cannot attach one or more volumes to multiple instances')
    assert create(imageRef=None, **{NEW: [volume(volume_id)]}).status == 202
    status, text = message(create(imageRef=None, **{NEW: [volume(volume_id)]}))
    assert status == 400 and 'Invalid volume' in text


def test_volumes_are_let_go_when_the_server_cannot_be(create, api, world):
    first, second = world.volume(image_id=IMAGE), world.volume()
    devices = [volume(first), volume(second, boot_index=-1)]
    api.put('/os-quota-sets/project', {'quota_set': {'instances': 0}})
    assert create(imageRef=None, **{NEW: devices}).status == 403
    assert status_of(world, first) == status_of(world, second) == 'available'
    api.put('/os-quota-sets/project', {'quota_set': {'instances': 1}})
    devices.append(volume(first, boot_index=-1))
    assert create(imageRef=None, **{NEW: devices}).status == 400
    assert status_of(world, first) == status_of(world, second) == 'available'
