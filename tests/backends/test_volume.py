"""What any volume backend does, and what the local one does for its face."""

import threading

import pytest
import sqlalchemy as sa

from computeapi import errors
from computeapi.backends.image.local import LocalImages
from computeapi.backends.volume.local import LocalVolumes
from computeapi.context import Context

ADMIN = Context(user_id='root', project_id='admin', is_admin=True)
ALICE = Context(user_id='alice', project_id='apples', roles=frozenset({'member'}))
BOB = Context(user_id='bob', project_id='bananas', roles=frozenset({'member'}))

SERVER = '5b5ab8b0-7a65-4ba5-a1f9-6e8ad8d0c6a4'
OTHER_SERVER = '0d2d1e2c-3b55-4a27-9f9b-4a4c3d6a5f10'
SHARED = {'multiattach': '<is> True'}


@pytest.fixture
def images(store, tmp_path):
    return LocalImages(store, tmp_path / 'images')


@pytest.fixture
def volumes(store, images):
    volumes = LocalVolumes(store, images, types={'fake': {}, 'multiattach': SHARED}, zones=('nova', 'far'))
    volumes.populate()
    return volumes


@pytest.fixture
def image(images):
    facts = {'disk_format': 'raw', 'container_format': 'bare', 'min_disk': 2, 'properties': {'hw_disk_bus': 'virtio'}}
    return images.upload(ALICE, images.create(ALICE, 'system', **facts).id, [b'x' * 10])


def together(*calls):
    """Run them at once; how many raised what."""
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


def test_a_new_volume_is_available(volumes):
    volume = volumes.create(ALICE, 3, name='one', description='mine', metadata={'a': 'b'})
    assert volume == volumes.get(ALICE, volume.id)
    assert (volume.status, volume.size, volume.project_id, volume.user_id) == ('available', 3, 'apples', 'alice')
    assert (volume.name, volume.description, volume.metadata) == ('one', 'mine', {'a': 'b'})
    assert (volume.volume_type, volume.availability_zone) == ('__DEFAULT__', 'nova')
    assert (volume.bootable, volume.multiattach, volume.attachments, volume.image_metadata) == (False, False, (), {})


def test_what_is_made_again_under_its_id_is_there_already(volumes):
    chosen = '11111111-2222-4333-8444-555555555555'
    volume = volumes.create(ALICE, 1, volume_id=chosen)
    assert volumes.create(ALICE, 1, volume_id=chosen) == volume
    assert volumes.list(ALICE) == [volume]
    snapshot = volumes.create_snapshot(ALICE, chosen, snapshot_id=OTHER_SERVER)
    assert volumes.create_snapshot(ALICE, chosen, snapshot_id=OTHER_SERVER) == snapshot
    assert volumes.list_snapshots(ALICE) == [snapshot]
    for _ in range(2):
        assert volumes.reserve(ALICE, chosen, SERVER, attachment_id=OTHER_SERVER) == OTHER_SERVER
    assert len(volumes.attachments(ALICE)) == 1


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
        volumes.create(ALICE, None, source_volume_id=first.id),
        volumes.create(ALICE, None, snapshot_id=snapshot.id),
    ):
        assert (made.size, made.volume_type, made.availability_zone) == (2, 'multiattach', 'far')
        assert (made.bootable, made.multiattach, made.image_metadata) == (True, True, first.image_metadata)
    assert volumes.create(ALICE, 5, snapshot_id=snapshot.id, volume_type='fake').volume_type == 'fake'
    with pytest.raises(errors.Invalid, match='size'):
        volumes.create(ALICE, 1, snapshot_id=snapshot.id)
    with pytest.raises(errors.SnapshotNotFound):
        volumes.create(BOB, None, snapshot_id=snapshot.id)
    with pytest.raises(errors.VolumeNotFound):
        volumes.create(BOB, None, source_volume_id=first.id)
    with pytest.raises(errors.Invalid, match='Only one'):
        volumes.create(ALICE, None, source_volume_id=first.id, snapshot_id=snapshot.id)


@pytest.mark.parametrize('size', [None, 0, -1, 2**31])
def test_sizes_have_bounds(volumes, size):
    with pytest.raises(errors.Invalid, match='size'):
        volumes.create(ALICE, size)


def test_what_a_volume_cannot_have(volumes):
    with pytest.raises(errors.VolumeTypeNotFound):
        volumes.create(ALICE, 1, volume_type='nothing')
    with pytest.raises(errors.Invalid, match='zone'):
        volumes.create(ALICE, 1, availability_zone='moon')
    with pytest.raises(errors.Invalid, match='metadata'):
        volumes.create(ALICE, 1, metadata={f'k{number}': 'v' for number in range(129)})
    with pytest.raises(errors.Forbidden):
        volumes.create(Context(user_id='ghost'), 1)
    assert volumes.list(ALICE) == []


def test_volumes_are_the_project_s_own(volumes):
    volume = volumes.create(ALICE, 1)
    assert volumes.get(ADMIN, volume.id) == volume
    assert volumes.get_many(BOB, [volume.id]) == {}
    attachment = volumes.reserve(ALICE, volume.id, SERVER)
    for attempt in (
        lambda: volumes.get(BOB, volume.id),
        lambda: volumes.update(BOB, volume.id, name='mine'),
        lambda: volumes.extend(BOB, volume.id, 2),
        lambda: volumes.reserve(BOB, volume.id, SERVER),
        lambda: volumes.create_snapshot(BOB, volume.id),
        lambda: volumes.delete(BOB, volume.id),
    ):
        with pytest.raises(errors.VolumeNotFound):
            attempt()
    with pytest.raises(errors.AttachmentNotFound):
        volumes.complete(BOB, attachment, host='h', device='/dev/vdb')
    volumes.release(BOB, attachment)
    assert volumes.get(ALICE, volume.id).status == 'reserved'


def test_lists(volumes, image):
    one = volumes.create(ALICE, 1, name='one', metadata={'a': 'b', 'c': 'd'})
    two = volumes.create(ALICE, 2, name='two', image_id=image.id, volume_type='fake')
    volumes.create(BOB, 3, name='three')

    def names(context=ALICE, **others):
        return [volume.name for volume in volumes.list(context, **others)]

    assert names() == ['two', 'one']
    assert names(BOB) == ['three']
    assert names(ADMIN) == []
    assert names(ADMIN, all_projects=True) == ['three', 'two', 'one']
    assert names(ALICE, all_projects=True) == ['two', 'one']
    assert names(filters={'name': 'one'}) == ['one']
    assert names(filters={'name': ['one', 'two'], 'status': 'available'}) == ['two', 'one']
    assert names(filters={'status': 'error'}) == []
    assert names(filters={'bootable': True}) == ['two']
    assert names(filters={'volume_type': 'fake'}) == ['two']
    assert names(filters={'metadata': {'a': 'b'}}) == ['one']
    assert names(filters={'metadata': {'a': 'b', 'c': 'x'}}) == []
    assert names(filters={'image_metadata': {'hw_disk_bus': 'virtio'}}) == ['two']
    assert names(limit=1) == ['two']
    assert names(limit=0) == []
    assert names(offset=1, limit=5) == ['one']
    assert names(marker=two.id) == ['one']
    assert names(sort=[('name', 'asc')], marker=one.id) == ['two']
    assert volumes.count(ALICE) == (2, 3)
    assert volumes.count(ADMIN, all_projects=True, filters={'bootable': False}) == (2, 4)
    with pytest.raises(errors.Invalid, match='marker'):
        names(BOB, marker=one.id)
    with pytest.raises(errors.Invalid, match='sort'):
        names(sort=[('secret', 'asc')])


def test_a_list_takes_as_many_queries_for_one_volume_as_for_many(volumes, store):
    def queries():
        counted = []

        @sa.event.listens_for(store.engine, 'before_cursor_execute')
        def count(*args):
            counted.append(args[2])

        volumes.list(ALICE)
        sa.event.remove(store.engine, 'before_cursor_execute', count)
        return len(counted)

    volumes.create(ALICE, 1, metadata={'a': 'b'})
    one = queries()
    for _ in range(4):
        volume = volumes.create(ALICE, 1, metadata={'a': 'b'})
        volumes.complete(ALICE, volumes.reserve(ALICE, volume.id, SERVER), host='h', device='/dev/vdb')
    assert queries() == one


def test_update(volumes):
    volume = volumes.create(ALICE, 1, name='one', metadata={'a': 'b'})
    changed = volumes.update(ALICE, volume.id, name='two', metadata={'c': 'd'}, readonly=True)
    assert (changed.name, changed.metadata, changed.readonly) == ('two', {'c': 'd'}, True)
    assert volumes.get(ALICE, volume.id) == changed


def test_extend(volumes):
    volume = volumes.create(ALICE, 2)
    assert volumes.extend(ALICE, volume.id, 5).size == 5
    for size in (5, 4, 2**31):
        with pytest.raises(errors.Invalid, match='size'):
            volumes.extend(ALICE, volume.id, size)
    volumes.reserve(ALICE, volume.id, SERVER)
    with pytest.raises(errors.Invalid, match='reserved'):
        volumes.extend(ALICE, volume.id, 6)
    assert volumes.get(ALICE, volume.id).size == 5


def test_attaching_and_detaching(volumes):
    volume = volumes.create(ALICE, 1)
    attachment = volumes.reserve(ALICE, volume.id, SERVER)
    assert volumes.get(ALICE, volume.id).status == 'reserved'
    assert volumes.get(ALICE, volume.id).attachments == ()
    volumes.complete(ALICE, attachment, host='node', device='/dev/vdb')
    attached = volumes.get(ALICE, volume.id)
    assert attached.status == 'in-use'
    (use,) = attached.attachments
    assert (use['attachment_id'], use['server_id'], use['host'], use['device']) == (
        attachment,
        SERVER,
        'node',
        '/dev/vdb',
    )
    volumes.complete(ALICE, attachment, host='node', device='/dev/vdb')
    assert volumes.get(ALICE, volume.id).attachments == (use,)
    volumes.release(ALICE, attachment)
    volumes.release(ALICE, attachment)
    assert volumes.get(ALICE, volume.id).status == 'available'
    assert volumes.get(ALICE, volume.id).attachments == ()
    with pytest.raises(errors.AttachmentNotFound):
        volumes.complete(ALICE, attachment, host='node', device='/dev/vdb')


def test_a_volume_is_for_one_server(volumes):
    volume = volumes.create(ALICE, 1)
    attachment = volumes.reserve(ALICE, volume.id, SERVER)
    with pytest.raises(errors.Invalid, match='reserved'):
        volumes.reserve(ALICE, volume.id, OTHER_SERVER)
    volumes.complete(ALICE, attachment, host='h', device='/dev/vdb')
    with pytest.raises(errors.Invalid, match='in-use'):
        volumes.reserve(ALICE, volume.id, OTHER_SERVER)


def test_unless_its_type_says_otherwise(volumes):
    volume = volumes.create(ALICE, 1, volume_type='multiattach')
    first = volumes.reserve(ALICE, volume.id, SERVER)
    second = volumes.reserve(ALICE, volume.id, OTHER_SERVER)
    volumes.complete(ALICE, first, host='h', device='/dev/vdb')
    third = volumes.reserve(ALICE, volume.id, SERVER)
    assert volumes.get(ALICE, volume.id).status == 'in-use'
    volumes.complete(ALICE, second, host='h', device='/dev/vdb')
    assert len(volumes.get(ALICE, volume.id).attachments) == 2
    volumes.release(ALICE, first)
    assert volumes.get(ALICE, volume.id).status == 'in-use'
    volumes.release(ALICE, second)
    assert volumes.get(ALICE, volume.id).status == 'reserved'
    volumes.release(ALICE, third)
    assert volumes.get(ALICE, volume.id).status == 'available'


def test_only_one_of_many_gets_the_volume(volumes):
    volume = volumes.create(ALICE, 1)
    refused = together(*[lambda: volumes.reserve(ALICE, volume.id, SERVER)] * 6)
    assert refused == [errors.Invalid] * 5
    assert len(volumes.attachments(ALICE)) == 1


def test_changes_at_once_all_count(volumes):
    volume = volumes.create(ALICE, 1, volume_type='multiattach')
    kept = [volumes.reserve(ALICE, volume.id, SERVER) for _ in range(4)]
    assert together(*[lambda a=one: volumes.complete(ALICE, a, host='h', device='/dev/vdb') for one in kept]) == []
    assert len(volumes.get(ALICE, volume.id).attachments) == 4
    assert together(*[lambda a=one: volumes.release(ALICE, a) for one in kept]) == []
    assert volumes.get(ALICE, volume.id).status == 'available'


def test_attachments_can_be_looked_at(volumes):
    volume = volumes.create(ALICE, 1)
    attachment_id = volumes.reserve(ALICE, volume.id, SERVER)
    attachment = volumes.connect(ALICE, attachment_id, {'host': 'node', 'mountpoint': '/dev/vdc', 'ip': '192.0.2.1'})
    assert (attachment.status, attachment.host, attachment.device) == ('attaching', 'node', '/dev/vdc')
    assert attachment.connector['ip'] == '192.0.2.1'
    assert volumes.get(ALICE, volume.id).status == 'attaching'
    volumes.complete(ALICE, attachment_id)
    assert volumes.get(ALICE, volume.id).attachments[0]['device'] == '/dev/vdc'
    assert [one.id for one in volumes.attachments(ALICE, filters={'volume_id': volume.id})] == [attachment_id]
    assert volumes.attachments(ALICE, filters={'server_id': OTHER_SERVER}) == []
    assert volumes.attachments(BOB) == []
    assert len(volumes.attachments(ADMIN, all_projects=True)) == 1
    with pytest.raises(errors.Invalid, match='in use'):
        volumes.connect(ALICE, attachment_id, {})
    with pytest.raises(errors.Invalid, match='host'):
        volumes.connect(ALICE, volumes.reserve(ALICE, volumes.create(ALICE, 1).id, SERVER), {'host': 5})
    with pytest.raises(errors.AttachmentNotFound):
        volumes.attachment(BOB, attachment_id)


def test_attaching_in_one_go(volumes):
    volume = volumes.create(ALICE, 1)
    volumes.begin_attaching(ALICE, volume.id)
    assert volumes.get(ALICE, volume.id).status == 'attaching'
    with pytest.raises(errors.Invalid):
        volumes.begin_attaching(ALICE, volume.id)
    volumes.attach(ALICE, volume.id, server_id=SERVER, device='/dev/vdb')
    assert volumes.get(ALICE, volume.id).status == 'in-use'
    with pytest.raises(errors.Invalid):
        volumes.attach(ALICE, volume.id, server_id=OTHER_SERVER, device='/dev/vdb')
    volumes.begin_detaching(ALICE, volume.id)
    assert volumes.get(ALICE, volume.id).status == 'detaching'
    volumes.stop_detaching(ALICE, volume.id)
    assert volumes.get(ALICE, volume.id).status == 'in-use'
    volumes.detach(ALICE, volume.id)
    assert volumes.get(ALICE, volume.id).status == 'available'
    volumes.begin_attaching(ALICE, volume.id)
    volumes.stop_attaching(ALICE, volume.id)
    assert volumes.get(ALICE, volume.id).status == 'available'
    with pytest.raises(errors.Invalid):
        volumes.begin_detaching(ALICE, volume.id)


def test_detaching_one_of_several_takes_its_id(volumes):
    volume = volumes.create(ALICE, 1, volume_type='multiattach')
    for server in (SERVER, OTHER_SERVER):
        volumes.attach(ALICE, volume.id, server_id=server, device='/dev/vdb')
    with pytest.raises(errors.Invalid, match='attachment_id'):
        volumes.detach(ALICE, volume.id)
    with pytest.raises(errors.AttachmentNotFound):
        volumes.detach(ALICE, volume.id, 'nothing')
    first, _ = volumes.get(ALICE, volume.id).attachments
    volumes.detach(ALICE, volume.id, first['attachment_id'])
    volumes.detach(ALICE, volume.id)
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
    volumes.complete(ALICE, attachment, host='h', device='/dev/vdb')
    with pytest.raises(errors.Invalid, match='attached'):
        volumes.delete(ALICE, volume.id, force=True)
    volumes.release(ALICE, attachment)
    volumes.delete(ALICE, volume.id)
    with pytest.raises(errors.VolumeNotFound):
        volumes.delete(ALICE, volume.id)


def test_delete_whatever_the_status(volumes):
    volume = volumes.create(ALICE, 1)
    volumes.reset_status(ADMIN, volume.id, 'creating')
    with pytest.raises(errors.Invalid):
        volumes.delete(ALICE, volume.id)
    volumes.create_snapshot(ADMIN, volumes.create(ALICE, 1).id)
    volumes.delete(ALICE, volume.id, force=True)
    (other,) = volumes.list(ALICE)
    volumes.delete(ALICE, other.id, cascade=True)
    assert volumes.list(ALICE) == []
    assert volumes.list_snapshots(ALICE) == []


def test_reset_status(volumes):
    volume = volumes.create(ALICE, 1)
    volumes.attach(ALICE, volume.id, server_id=SERVER, device='/dev/vdb')
    assert volumes.reset_status(ADMIN, volume.id, 'error').status == 'error'
    volumes.release(ALICE, volumes.get(ALICE, volume.id).attachments[0]['attachment_id'])
    assert volumes.get(ALICE, volume.id).status == 'error'
    assert volumes.reset_status(ADMIN, volume.id, 'available', detached=True).attachments == ()


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
    assert volumes.list_snapshots(ADMIN, all_projects=True) == [snapshot]
    assert volumes.list_snapshots(ALICE, filters={'volume_id': 'other'}) == []
    assert volumes.list_snapshots(ALICE, filters={'metadata': {'a': 'b'}}) == [snapshot]
    changed = volumes.change_snapshot(ALICE, snapshot.id, lambda now: {'metadata': {**now.metadata, 'c': 'd'}})
    assert volumes.get_snapshot(ALICE, snapshot.id) == changed
    assert changed.metadata == {'a': 'b', 'c': 'd'}
    with pytest.raises(errors.SnapshotNotFound):
        volumes.delete_snapshot(BOB, snapshot.id)
    volumes.change_snapshot(ADMIN, snapshot.id, lambda now: {'status': 'creating'})
    with pytest.raises(errors.Invalid, match='status'):
        volumes.delete_snapshot(ALICE, snapshot.id)
    volumes.delete_snapshot(ALICE, snapshot.id, force=True)
    with pytest.raises(errors.SnapshotNotFound):
        volumes.get_snapshot(ALICE, snapshot.id)


def test_snapshots_of_used_volumes_are_forced(volumes):
    volume = volumes.create(ALICE, 1)
    volumes.attach(ALICE, volume.id, server_id=SERVER, device='/dev/vdb')
    with pytest.raises(errors.Invalid, match='in-use'):
        volumes.create_snapshot(ALICE, volume.id)
    assert volumes.create_snapshot(ALICE, volume.id, force=True).status == 'available'


def test_snapshot_pages(volumes):
    volume = volumes.create(ALICE, 1)
    for name in ('b', 'a', 'c'):
        volumes.create_snapshot(ALICE, volume.id, name=name)
    first, second = volumes.list_snapshots(ALICE, sort=[('name', 'asc')], limit=2)
    assert [snapshot.name for snapshot in (first, second)] == ['a', 'b']
    assert [s.name for s in volumes.list_snapshots(ALICE, sort=[('name', 'asc')], marker=second.id)] == ['c']
    assert volumes.count_snapshots(ALICE) == 3
    with pytest.raises(errors.Invalid, match='marker'):
        volumes.list_snapshots(BOB, marker=first.id)


def test_reimage(volumes, images, image):
    volume = volumes.create(ALICE, 2)
    volumes.reimage(ALICE, volume.id, image.id)
    assert volumes.get(ALICE, volume.id).bootable
    assert volumes.get(ALICE, volume.id).image_metadata['image_id'] == image.id
    with pytest.raises(errors.Invalid, match='size'):
        volumes.reimage(ALICE, volumes.create(ALICE, 1).id, image.id)
    volumes.reset_status(ADMIN, volume.id, 'error')
    with pytest.raises(errors.Invalid, match='error'):
        volumes.reimage(ALICE, volume.id, image.id)


def test_swap_carries_over_what_the_data_is(volumes, image):
    old, new = volumes.create(ALICE, 2, image_id=image.id), volumes.create(ALICE, 3)
    volumes.reset_status(ADMIN, old.id, migration_status='migrating')
    disk = volumes.get(ALICE, volumes.swap(ALICE, old.id, new.id))
    assert disk.image_metadata == old.image_metadata
    assert disk.bootable and disk.migration_status is None


def test_quotas(volumes):
    volumes.quotas.set_limits('apples', {'volumes': 2, 'snapshots': 1, 'gigabytes': 10, 'per_volume_gigabytes': 6})
    assert volumes.quotas.limits('bananas')['volumes'] == 10
    with pytest.raises(errors.OverQuota, match='larger than'):
        volumes.create(ALICE, 7)
    first = volumes.create(ALICE, 4)
    with pytest.raises(errors.OverQuota, match='gigabytes'):
        volumes.extend(ALICE, first.id, 11)
    volumes.create_snapshot(ALICE, first.id)
    with pytest.raises(errors.OverQuota, match='snapshots'):
        volumes.create_snapshot(ALICE, first.id)
    with pytest.raises(errors.OverQuota, match='gigabytes'):
        volumes.create(ALICE, 3)
    volumes.create(ALICE, 2)
    with pytest.raises(errors.OverQuota, match='volumes'):
        volumes.create(ALICE, 1)
    usage = volumes.quotas.usage('apples')
    assert (usage['volumes'], usage['snapshots'], usage['gigabytes']) == (2, 1, 10)
    volumes.quotas.set_limits('apples', {'volumes': -1, 'gigabytes': -1})
    volumes.create(ALICE, 5)
    volumes.quotas.reset('apples')
    assert volumes.quotas.limits('apples')['volumes'] == 10
    with pytest.raises(errors.Invalid, match='nonsense'):
        volumes.quotas.set_limits('apples', {'nonsense': 1})


def test_the_last_of_the_quota_is_taken_once(volumes):
    volumes.quotas.set_limits('apples', {'volumes': 2})
    refused = together(*[lambda: volumes.create(ALICE, 1)] * 6)
    assert refused == [errors.OverQuota] * 4
    assert len(volumes.list(ALICE)) == 2


def test_types(volumes):
    volumes.populate()
    assert [kind.name for kind in volumes.types.list(ALICE)] == ['__DEFAULT__', 'fake', 'multiattach']
    kind = volumes.types.create('fast', description='d', extra_specs={'a': 'b'})
    assert volumes.volume_type(ALICE, 'fast') == volumes.volume_type(ALICE, kind.id) == kind
    with pytest.raises(errors.Conflict):
        volumes.types.create('fast')
    changed = volumes.types.change(kind.id, lambda now: {'extra_specs': {**now.extra_specs, **SHARED}, 'name': 'new'})
    assert changed.multiattach
    assert volumes.volume_type(ALICE, 'new') == changed
    with pytest.raises(errors.Conflict):
        volumes.types.change(kind.id, lambda now: {'name': 'fake'})
    volume = volumes.create(ALICE, 1, volume_type='new')
    assert volume.multiattach
    with pytest.raises(errors.Invalid, match='in use'):
        volumes.types.delete(kind.id)
    volumes.delete(ALICE, volume.id)
    volumes.types.delete(kind.id)
    with pytest.raises(errors.VolumeTypeNotFound):
        volumes.volume_type(ALICE, 'new')
    with pytest.raises(errors.Invalid, match='default'):
        volumes.types.delete(volumes.types.default().id)


def test_an_id_means_the_type_that_has_it_not_one_with_that_name(volumes):
    kind = volumes.types.create('shared', extra_specs=SHARED)
    volumes.types.create(kind.id)
    assert volumes.volume_type(ALICE, kind.id) == kind
    assert volumes.create(ALICE, 1, volume_type=kind.id).multiattach


def test_the_default_type_is_made_when_it_is_needed(store, images):
    assert LocalVolumes(store, images).create(ALICE, 1).volume_type == '__DEFAULT__'


def test_private_types(volumes):
    kind = volumes.types.create('secret', is_public=False)
    assert 'secret' not in [other.name for other in volumes.types.list(ALICE)]
    with pytest.raises(errors.VolumeTypeNotFound):
        volumes.create(ALICE, 1, volume_type='secret')
    volumes.types.grant(kind.id, 'apples')
    assert volumes.create(ALICE, 1, volume_type='secret').volume_type == 'secret'
    assert volumes.types.projects(kind.id) == ['apples']
    with pytest.raises(errors.Conflict):
        volumes.types.grant(kind.id, 'apples')
    volumes.types.revoke(kind.id, 'apples')
    with pytest.raises(errors.NotFound):
        volumes.types.revoke(kind.id, 'apples')
    with pytest.raises(errors.NotFound):
        volumes.types.projects(volumes.types.default().id)
    assert [kind.name for kind in volumes.types.list(ADMIN, public=False)] == ['secret']


def test_retype(volumes):
    volume = volumes.create(ALICE, 1)
    assert volumes.retype(ALICE, volume.id, 'multiattach').multiattach
    volumes.attach(ALICE, volume.id, server_id=SERVER, device='/dev/vdb')
    with pytest.raises(errors.Invalid, match='multiattach'):
        volumes.retype(ALICE, volume.id, 'fake')
    assert volumes.get(ALICE, volume.id).volume_type == 'multiattach'


def test_zones(volumes):
    assert volumes.availability_zones(ALICE) == ['nova', 'far']
    assert volumes.create(ALICE, 1, availability_zone='far').availability_zone == 'far'
