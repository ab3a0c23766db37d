"""Volumes with data, as guests see them."""

import os
import subprocess
import time
import uuid
from contextlib import ExitStack, closing
from dataclasses import fields, replace

import pytest

from computeapi.backends.hypervisor import HypervisorError
from computeapi.backends.hypervisor.qemu.drivers import GuestServices, local_driver
from computeapi.backends.volume.local.filling import PASSING
from computeapi.clock import utcnow
from computeapi.db.servers import BlockDevice
from computeapi.errors import ImageNotFound, Invalid
from tests.backends.implementations import ADMIN
from tests.conftest import FLAVOR
from tests.guests import boot_sector
from tests.guests.boot_sector import BANNER
from tests.guests.machine import SECONDS
from tests.guests.screens import echoes, wrote
from tests.guests.terminal import Terminal

GIB = 1024**3


@pytest.fixture
def driver(guests, files):
    guests.conf.set_override('detach_seconds', SECONDS, 'qemu')
    return local_driver(guests.conf, guests.images, GuestServices(volumes=files.path))


def settled(get, thing_id):
    """The record, as soon as it is in no transitional status."""
    deadline = time.monotonic() + SECONDS
    while (found := get(ADMIN, thing_id)).status in PASSING:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


def device_of(volume, **kwargs):
    unset = dict.fromkeys((each.name for each in fields(BlockDevice)), None)
    held = {'uuid': str(uuid.uuid4()), 'volume_id': volume.id, 'volume_size': volume.size, 'created_at': utcnow()}
    return BlockDevice(**unset | {'source_type': 'volume', 'destination_type': 'volume'} | held | kwargs)


def started(stack, driver, servers, image_id, devices=()):
    """A server and its console."""
    flavor = FLAVOR | {'memory_mb': 128}
    server = servers.get(servers.add(host='compute1', image_id=image_id, flavor=flavor, memory_mb=128))
    driver.spawn(server, devices)
    stack.callback(driver.destroy, server)
    terminal = stack.enter_context(closing(Terminal(driver, server)))
    terminal.expect('computeapi-guest: ready')
    terminal.expect('# ')
    return server, terminal


def test_what_is_written_on_one_server_is_read_on_another(driver, servers, volumes, tiny_linux):
    volume = volumes.create(ADMIN, 1)
    with ExitStack() as stack:
        first, writer = started(stack, driver, servers, tiny_linux)
        second, reader = started(stack, driver, servers, tiny_linux)
        device = device_of(volume)
        driver.attach(first, device)
        driver.attach(first, device)
        writer.expect(f'computeapi-guest: disk vdb {GIB} {volume.id[:20]}')
        writer.ask('echo "from the first" >/dev/vdb; sync')
        driver.detach(first, device)
        driver.detach(first, device)
        writer.expect('computeapi-guest: disk vdb gone')
        driver.attach(second, device)
        reader.expect(f'computeapi-guest: disk vdb {GIB} {volume.id[:20]}')
        assert 'from the first\n' in reader.ask('head -n 1 /dev/vdb')
        volumes.extend(ADMIN, volume.id, 2)
        driver.extend(second, device)
        reader.expect(f'computeapi-guest: disk vdb {2 * GIB} {volume.id[:20]}')
        driver.reboot(second, hard=True)
        reader.expect('computeapi-guest: ready')
        with closing(Terminal(driver, second)) as again:
            again.seen = reader.seen
            assert 'from the first\n' in again.ask('head -n 1 /dev/vdb')


def test_a_volume_takes_the_place_of_another_while_its_server_runs(driver, servers, volumes, tiny_linux, files):
    old, new = volumes.create(ADMIN, 1), volumes.create(ADMIN, 2)
    with ExitStack() as stack:
        device = device_of(old)
        server, terminal = started(stack, driver, servers, tiny_linux, [device])
        terminal.ask('echo "before" >/dev/vdb; sync')
        replaced = device_of(new, uuid=device.uuid)
        driver.swap(server, device, replaced)
        driver.swap(server, device, replaced)
        terminal.expect(f'computeapi-guest: disk vdb {2 * GIB} ')
        terminal.ask('echo "after" >/dev/vdb; sync')
        driver.detach(server, replaced)
    assert files.path(old.id).read_bytes()[:7] == b'before\n'
    with files.path(new.id).open('rb') as file:
        assert file.read(6) == b'after\n'


def test_a_server_boots_from_a_volume_that_is_made_from_an_image(driver, servers, volumes, tiny_linux):
    volume = settled(volumes.get, volumes.create(ADMIN, 1, image_id=tiny_linux).id)
    assert volume.status == 'available'
    with ExitStack() as stack:
        server, terminal = started(stack, driver, servers, None, [device_of(volume, boot_index=0)])
        terminal.ask('echo "kept" >/mnt/file; sync')
    copy = settled(volumes.get, volumes.create(ADMIN, 1, source_volume_id=volume.id).id)
    with ExitStack() as stack:
        server, terminal = started(stack, driver, servers, None, [device_of(copy, boot_index=0)])
        assert 'kept\n' in terminal.ask('cat /mnt/file')


def test_a_guest_moves_and_its_volume_stays_where_it_is(guests, driver, servers, volumes, files):
    volume = settled(volumes.get, volumes.create(ADMIN, 1, image_id=guests.boot_sector()).id)
    server = servers.get(servers.add(host='compute1', image_id=None))
    driver.spawn(server, [device_of(volume, boot_index=0)])
    assert wrote(driver, server, f'{BANNER}01')
    facts = driver.prepare_live_migration(server, 'compute2', driver.describe(server))
    assert driver.live_migrate(server, 'compute2', facts, 'running')
    there = replace(server, host='compute2')
    assert echoes(driver, there, 'moved')
    driver.upkeep()
    driver.reboot(there, hard=True)
    assert wrote(driver, there, f'{BANNER}02')
    facts = driver.prepare_migration(there, 'compute1', driver.describe(there))
    driver.migrate(there, 'compute1', facts)
    driver.destroy(there)
    driver.power_on(server)
    assert wrote(driver, server, f'{BANNER}03')
    driver.destroy(server)
    assert files.path(volume.id).exists()


def test_volumes_snapshots_and_backups_have_data_of_their_own(volumes, files):
    volume = volumes.create(ADMIN, 100)
    path = files.path(volume.id)
    assert (path.stat().st_size, path.stat().st_blocks) == (100 * GIB, 0)
    write(path, b'first')
    snapshot = settled(volumes.get_snapshot, volumes.create_snapshot(ADMIN, volume.id).id)
    write(path, b'later')
    backup = settled(volumes.backups.get, volumes.backups.create(ADMIN, volume.id).id)
    write(path, b'worse')
    copy = settled(volumes.get, volumes.create(ADMIN, 101, snapshot_id=snapshot.id).id)
    assert files.path(copy.id).stat().st_size == 101 * GIB
    assert (beginning(files, snapshot), beginning(files, copy), beginning(files, backup)) == (
        b'first',
        b'first',
        b'later',
    )
    volumes.backups.restore(ADMIN, backup, volume.id)
    assert (settled(volumes.get, volume.id).status, beginning(files, volume)) == ('available', b'later')
    volumes.revert(ADMIN, volume.id, snapshot.id)
    assert (settled(volumes.get, volume.id).status, beginning(files, volume)) == ('available', b'first')
    assert sum(each.stat().st_blocks for each in files.directory.iterdir()) < 1000
    volumes.delete_snapshot(ADMIN, snapshot.id)
    volumes.backups.delete(ADMIN, backup.id)
    for each in (volume, copy):
        volumes.delete(ADMIN, each.id)
    assert list(files.directory.iterdir()) == []


@pytest.mark.parametrize('disk_format', ['raw', 'qcow2'])
def test_an_image_is_made_of_a_volume(guests, volumes, files, disk_format):
    volume = settled(volumes.get, volumes.create(ADMIN, 1, image_id=guests.boot_sector()).id)
    os.truncate(files.path(volume.id), 1 << 20)
    uploading, image = volumes.upload(ADMIN, volume.id, 'made', disk_format=disk_format)
    assert uploading.status == 'uploading'
    assert settled(volumes.get, volume.id).status == 'available'
    found = guests.images.get(ADMIN, image.id)
    assert (found.status, found.disk_format, found.min_disk) == ('active', disk_format, 1)
    again = settled(volumes.get, volumes.create(ADMIN, 1, image_id=image.id).id)
    with files.path(again.id).open('rb') as file:
        assert file.read(512) == boot_sector.sector()


def test_an_image_that_cannot_be_made_of_a_volume_is_not_left(guests, volumes, files):
    volume = volumes.create(ADMIN, 1)
    with pytest.raises(Invalid):
        volumes.upload(ADMIN, volume.id, 'made', disk_format='vmdk')
    files.delete(volume.id)
    image = volumes.upload(ADMIN, volume.id, 'made')[1]
    assert settled(volumes.get, volume.id).status == 'available'
    with pytest.raises(ImageNotFound):
        guests.images.get(ADMIN, image.id)


def write(path, data):
    with path.open('r+b') as file:
        file.write(data)


def beginning(files, thing):
    with files.path(thing.id).open('rb') as file:
        return file.read(5)


def test_a_volume_that_cannot_be_filled_is_in_error(guests, volumes, files):
    large = guests.folder / 'large.qcow2'
    subprocess.run(['qemu-img', 'create', '-q', '-f', 'qcow2', large, '3G'], check=True)
    image_id = guests.image(large.read_bytes(), 'qcow2')
    assert settled(volumes.get, volumes.create(ADMIN, 2, image_id=image_id).id).status == 'error'
    volume = volumes.create(ADMIN, 3)
    volumes.reimage(ADMIN, volume.id, image_id)
    assert settled(volumes.get, volume.id).status == 'available'
    files.delete(volume.id)
    assert settled(volumes.get, volumes.create(ADMIN, 3, source_volume_id=volume.id).id).status == 'error'


def test_what_nobody_fills_any_more_is_in_error(guests, volumes, files):
    volume = volumes.create(ADMIN, 1)
    filling = files.begin(volume.id)
    volumes.reset_status(ADMIN, volume.id, 'creating')
    volumes.recover()
    assert volumes.get(ADMIN, volume.id).status == 'creating'
    filling.end()
    volumes.recover()
    assert volumes.get(ADMIN, volume.id).status == 'error'


def test_what_nobody_came_to_delete_goes(volumes, files):
    kept, fresh = volumes.create(ADMIN, 1), str(uuid.uuid4())
    left = [files.path(str(uuid.uuid4())), files.path(kept.id).with_suffix('.part')]
    for path in left:
        path.touch()
    for path in (*left, files.path(kept.id)):
        os.utime(path, (0, 0))
    files.make_blank(fresh, 1)
    volumes.recover()
    assert {path.name for path in files.directory.iterdir()} == {kept.id, fresh}


def test_a_volume_without_data_here_is_not_attached(driver, servers, volumes, files):
    volume = volumes.create(ADMIN, 1)
    files.delete(volume.id)
    server = servers.get(servers.add(host='compute1'))
    driver.spawn(server, [])
    with pytest.raises(HypervisorError, match='no data on this host'):
        driver.attach(server, device_of(volume))
    driver.destroy(server)
