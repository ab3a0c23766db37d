"""The behaviour of every volume backend."""

import contextlib
import threading
import uuid

import pytest

from computeapi import errors
from tests.backends.implementations import ADMIN, ALICE, BOB, READER, SERVICE, VOLUME

SERVER = '5b5ab8b0-7a65-4ba5-a1f9-6e8ad8d0c6a4'
OTHER_SERVER = '0d2d1e2c-3b55-4a27-9f9b-4a4c3d6a5f10'
THIRD_SERVER = 'c0b4ecfc-9d0a-4f0f-8f7c-3ee5b0a4c0de'
HOST = {'host': 'h', 'mountpoint': '/dev/vdb'}
NODE = {'host': 'node', 'mountpoint': '/dev/vdb'}


@pytest.fixture(params=VOLUME)
def service(request, store, tmp_path):
    """The implementation with its types and zones."""
    return request.param(store, tmp_path)


@pytest.fixture
def volumes(service):
    return service.volumes


@pytest.fixture
def images(service):
    return service.images


@pytest.fixture
def image(images):
    facts = {'disk_format': 'raw', 'container_format': 'bare', 'min_disk': 2, 'properties': {'hw_disk_bus': 'virtio'}}
    return images.upload(ALICE, images.create(ALICE, 'system', **facts).id, [b'x' * 10])


def together(*calls):
    """Run the calls concurrently; returns the types of the errors raised."""
    raised = []

    def run(call):
        try:
            call()
        except errors.Error as error:
            raised.append(type(error))

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


def test_a_new_volume_is_available(service, volumes):
    volume = volumes.create(ALICE, 3, name='one', description='mine', metadata={'a': 'b'})
    assert volume == volumes.get(ALICE, volume.id)
    assert (volume.status, volume.size, volume.project_id, volume.user_id) == ('available', 3, 'apples', 'alice')
    assert (volume.name, volume.description, volume.metadata) == ('one', 'mine', {'a': 'b'})
    assert (volume.volume_type, volume.availability_zone) == (service.default_type, 'nova')
    assert (volume.bootable, volume.multiattach, volume.attachments, volume.image_metadata) == (False, False, (), {})


def test_what_is_made_again_under_its_id_is_there_already(service, volumes):
    chosen = '11111111-2222-4333-8444-555555555555'
    volume = volumes.create(ALICE, 1, volume_id=chosen)
    assert volumes.create(ALICE, 1, volume_id=chosen) == volume
    assert volumes.list(ALICE) == [volume]
    snapshot = volumes.create_snapshot(ALICE, volume.id, snapshot_id=OTHER_SERVER)
    assert volumes.create_snapshot(ALICE, volume.id, snapshot_id=OTHER_SERVER) == snapshot
    assert volumes.list_snapshots(ALICE) == [snapshot]
    reserved = {volumes.reserve(ALICE, volume.id, SERVER) for _ in range(2)}
    assert len(reserved) == 1
    assert service.held(volume.id) == 1


def test_a_volume_from_an_image_is_bootable_and_knows_it(volumes, image):
    volume = volumes.get(ALICE, volumes.create(ALICE, 2, image_id=image.id).id)
    assert volume.bootable
    assert volume.image_metadata == {
        'hw_disk_bus': 'virtio',
        'image_id': image.id,
        'image_name': 'system',
        'checksum': image.checksum,
        'container_format': 'bare',
        'disk_format': 'raw',
        'min_disk': '2',
        'min_ram': '0',
        'size': '10',
    }


def test_an_image_with_all_the_properties_it_may_have_fits_on_a_volume(volumes, images):
    properties = {f'p{number}': 'x' for number in range(128)}
    image = images.create(ALICE, 'rich', disk_format='raw', container_format='bare', properties=properties)
    images.upload(ALICE, image.id, [b'x'])
    assert properties.items() <= volumes.create(ALICE, 1, image_id=image.id).image_metadata.items()


def test_images_that_make_no_volume(volumes, images, image):
    with pytest.raises(errors.Invalid, match='size'):
        volumes.create(ALICE, 1, image_id=image.id)
    with pytest.raises(errors.Invalid, match='image'):
        volumes.create(BOB, 2, image_id=image.id)
    with pytest.raises(errors.Invalid, match='not active'):
        volumes.create(ALICE, 2, image_id=images.create(ALICE, 'queued').id)


def test_volumes_from_volumes_and_snapshots_take_after_them(volumes, image):
    first = volumes.create(ALICE, 2, image_id=image.id, volume_type='multiattach', availability_zone='far')
    snapshot = volumes.create_snapshot(ALICE, first.id)
    for made in (
        volumes.create(ALICE, 2, source_volume_id=first.id),
        volumes.create(ALICE, 2, snapshot_id=snapshot.id),
    ):
        assert (made.size, made.volume_type, made.availability_zone) == (2, 'multiattach', 'far')
        assert (made.bootable, made.multiattach, made.image_metadata) == (True, True, first.image_metadata)
    assert volumes.create(ALICE, 5, snapshot_id=snapshot.id).size == 5
    with pytest.raises(errors.Invalid, match='size'):
        volumes.create(ALICE, 1, snapshot_id=snapshot.id)
    with pytest.raises(errors.SnapshotNotFound):
        volumes.create(BOB, 2, snapshot_id=snapshot.id)
    with pytest.raises(errors.VolumeNotFound):
        volumes.create(BOB, 2, source_volume_id=first.id)
    with pytest.raises(errors.Invalid, match='(?i)only one'):
        volumes.create(ALICE, 2, source_volume_id=first.id, snapshot_id=snapshot.id)


@pytest.mark.parametrize('size', [0, -1, 2**31])
def test_sizes_have_bounds(volumes, size):
    with pytest.raises(errors.Invalid, match='size'):
        volumes.create(ALICE, size)


def test_what_a_volume_cannot_have(volumes):
    with pytest.raises(errors.VolumeTypeNotFound):
        volumes.create(ALICE, 1, volume_type='nothing')
    with pytest.raises(errors.Invalid, match='zone'):
        volumes.create(ALICE, 1, availability_zone='moon')
    assert volumes.list(ALICE) == []


def test_volumes_are_the_project_s_own(volumes):
    volume = volumes.create(ALICE, 1)
    assert volumes.get(ADMIN, volume.id) == volume
    assert volumes.get_many(BOB, [volume.id]) == {}
    attachment = volumes.reserve(ALICE, volume.id, SERVER)
    for attempt in (
        lambda: volumes.get(BOB, volume.id),
        lambda: volumes.reserve(BOB, volume.id, SERVER),
        lambda: volumes.create_snapshot(BOB, volume.id),
        lambda: volumes.delete(BOB, volume.id),
    ):
        with pytest.raises(errors.VolumeNotFound):
            attempt()
    with pytest.raises((errors.AttachmentNotFound, errors.Forbidden)):
        volumes.complete(BOB, attachment, HOST)
    with contextlib.suppress(errors.Forbidden):
        volumes.release(BOB, attachment)
    assert volumes.get(ALICE, volume.id).status == 'reserved'


def test_lists(volumes):
    one, two = volumes.create(ALICE, 1, name='one'), volumes.create(ALICE, 2, name='two', volume_type='fake')
    three = volumes.create(BOB, 3, name='three')
    assert volumes.list(ALICE) == [two, one]
    assert volumes.list(BOB) == [three]
    assert volumes.list(ADMIN) == []


def test_a_volume_tells_that_it_is_being_detached(volumes):
    volume = volumes.create(ALICE, 1)
    with pytest.raises(errors.Invalid):
        volumes.begin_detaching(ALICE, volume.id)
    attachment = volumes.reserve(ALICE, volume.id, SERVER)
    volumes.complete(ALICE, attachment, NODE)
    volumes.stop_detaching(ALICE, volume.id)
    volumes.begin_detaching(ALICE, volume.id)
    assert volumes.get(ALICE, volume.id).status == 'detaching'
    volumes.stop_detaching(ALICE, volume.id)
    assert volumes.get(ALICE, volume.id).status == 'in-use'
    volumes.begin_detaching(ALICE, volume.id)
    volumes.release(ALICE, attachment)
    assert volumes.get(ALICE, volume.id).status == 'available'


def test_attaching_and_detaching(volumes):
    volume = volumes.create(ALICE, 1)
    attachment = volumes.reserve(ALICE, volume.id, SERVER)
    assert volumes.get(ALICE, volume.id).status == 'reserved'
    assert volumes.get(ALICE, volume.id).attachments == ()
    volumes.complete(ALICE, attachment, NODE)
    attached = volumes.get(ADMIN, volume.id)
    assert attached.status == 'in-use'
    (use,) = attached.attachments
    assert (use['attachment_id'], use['server_id'], use['host'], use['device']) == (
        attachment,
        SERVER,
        'node',
        '/dev/vdb',
    )
    volumes.complete(ALICE, attachment, NODE)
    (again,) = volumes.get(ADMIN, volume.id).attachments
    # Cinder records the time of the latest call.
    assert again['attached_at'] >= use['attached_at'] and again == {**use, 'attached_at': again['attached_at']}
    volumes.release(ALICE, attachment)
    volumes.release(ALICE, attachment)
    assert volumes.get(ALICE, volume.id).status == 'available'
    assert volumes.get(ALICE, volume.id).attachments == ()
    with pytest.raises(errors.AttachmentNotFound):
        volumes.complete(ALICE, attachment, NODE)


def test_a_volume_is_for_one_server(volumes):
    volume = volumes.create(ALICE, 1)
    attachment = volumes.reserve(ALICE, volume.id, SERVER)
    with pytest.raises(errors.Invalid, match='reserved'):
        volumes.reserve(ALICE, volume.id, OTHER_SERVER)
    volumes.complete(ALICE, attachment, HOST)
    with pytest.raises(errors.Invalid, match='in-use'):
        volumes.reserve(ALICE, volume.id, OTHER_SERVER)


def test_unless_its_type_says_otherwise(volumes):
    volume = volumes.create(ALICE, 1, volume_type='multiattach')
    first = volumes.reserve(ALICE, volume.id, SERVER)
    volumes.complete(ALICE, first, HOST)
    second = volumes.reserve(ALICE, volume.id, OTHER_SERVER)
    volumes.complete(ALICE, second, HOST)
    assert {each['server_id'] for each in volumes.get(ALICE, volume.id).attachments} == {SERVER, OTHER_SERVER}
    third = volumes.reserve(ALICE, volume.id, THIRD_SERVER)
    volumes.release(ALICE, first)
    assert volumes.get(ALICE, volume.id).status == 'in-use'
    volumes.release(ALICE, second)
    assert volumes.get(ALICE, volume.id).status == 'reserved'
    volumes.release(ALICE, third)
    assert volumes.get(ALICE, volume.id).status == 'available'


def test_only_one_of_many_gets_the_volume(service, volumes):
    volume = volumes.create(ALICE, 1)
    servers = [str(uuid.uuid4()) for _ in range(6)]
    refused = together(*[lambda server=one: volumes.reserve(ALICE, volume.id, server) for one in servers])
    assert refused == [errors.Invalid] * 5
    assert service.held(volume.id) == 1


def test_changes_at_once_all_count(volumes):
    volume = volumes.create(ALICE, 1, volume_type='multiattach')
    kept = []
    for _ in range(4):
        kept.append(volumes.reserve(ALICE, volume.id, str(uuid.uuid4())))
        volumes.complete(ALICE, kept[-1], HOST)
    assert len(volumes.get(ALICE, volume.id).attachments) == 4
    assert together(*[lambda a=one: volumes.release(ALICE, a) for one in kept]) == []
    assert volumes.get(ALICE, volume.id).status == 'available'


def test_delete(volumes):
    volume = volumes.create(ALICE, 1, metadata={'a': 'b'})
    snapshot = volumes.create_snapshot(ALICE, volume.id)
    with pytest.raises(errors.Invalid, match='snapshots'):
        volumes.delete(ALICE, volume.id)
    volumes.delete_snapshot(ALICE, snapshot.id)
    attachment = volumes.reserve(ALICE, volume.id, SERVER)
    with pytest.raises(errors.Invalid, match='status'):
        volumes.delete(ALICE, volume.id)
    volumes.complete(ALICE, attachment, HOST)
    with pytest.raises(errors.Invalid, match='attached'):
        volumes.delete(ALICE, volume.id)
    volumes.release(ALICE, attachment)
    volumes.delete(ALICE, volume.id)
    with pytest.raises(errors.VolumeNotFound):
        volumes.delete(ALICE, volume.id)


def test_snapshots(volumes):
    volume = volumes.create(ALICE, 2)
    snapshot = volumes.create_snapshot(ALICE, volume.id, name='s', description='d', metadata={'a': 'b'})
    assert snapshot == volumes.get_snapshot(ALICE, snapshot.id)
    assert (snapshot.status, snapshot.size, snapshot.volume_id, snapshot.metadata) == (
        'available',
        2,
        volume.id,
        {'a': 'b'},
    )
    assert volumes.list_snapshots(ALICE) == [snapshot]
    assert volumes.list_snapshots(BOB) == []
    with pytest.raises(errors.SnapshotNotFound):
        volumes.delete_snapshot(BOB, snapshot.id)
    volumes.delete_snapshot(ALICE, snapshot.id)
    with pytest.raises(errors.SnapshotNotFound):
        volumes.get_snapshot(ALICE, snapshot.id)


@pytest.mark.parametrize(
    ('before', 'reported', 'after'),
    [
        ('creating', 'creating', 'creating'),
        ('creating', 'error', 'error'),
        ('deleting', 'error_deleting', 'error_deleting'),
        ('available', 'creating', None),
        ('deleting', 'available', None),
    ],
)
def test_hypervisors_report_the_snapshots_that_they_take(volumes, service, before, reported, after):
    snapshot = volumes.create_snapshot(ALICE, volumes.create(ALICE, 1).id)
    service.reset_snapshot(snapshot.id, before)
    if after is None:
        with pytest.raises(errors.Invalid):
            volumes.report_snapshot(ADMIN, snapshot.id, reported)
    else:
        volumes.report_snapshot(ADMIN, snapshot.id, reported)
    assert volumes.get_snapshot(ALICE, snapshot.id).status == (after or before)
    service.reset_snapshot(snapshot.id, 'available')
    with pytest.raises(errors.SnapshotNotFound):
        volumes.report_snapshot(ADMIN, OTHER_SERVER, reported)


def test_snapshots_of_used_volumes_are_forced(volumes):
    volume = volumes.create(ALICE, 1)
    volumes.complete(ALICE, volumes.reserve(ALICE, volume.id, SERVER), HOST)
    with pytest.raises(errors.Invalid, match='in-use'):
        volumes.create_snapshot(ALICE, volume.id)
    assert volumes.create_snapshot(ALICE, volume.id, force=True).status == 'available'


def test_reimage(volumes, images, image):
    volume = volumes.create(ALICE, 2)
    volumes.reimage(ALICE, volume.id, image.id)
    assert volumes.get(ALICE, volume.id).bootable
    assert volumes.get(ALICE, volume.id).image_metadata['image_id'] == image.id
    with pytest.raises(errors.Invalid, match='size'):
        volumes.reimage(ALICE, volumes.create(ALICE, 1).id, image.id)


def test_quotas(service, volumes):
    service.limit('apples', volumes=2, snapshots=1, gigabytes=20, per_volume_gigabytes=6)
    with pytest.raises(errors.OverQuota, match='larger than'):
        volumes.create(ALICE, 7)
    first = volumes.create(ALICE, 4)
    volumes.create_snapshot(ALICE, first.id)
    with pytest.raises(errors.OverQuota, match='snapshots'):
        volumes.create_snapshot(ALICE, first.id)
    service.limit('apples', gigabytes=10)
    with pytest.raises(errors.OverQuota, match='gigabytes'):
        volumes.create(ALICE, 3)
    volumes.create(ALICE, 2)
    service.limit('apples', gigabytes=20)
    with pytest.raises(errors.OverQuota, match='(?i)volumes'):
        volumes.create(ALICE, 1)
    service.limit('apples', volumes=-1, gigabytes=-1)
    volumes.create(ALICE, 5)


def test_the_last_of_the_quota_is_taken_once(service, volumes):
    service.limit('apples', volumes=2)
    refused = together(*[lambda: volumes.create(ALICE, 1)] * 6)
    assert refused == [errors.OverQuota] * 4
    assert len(volumes.list(ALICE)) == 2


def test_zones(volumes):
    assert volumes.availability_zones(ALICE) == ['nova', 'far']
    assert volumes.create(ALICE, 1, availability_zone='far').availability_zone == 'far'


def test_types_have_names_and_ids(volumes):
    kind = volumes.volume_type(ALICE, 'multiattach')
    assert (kind.name, kind.multiattach) == ('multiattach', True)
    assert volumes.volume_type(BOB, kind.id) == kind
    assert not volumes.volume_type(ALICE, 'fake').multiattach
    with pytest.raises(errors.VolumeTypeNotFound):
        volumes.volume_type(ALICE, 'nothing')


def test_a_server_can_have_two_attachments_while_it_moves(service, volumes):
    volume = volumes.create(ALICE, 1)
    first = volumes.reserve(ALICE, volume.id, SERVER)
    volumes.complete(ALICE, first, HOST)
    second = volumes.reserve(ALICE, volume.id, SERVER, beside=first, connector=NODE)
    assert second != first and service.held(volume.id) == 2
    assert volumes.reserve(ALICE, volume.id, SERVER, beside=first) == second
    volumes.complete(ALICE, second)
    volumes.release(ALICE, first)
    assert volumes.reserve(ALICE, volume.id, SERVER, beside=first) == second
    (use,) = volumes.get(ADMIN, volume.id).attachments
    assert (use['attachment_id'], use['host'], use['device']) == (second, 'node', '/dev/vdb')
    volumes.release(ALICE, second)
    with pytest.raises(errors.AttachmentNotFound):
        volumes.reserve(ALICE, volume.id, SERVER, beside=first)
    assert service.held(volume.id) == 0


def test_a_volume_that_is_used_from_nowhere_is_still_held(volumes):
    volume = volumes.create(ALICE, 1)
    first = volumes.reserve(ALICE, volume.id, SERVER)
    volumes.complete(ALICE, first, HOST)
    held = volumes.reserve(ALICE, volume.id, SERVER, beside=first)
    volumes.release(ALICE, first)
    (reserved,) = volumes.attachments(ALICE, server_ids=[SERVER], volume_id=volume.id)
    assert (reserved.id, reserved.status, reserved.volume_id) == (held, 'reserved', volume.id)
    assert (volumes.get(ALICE, volume.id).status, volumes.get(ALICE, volume.id).attachments) == ('reserved', ())
    volumes.complete(ALICE, held)
    assert volumes.get(ALICE, volume.id).status == 'in-use'


def test_attachments_by_server_and_volume(volumes):
    one, two = volumes.create(ALICE, 1), volumes.create(ALICE, 1)
    first, second = volumes.reserve(ALICE, one.id, SERVER), volumes.reserve(ALICE, two.id, OTHER_SERVER)

    def ids(context=ALICE, **asked):
        return {each.id for each in volumes.attachments(context, **asked)}

    assert ids(server_ids=[SERVER]) == ids(volume_id=one.id) == {first}
    assert ids(server_ids=[SERVER, OTHER_SERVER]) == {first, second}
    assert ids(server_ids=[SERVER], volume_id=two.id) == set()
    assert ids(ADMIN, server_ids=[OTHER_SERVER]) == {second}
    assert ids(BOB, server_ids=[SERVER]) == set()


@pytest.mark.parametrize('caller', [READER, SERVICE], ids=['reader', 'service'])
def test_who_may_only_read_changes_nothing(volumes, caller):
    volume = volumes.create(ALICE, 1)
    for change in (
        lambda: volumes.create(caller, 1),
        lambda: volumes.create_snapshot(caller, volume.id),
        lambda: volumes.delete(caller, volume.id),
    ):
        with pytest.raises((errors.Forbidden, errors.VolumeNotFound)):
            change()
    assert volumes.get(ALICE, volume.id) == volume and volumes.list_snapshots(ALICE) == []


def test_a_reader_reserves_nothing(volumes):
    volume = volumes.create(ALICE, 1)
    with pytest.raises(errors.Forbidden):
        volumes.reserve(READER, volume.id, SERVER)
    assert volumes.get(ALICE, volume.id).status == 'available'
