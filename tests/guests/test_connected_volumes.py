"""Volumes of a Cinder, connected by os-brick; here with the driver volume type `local`, a path on the host."""

import fcntl
import json
import os
import uuid
from contextlib import ExitStack

import pytest

from computeapi.backends.hypervisor import HypervisorError
from computeapi.backends.hypervisor.qemu.drivers import GuestServices, local_driver
from computeapi.errors import AttachmentNotFound
from tests.guests.test_volumes import GIB, device_of, started


class Cinder:
    """A fake that says where volumes are, and records for which hosts."""

    def __init__(self, folder):
        self.folder, self.attached, self.facts = folder, {}, {}
        folder.mkdir()

    def volume(self, name):
        (self.folder / name).touch()
        self.extend(name, GIB)
        return Volume(name)

    def extend(self, name, size):
        os.truncate(self.folder / name, size)

    def connection(self, context, server_id, volume_id, host):
        if host not in self.attached.get((server_id, volume_id), ()):
            raise AttachmentNotFound(id=f'of volume {volume_id} on host {host}')
        return {'driver_volume_type': 'local', 'device_path': str(self.folder / volume_id), **self.facts}


class Volume:
    size = 1

    def __init__(self, name):
        self.id = name


@pytest.fixture
def cinder(tmp_path):
    return Cinder(tmp_path / 'cinder')


@pytest.fixture
def driver(guests, cinder):
    guests.conf.set_override('detach_seconds', 20, 'qemu')
    return local_driver(guests.conf, guests.images, GuestServices(connections=cinder))


@pytest.fixture
def server(servers):
    return servers.get(servers.add(host='compute1'))


def notes(guests):
    return sorted(path.relative_to(guests.state / 'hosts') for path in guests.state.glob('hosts/*/guests/*/volume-*'))


def test_a_guest_has_them_as_disks(driver, servers, guests, cinder, tiny_linux):
    volume = cinder.volume('one')
    with ExitStack() as stack:
        server, terminal = started(stack, driver, servers, tiny_linux)
        cinder.attached[server.uuid, volume.id] = {'compute1'}
        device = device_of(volume)
        driver.attach(server, device)
        driver.attach(server, device)
        terminal.expect(f'computeapi-guest: disk vdb {GIB} one')
        terminal.ask('echo "kept" >/dev/vdb; sync')
        cinder.extend(volume.id, 2 * GIB)
        driver.extend(server, device)
        terminal.expect(f'computeapi-guest: disk vdb {2 * GIB} one')
        driver.detach(server, device)
        terminal.expect('computeapi-guest: disk vdb gone')
        assert notes(guests) == []
    with (cinder.folder / volume.id).open('rb') as data:
        assert data.readline() == b'kept\n'


def test_a_guest_is_connected_again_when_it_starts_and_no_more_when_it_is_gone(driver, server, guests, cinder):
    volume = cinder.volume('one')
    cinder.attached[server.uuid, volume.id] = {'compute1'}
    driver.spawn(server, [device_of(volume)])
    driver.power_off(server)
    [note] = notes(guests)
    (guests.state / 'hosts' / note).unlink()
    driver.power_on(server)
    assert notes(guests) == [note]
    # Cinder has migrated the volume, and has another name for it now.
    cinder.attached.clear()
    driver.reboot(server, hard=True)
    driver.destroy(server)
    assert notes(guests) == []


def test_a_guest_that_moves_leaves_no_connection_behind(driver, server, guests, cinder):
    volume = cinder.volume(str(uuid.uuid4()))
    cinder.attached[server.uuid, volume.id] = {'compute1'}
    driver.spawn(server, [device_of(volume)])
    with pytest.raises(HypervisorError, match=f'volume {volume.id} on host compute2'):
        driver.prepare_live_migration(server, 'compute2', driver.describe(server))
    cinder.attached[server.uuid, volume.id] = {'compute1', 'compute2'}
    facts = driver.prepare_live_migration(server, 'compute2', driver.describe(server))
    assert [str(note)[:8] for note in notes(guests)] == ['compute1', 'compute2']
    assert driver.live_migrate(server, 'compute2', facts, 'running')
    [note] = notes(guests)
    assert str(note).startswith('compute2')


def test_others_do_not_wait_for_what_cinder_says_of_a_volume(driver, server, cinder, monkeypatch):
    volume, ask, lock = cinder.volume('one'), cinder.connection, driver.host('compute1').volumes.lock
    cinder.attached[server.uuid, volume.id] = {'compute1'}

    def slowly(*arguments):
        with lock.open('a') as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return ask(*arguments)

    monkeypatch.setattr(cinder, 'connection', slowly)
    driver.spawn(server, [device_of(volume)])


def test_what_was_connected_is_in_no_description(driver, server, guests, cinder):
    """The connection info contains secrets, and each host gets its own."""
    volume = cinder.volume('one')
    cinder.attached[server.uuid, volume.id] = {'compute1'}
    cinder.facts = {'auth_password': 'open sesame'}
    driver.spawn(server, [device_of(volume)])
    [note] = notes(guests)
    assert 'open sesame' in (guests.state / 'hosts' / note).read_text()
    assert 'open sesame' not in json.dumps(driver.describe(server))


@pytest.mark.parametrize(
    ('facts', 'words'),
    [
        ({'encrypted': True}, 'encrypted'),
        ({'format': 'qcow2'}, 'qcow2'),
        ({'access_mode': 'ro'}, 'read-only'),
        ({'driver_volume_type': 'punched_cards'}, 'punched_cards'),
        ({'device_path': None}, 'connected'),
    ],
)
def test_volumes_that_guests_cannot_use_are_refused(driver, server, guests, cinder, facts, words):
    volume = cinder.volume('one')
    cinder.attached[server.uuid, volume.id] = {'compute1'}
    cinder.facts = facts
    driver.spawn(server, [])
    with pytest.raises(HypervisorError, match=words):
        driver.attach(server, device_of(volume))


def test_two_guests_of_a_host_share_a_connection_until_both_are_gone(driver, servers, guests, cinder, monkeypatch):
    from os_brick.initiator.connectors.local import LocalConnector

    gone = []
    monkeypatch.setattr(LocalConnector, 'disconnect_volume', lambda self, data, *args, **more: gone.append(data))
    volume, device = cinder.volume('one'), None
    both = [servers.get(servers.add(host='compute1')) for _ in range(2)]
    for server in both:
        cinder.attached[server.uuid, volume.id] = {'compute1'}
        device = device_of(volume)
        driver.spawn(server, [device])
    driver.destroy(both[0])
    assert gone == []
    driver.destroy(both[1])
    assert len(gone) == 1


def test_a_host_says_what_it_is_to_block_storage(driver):
    found = driver.connector('compute2')
    assert (found['host'], found['ip'], found['multipath']) == ('compute2', '127.0.0.1', False)
