"""Features of the built-in volumes that the REST API offers, and compute does not use."""

import threading
import time
import uuid

import pytest

from computeapi import errors
from computeapi.backends.image.local import LocalImages
from computeapi.backends.volume.local import LocalVolumes, attachments
from computeapi.backends.volume.local.types import DEFAULT
from computeapi.context import Context
from computeapi.db.resource_table import ResourceTable
from computeapi.db.volume_types import TYPES
from computeapi.db.volumes import BACKUPS, SNAPSHOTS
from tests.backends.implementations import ADMIN, ALICE, BOB, READER, SERVICE, SHARED
from tests.backends.test_volume import OTHER_SERVER, SERVER, together


@pytest.fixture
def images(store, tmp_path):
    return LocalImages(store, tmp_path / 'images')


@pytest.fixture
def volumes(store, images):
    volumes = LocalVolumes(store, images, types={'fake': {}, 'multiattach': SHARED}, zones=('nova', 'far'))
    volumes.populate()
    return volumes


def test_a_list_takes_as_many_queries_for_one_volume_as_for_many(volumes, asked):
    def queries():
        asked.clear()
        volumes.list(ALICE)
        return len(asked)

    volumes.create(ALICE, 1, metadata={'a': 'b'})
    one = queries()
    for _ in range(4):
        volume = volumes.create(ALICE, 1, metadata={'a': 'b'})
        volumes.complete(ALICE, volumes.reserve(ALICE, volume.id, SERVER), {'host': 'h', 'mountpoint': '/dev/vdb'})
    assert queries() == one


def test_update(volumes):
    volume = volumes.create(ALICE, 1, name='one', metadata={'a': 'b'})
    changed = volumes.update(ALICE, volume.id, name='two', metadata={'c': 'd'}, readonly=True)
    assert (changed.name, changed.metadata, changed.readonly) == ('two', {'c': 'd'}, True)
    assert volumes.get(ALICE, volume.id) == changed


def test_who_completes_again_changes_nothing(volumes):
    volume = volumes.create(ALICE, 1)
    attachment = volumes.reserve(ALICE, volume.id, SERVER)
    volumes.complete(ALICE, attachment, {'host': 'node', 'mountpoint': '/dev/vdb'})
    attached = volumes.get(ADMIN, volume.id)
    volumes.complete(ALICE, attachment, {'host': 'node', 'mountpoint': '/dev/vdb'})
    assert volumes.get(ADMIN, volume.id).attachments == attached.attachments != ()


def test_attachments_can_be_looked_at(volumes):
    volume = volumes.create(ALICE, 1)
    attachment_id = volumes.reserve(ALICE, volume.id, SERVER)
    attachment = volumes.connect(ALICE, attachment_id, {'host': 'node', 'mountpoint': '/dev/vdc', 'ip': '192.0.2.1'})
    assert (attachment.status, attachment.host, attachment.device) == ('attaching', 'node', '/dev/vdc')
    assert attachment.connector['ip'] == '192.0.2.1'
    assert volumes.get(ALICE, volume.id).status == 'attaching'
    volumes.complete(ALICE, attachment_id)
    assert volumes.get(ALICE, volume.id).attachments[0]['device'] == '/dev/vdc'
    assert [one.id for one in volumes.list_attachments(ALICE, filters={'volume_id': volume.id})] == [attachment_id]
    assert volumes.list_attachments(ALICE, filters={'server_id': OTHER_SERVER}) == []
    assert volumes.list_attachments(BOB) == []
    assert len(volumes.list_attachments(ADMIN, all_projects=True)) == 1
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


def test_delete_whatever_the_status(volumes):
    volume = volumes.create(ALICE, 1)
    volumes.reset_status(ADMIN, volume.id, 'creating')
    with pytest.raises(errors.Invalid):
        volumes.delete(ALICE, volume.id)
    volumes.snapshots.create(ADMIN, volumes.create(ALICE, 1).id)
    volumes.delete(ALICE, volume.id, force=True)
    (other,) = volumes.list(ALICE)
    volumes.delete(ALICE, other.id, cascade=True)
    assert volumes.list(ALICE) == []
    assert volumes.snapshots.list(ALICE) == []


def test_reset_status(volumes):
    volume = volumes.create(ALICE, 1)
    volumes.attach(ALICE, volume.id, server_id=SERVER, device='/dev/vdb')
    assert volumes.reset_status(ADMIN, volume.id, 'error').status == 'error'
    volumes.release(ALICE, volumes.get(ALICE, volume.id).attachments[0]['attachment_id'])
    assert volumes.get(ALICE, volume.id).status == 'error'
    assert volumes.reset_status(ADMIN, volume.id, 'available', detached=True).attachments == ()


def test_snapshot_pages(volumes):
    volume = volumes.create(ALICE, 1)
    for name in ('b', 'a', 'c'):
        volumes.snapshots.create(ALICE, volume.id, name=name)
    first, second = volumes.snapshots.list(ALICE, sort=[('name', 'asc')], limit=2)
    assert [snapshot.name for snapshot in (first, second)] == ['a', 'b']
    assert [s.name for s in volumes.snapshots.list(ALICE, sort=[('name', 'asc')], marker=second.id)] == ['c']
    assert volumes.snapshots.count(ALICE) == 3
    with pytest.raises(errors.SnapshotNotFound):
        volumes.snapshots.list(BOB, marker=first.id)


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
        volumes.types.delete(volumes.types.default('apples').id)


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
        volumes.types.projects(volumes.types.default('apples').id)
    assert [kind.name for kind in volumes.types.list(ADMIN, public=False)] == ['secret']


def test_retype(volumes):
    volume = volumes.create(ALICE, 1)
    assert volumes.retype(ALICE, volume.id, 'multiattach').multiattach
    volumes.attach(ALICE, volume.id, server_id=SERVER, device='/dev/vdb')
    with pytest.raises(errors.Invalid, match='multiattach'):
        volumes.retype(ALICE, volume.id, 'fake')
    assert volumes.get(ALICE, volume.id).volume_type == 'multiattach'


def test_a_wanted_id_is_the_id(volumes):
    assert volumes.create(ALICE, 1, volume_id=OTHER_SERVER).id == OTHER_SERVER
    assert volumes.snapshots.create(ALICE, OTHER_SERVER, snapshot_id=SERVER).id == SERVER


def test_what_is_made_of_a_snapshot_has_any_type(volumes):
    snapshot = volumes.snapshots.create(ALICE, volumes.create(ALICE, 1, volume_type='multiattach').id)
    assert volumes.create(ALICE, 5, snapshot_id=snapshot.id, volume_type='fake').volume_type == 'fake'


def test_without_a_size_a_volume_is_as_large_as_what_it_is_made_from(volumes):
    first = volumes.create(ALICE, 2)
    snapshot = volumes.snapshots.create(ALICE, first.id)
    assert volumes.create(ALICE, None, source_volume_id=first.id).size == 2
    assert volumes.create(ALICE, None, snapshot_id=snapshot.id).size == 2
    with pytest.raises(errors.SnapshotNotFound):
        volumes.create(BOB, None, snapshot_id=snapshot.id)
    with pytest.raises(errors.Invalid, match='size'):
        volumes.create(ALICE, None)


def test_changes_of_others_are_refused(volumes):
    with pytest.raises(errors.VolumeNotFound):
        volumes.update(BOB, volumes.create(ALICE, 1).id, name='mine')


def test_lists_of_administrators_in_any_order(volumes):
    one, _ = volumes.create(ALICE, 1, name='one'), volumes.create(ALICE, 2, name='two')
    volumes.create(BOB, 3, name='three')

    def names(context=ALICE, **others):
        return [volume.name for volume in volumes.list(context, **others)]

    assert names(ADMIN, all_projects=True) == ['three', 'two', 'one']
    assert names(ALICE, all_projects=True) == ['two', 'one']
    assert names(offset=1, limit=5) == ['one']
    assert names(sort=[('name', 'asc')], marker=one.id) == ['two']
    assert volumes.totals(ALICE) == (2, 3)
    assert volumes.totals(ADMIN, all_projects=True, filters={'name': ['one', 'three']}) == (2, 4)
    with pytest.raises(errors.Invalid, match='sort'):
        names(sort=[('secret', 'asc')])


def test_what_is_attached_is_not_deleted_by_force(volumes):
    volume = volumes.create(ALICE, 1)
    volumes.attach(ALICE, volume.id, server_id=SERVER, device='/dev/vdb')
    with pytest.raises(errors.Invalid, match='attached'):
        volumes.delete(ALICE, volume.id, force=True)


def test_snapshots_change(volumes):
    snapshot = volumes.snapshots.create(ALICE, volumes.create(ALICE, 2).id, metadata={'a': 'b'})
    assert volumes.snapshots.list(ADMIN, all_projects=True) == [snapshot]
    assert volumes.snapshots.list(ALICE, filters={'volume_id': 'other'}) == []
    assert volumes.snapshots.list(ALICE, filters={'metadata': {'a': 'b'}}) == [snapshot]
    changed = volumes.snapshots.change(ALICE, snapshot.id, lambda now: {'metadata': {**now.metadata, 'c': 'd'}})
    assert volumes.snapshots.get(ALICE, snapshot.id) == changed
    assert changed.metadata == {'a': 'b', 'c': 'd'}
    volumes.snapshots.change(ADMIN, snapshot.id, lambda now: {'status': 'creating'})
    with pytest.raises(errors.Invalid, match='status'):
        volumes.snapshots.delete(ALICE, snapshot.id)
    volumes.snapshots.delete(ALICE, snapshot.id, force=True)
    assert volumes.snapshots.list(ALICE) == []


def test_a_volume_in_error_gets_an_image_and_stays_in_error(volumes, images):
    image = images.create(ALICE, 'system', disk_format='raw', container_format='bare')
    images.upload(ALICE, image.id, [b'x'])
    volume = volumes.create(ALICE, 2)
    volumes.reset_status(ADMIN, volume.id, 'error')
    volumes.reimage(ALICE, volume.id, image.id)
    changed = volumes.get(ALICE, volume.id)
    assert (changed.status, changed.image_metadata['image_id']) == ('error', image.id)
    volumes.reset_status(ADMIN, volume.id, 'maintenance')
    with pytest.raises(errors.Invalid, match='maintenance'):
        volumes.reimage(ALICE, volume.id, image.id)


def test_a_swap_ends_the_migration(volumes):
    old, new = volumes.create(ALICE, 2), volumes.create(ALICE, 3)
    volumes.reset_status(ADMIN, old.id, migration_status='migrating')
    assert volumes.get(ALICE, volumes.swap(ALICE, old.id, new.id)).migration_status is None


def test_quotas_are_set_and_reset(volumes):
    volumes.quotas.set_limits('apples', {'volumes': 2})
    assert volumes.quotas.limits('bananas')['volumes'] == 10
    volumes.snapshots.create(ALICE, volumes.create(ALICE, 5).id)
    usage = volumes.quotas.usage('apples')
    assert (usage['volumes'], usage['snapshots'], usage['gigabytes']) == (1, 1, 10)
    volumes.quotas.reset('apples')
    assert volumes.quotas.limits('apples')['volumes'] == 10
    with pytest.raises(errors.Invalid, match='nonsense'):
        volumes.quotas.set_limits('apples', {'nonsense': 1})


def test_lists_are_filtered(volumes, images):
    facts = {'disk_format': 'raw', 'container_format': 'bare', 'properties': {'hw_disk_bus': 'virtio'}}
    image = images.upload(ALICE, images.create(ALICE, 'system', **facts).id, [b'x'])
    one = volumes.create(ALICE, 1, name='one', metadata={'a': 'b', 'c': 'd'})
    two = volumes.create(ALICE, 2, name='two', image_id=image.id, volume_type='fake')
    volumes.create(BOB, 3, name='three')

    def names(context=ALICE, **others):
        return [volume.name for volume in volumes.list(context, **others)]

    assert names() == ['two', 'one']
    assert names(BOB) == ['three']
    assert names(ADMIN) == []
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
    assert names(marker=two.id) == ['one']
    with pytest.raises(errors.VolumeNotFound):
        names(BOB, marker=one.id)


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
    with pytest.raises(errors.VolumeNotFound):
        volumes.extend(BOB, volume.id, 9)
    with pytest.raises(errors.Forbidden):
        volumes.extend(READER, volume.id, 9)


def test_what_nobody_can_have(volumes):
    with pytest.raises(errors.Invalid, match='metadata'):
        volumes.create(ALICE, 1, metadata={f'k{number}': 'v' for number in range(129)})
    with pytest.raises(errors.Forbidden):
        volumes.create(Context(user_id='ghost'), 1)
    assert volumes.list(ALICE) == []


def test_changes_of_many_servers_at_once(volumes):
    volume = volumes.create(ALICE, 1, volume_type='multiattach')
    kept = [volumes.reserve(ALICE, volume.id, str(uuid.uuid4())) for _ in range(4)]
    assert together(*[lambda a=one: volumes.complete(ALICE, a, {'host': 'h'}) for one in kept]) == []
    assert len(volumes.get(ALICE, volume.id).attachments) == 4


def test_a_service_connects_what_a_reader_does_not(volumes):
    volume = volumes.create(ALICE, 1)
    with pytest.raises(errors.Forbidden):
        volumes.reserve(READER, volume.id, SERVER)
    volumes.release(SERVICE, volumes.reserve(SERVICE, volume.id, SERVER))
    assert volumes.get(ALICE, volume.id).status == 'available'


def test_swap_carries_over_what_the_data_is(volumes, images):
    facts = {'disk_format': 'raw', 'container_format': 'bare'}
    image = images.upload(ALICE, images.create(ALICE, 'system', **facts).id, [b'x'])
    old, new = volumes.create(ALICE, 2, image_id=image.id), volumes.create(ALICE, 3)
    disk = volumes.get(ALICE, volumes.swap(ALICE, old.id, new.id))
    assert disk.image_metadata == old.image_metadata
    assert disk.bootable and disk.migration_status is None


def test_types_that_go_while_a_group_of_them_is_made(volumes):
    group_type = volumes.groups.kinds.create('pairs', description=None, is_public=True, group_specs=None)
    kind = volumes.types.create('gold')

    def wanted(deleted, delete):
        yield kind.id
        delete(deleted.id)

    def create(*which):
        volumes.groups.create(ALICE, group_type.id, wanted(*which), availability_zone='nova')

    with pytest.raises(errors.VolumeTypeNotFound):
        create(kind, volumes.types.delete)
    kind = volumes.types.create('gold')
    with pytest.raises(errors.GroupTypeNotFound):
        create(group_type, lambda type_id: volumes.groups.kinds.delete(ADMIN, type_id))
    assert volumes.groups.list(ALICE) == []


@pytest.fixture
def slow_locks(monkeypatch):
    """Pauses after each lock."""
    lock = ResourceTable.lock

    def slowly(*facts):
        lock(*facts)
        time.sleep(0.3)

    monkeypatch.setattr(ResourceTable, 'lock', slowly)


@pytest.mark.several_writers
@pytest.mark.usefixtures('slow_locks')
def test_who_changes_groups_locks_in_one_order(volumes):
    kind, default = volumes.groups.kinds.create('pairs', description=None, is_public=True, group_specs=None), DEFAULT
    groups = [volumes.groups.create(ALICE, kind.id, [default], availability_zone='nova').id for _ in range(2)]
    one, other, third = (volumes.create(ALICE, 1).id for _ in range(3))
    refused = together(
        lambda: volumes.groups.move(ALICE, groups[0], [one, other], []),
        lambda: volumes.groups.move(ALICE, groups[1], [other, one], []),
    )
    assert refused == [errors.Invalid]
    [first] = {volumes.get(ALICE, volume).group_id for volume in (one, other)}
    refused = together(
        lambda: volumes.create(ALICE, 1, source_volume_id=third, group_id=first),
        lambda: volumes.groups.move(ALICE, first, [third], [one]),
    )
    assert refused == []
    assert len(volumes.groups.get(ALICE, first).volumes) == 3


@pytest.mark.several_writers
@pytest.mark.usefixtures('slow_locks')
def test_an_offer_is_taken_back_while_its_volume_goes(volumes):
    volume = volumes.create(ALICE, 1)
    transfer, _ = volumes.transfers.create(ALICE, volume.id)
    refused = together(
        lambda: volumes.transfers.delete(ALICE, transfer.id), lambda: volumes.delete(ADMIN, volume.id, force=True)
    )
    assert refused in ([], [errors.TransferNotFound])
    assert volumes.list(ALICE) == []


@pytest.mark.several_writers
def test_a_snapshot_is_deleted_while_its_volume_goes_with_all_it_has(volumes, monkeypatch):
    volume, lock = volumes.create(ALICE, 1), SNAPSHOTS.lock
    snapshot = volumes.snapshots.create(ALICE, volume.id)
    going = threading.Thread(target=volumes.delete, args=(ALICE, volume.id), kwargs={'cascade': True})

    def later(*facts):
        lock(*facts)
        going.start()
        going.join(0.5)

    monkeypatch.setattr(SNAPSHOTS, 'lock', later)
    volumes.snapshots.delete(ALICE, snapshot.id)
    going.join()
    assert volumes.list(ALICE) == volumes.snapshots.list(ALICE) == []


@pytest.mark.several_writers
def test_no_backup_is_of_what_changed_since_one_that_goes_meanwhile(volumes, monkeypatch):
    volume, select = volumes.create(ALICE, 1), BACKUPS.select
    first, second = (volumes.backups.create(ALICE, volume.id).id for _ in range(2))
    going = threading.Thread(target=volumes.backups.delete, args=(ALICE, second))

    def later(*facts):
        found = select(*facts)
        monkeypatch.setattr(BACKUPS, 'select', select)
        going.start()
        going.join(0.5)
        return found

    monkeypatch.setattr(BACKUPS, 'select', later)
    made = volumes.backups.create(ALICE, volume.id, incremental=True)
    going.join()
    assert made.parent_id in {each.id for each in volumes.backups.list(ALICE)}


@pytest.mark.several_writers
def test_qos_specs_and_a_type_that_has_them_go_at_once(volumes, monkeypatch):
    kind, lock = volumes.types.create('gold'), TYPES.lock
    qos = volumes.qos.create('fast', 'front-end', {})
    volumes.qos.associate(ADMIN, qos.id, kind.id)
    going = threading.Thread(target=volumes.qos.delete, args=(ADMIN, qos.id), kwargs={'force': True})

    def later(*facts):
        lock(*facts)
        going.start()
        going.join(0.5)

    monkeypatch.setattr(TYPES, 'lock', later)
    volumes.types.delete(kind.id)
    going.join()
    assert volumes.qos.list(ADMIN) == []
    assert 'gold' not in {each.name for each in volumes.types.list(ADMIN)}


def test_a_list_by_much_metadata_is_planned_at_once(volumes):
    metadata = {f'name{number}': 'value' for number in range(120)}
    volume = volumes.create(ALICE, 1, metadata=metadata)
    volumes.create(ALICE, 1, metadata={**metadata, 'name9': 'other'})
    assert [each.id for each in volumes.list(ALICE, filters={'metadata': metadata})] == [volume.id]
    assert volumes.list(ALICE, filters={'metadata': {**metadata, **{f'no{number}': '' for number in range(130)}}}) == []


class Ended:
    """Exports that only record which of them were ended."""

    def __init__(self):
        self.ids = []

    def end(self, attachment_id):
        self.ids.append(attachment_id)


def test_the_exports_of_a_volume_end_with_it(store, images):
    exports = Ended()
    volumes = LocalVolumes(store, images, types={'fake': {}}, exports=exports)
    volumes.populate()
    volume = volumes.create(ALICE, 1)
    attachment = volumes.reserve(ALICE, volume.id, SERVER, connector={'host': 'far'})
    volumes.delete(ADMIN, volume.id, force=True)
    assert exports.ids == [attachment]


def test_a_volume_has_so_many_attachments(volumes, monkeypatch):
    monkeypatch.setattr(attachments, 'MAX_ATTACHMENTS', 2)
    volume = volumes.create(ALICE, 1, multiattach=True)
    for _ in range(2):
        volumes.reserve(ALICE, volume.id, None)
    with pytest.raises(errors.Invalid, match='more than 2'):
        volumes.reserve(ALICE, volume.id, None)
