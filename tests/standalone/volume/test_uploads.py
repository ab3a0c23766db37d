"""Images that are made of volumes."""

import shutil
import threading
import time
from pathlib import Path

import pytest

from computeapi.backends.volume.local import LocalVolumes
from computeapi.backends.volume.local.files import FileFilling, VolumeFiles
from computeapi.errors import Error
from computeapi.standalone.volume import cinder
from tests.standalone.volume.conftest import authenticate

UPLOAD = 'os-volume_upload_image'
MIB = 2**20


def test_an_image_of_a_volume_without_data_is_a_simulated_disk(create, act, status, images, alice):
    volume = create()
    act(volume, 'os-set_image_metadata', {'metadata': {'hw_disk_bus': 'scsi', 'image_id': 'gone'}}, expect=200)
    made = act(volume, UPLOAD, {'image_name': 'made', 'disk_format': 'qcow2'}).json[UPLOAD]
    image = images.get(alice, made['image_id'])
    assert (made['status'], status(volume), image.status) == ('uploading', 'available', 'active')
    assert image.properties == {'hw_disk_bus': 'scsi'}
    with images.download(alice, image.id).file as file:
        assert file.read().startswith(f'simulated disk of {volume["id"]} at '.encode())


def test_what_cannot_be_uploaded_leaves_no_image(create, act, status, images, alice, monkeypatch):
    def full(*asked):
        raise Error('There is no room.')

    volume, before = create(), images.list(alice)
    monkeypatch.setattr(images, 'upload', full)
    act(volume, UPLOAD, {'image_name': 'made', 'protected': True})
    assert (status(volume), images.list(alice)) == ('available', before)


class TestWithData:
    @pytest.fixture
    def volumes(self, store, images, tmp_path):
        files = VolumeFiles(tmp_path / 'volumes', lambda *asked: None)
        volumes = LocalVolumes(store, images, types={'fake': {}}, files=files)
        volumes.populate()
        return volumes

    @pytest.fixture
    def app(self, volumes):
        return cinder(volumes, authenticate)

    def test_an_image_has_what_the_volume_has(self, create, act, status, images, alice, tmp_path):
        volume = create(description='mine')
        with (tmp_path / 'volumes' / volume['id']).open('r+b') as file:
            file.write(b'data')
            # As long as it should be, it would take its time.
            file.truncate(MIB)
        made = act(volume, UPLOAD, {'image_name': 'made', 'protected': False}).json[UPLOAD]
        image_id = made.pop('image_id')
        assert made.pop('updated_at') and made.pop('volume_type')['name'] == '__DEFAULT__'
        assert made == {
            'id': volume['id'],
            'status': 'uploading',
            'size': 1,
            'display_description': 'mine',
            'image_name': 'made',
            'disk_format': 'raw',
            'container_format': 'bare',
            'visibility': 'private',
            'protected': False,
        }
        deadline = time.monotonic() + 60
        while status(volume) == 'uploading':
            assert time.monotonic() < deadline
            time.sleep(0.05)
        image = images.get(alice, image_id)
        assert (status(volume), image.status, image.size) == ('available', 'active', MIB)
        with images.download(alice, image_id).file as file:
            assert file.read(5) == b'data\0'

    def test_a_volume_that_its_server_leaves_meanwhile_is_available(
        self, ask, create, act, status, images, monkeypatch
    ):
        left, volume = threading.Event(), create()
        held = {'volume_uuid': volume['id'], 'instance_uuid': None, 'connector': {'host': 'here'}}
        attachment = ask('POST /v3/attachments', {'attachment': held}, version='3.43').json['attachment']['id']
        assert status(volume) == 'in-use'
        monkeypatch.setattr(images, 'upload', lambda *asked: left.wait(60))
        act(volume, UPLOAD, {'image_name': 'made', 'force': True})
        ask(f'DELETE /v3/attachments/{attachment}')
        left.set()
        deadline = time.monotonic() + 60
        while status(volume) == 'uploading':
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert status(volume) == 'available'

    def test_what_a_volume_is_made_of_may_go_at_once(self, ask, create, status, monkeypatch, tmp_path):
        volume, begin = create(), FileFilling.begin
        (tmp_path / 'volumes' / volume['id']).write_bytes(b'data')

        def later(*asked):
            ask(f'DELETE /v3/volumes/{volume["id"]}', expect=202)
            begin(*asked)

        monkeypatch.setattr(FileFilling, 'begin', later)
        copy = create(source_volid=volume['id'])
        deadline = time.monotonic() + 60
        while status(copy) == 'creating':
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert status(copy) == 'available'
        with (tmp_path / 'volumes' / copy['id']).open('rb') as file:
            assert file.read(5) == b'data\0'

    @pytest.fixture
    def group(self, ask):
        kind = ask('POST /v3/group_types', {'group_type': {'name': 'together'}}, by='admin', expect=202).json
        asked = {'group_type': kind['group_type']['id'], 'volume_types': ['fake']}
        return ask('POST /v3/groups', {'group': asked}, expect=202).json['group']['id']

    def test_what_is_still_filled_is_in_its_group_already(self, create, group):
        copy = create(volume_type='fake', group_id=group, source_volid=create()['id'])
        assert (copy['status'], copy['group_id']) == ('creating', group)

    def test_what_goes_with_its_group_takes_its_data_along(self, ask, create, group, tmp_path):
        alone, member = create(), create(volume_type='fake', group_id=group)
        files = tmp_path / 'volumes'
        assert {each.name for each in files.iterdir()} == {alone['id'], member['id']}
        ask(f'POST /v3/groups/{group}/action', {'delete': {'delete-volumes': True}}, expect=202)
        assert [each.name for each in files.iterdir()] == [alone['id']]

    def test_what_goes_while_a_service_starts_keeps_it_from_nothing(self, volumes, create, tmp_path, monkeypatch):
        create()
        listed = Path.glob

        def late(folder, pattern):
            yield from listed(folder, pattern)
            yield folder / 'gone.part'

        monkeypatch.setattr(Path, 'glob', late)
        volumes.recover()

    def test_there_is_as_much_room_as_on_the_disk(self, ask, tmp_path):
        [pool] = ask('GET /v3/scheduler-stats/get_pools?detail=true', by='admin').json['pools']
        total, free = (pool['capabilities'][f'{what}_capacity_gb'] for what in ('total', 'free'))
        assert total == shutil.disk_usage(tmp_path).total // 2**30 and 0 <= free <= total

    def test_a_volume_in_use_takes_force(self, ask, create, act):
        volume = create()
        ask('POST /v3/attachments', {'attachment': {'volume_uuid': volume['id'], 'instance_uuid': None}})
        act(volume, UPLOAD, {'image_name': 'made'}, expect=400)
        act(volume, UPLOAD, {'image_name': 'made', 'disk_format': 'vmdk'}, expect=400)
