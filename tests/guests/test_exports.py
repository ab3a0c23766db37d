"""Volumes of the built-in service are exported to other hosts, and only to those that hold them."""

import socket
import subprocess
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
import webob

from computeapi.backends.hypervisor.qemu import exports as module
from computeapi.backends.hypervisor.qemu import volumes as attached
from computeapi.backends.hypervisor.qemu.drivers import GuestServices, exports_of, local_driver
from computeapi.backends.hypervisor.qemu.exported_volumes import keys_of
from computeapi.backends.hypervisor.qemu.exports import VolumeExport
from computeapi.backends.hypervisor.qemu.work import TooSlow
from computeapi.standalone.volume import cinder
from tests.backends.implementations import ADMIN, ALICE
from tests.guests.boot_sector import BANNER
from tests.guests.machine import SECONDS
from tests.guests.screens import echoes, wrote
from tests.guests.test_volumes import device_of, settled

CALLERS = {'admin': ADMIN, 'alice': ALICE}


@pytest.fixture
def volumes(guests, files, volumes):
    """The volumes, exported to hosts over the network."""
    volumes.exports = exports_of(guests.conf, guests.folder / 'exports', files.path)
    yield volumes
    for attachment in volumes.attachments(ADMIN):
        volumes.release(ADMIN, attachment.id)


@pytest.fixture
def hold(volumes, driver):
    """hold(server_id, volume, by=ADMIN) -> the ID of the server's attachment, on its first host."""

    def hold(server_id, volume, by=ADMIN):
        held = volumes.reserve(by, volume.id, server_id, connector=driver.connector('compute1'))
        volumes.complete(by, held)
        return held

    return hold


class Hosts:
    """The volume service as hosts call it."""

    def __init__(self, volumes):
        self.volumes = volumes

    def connection(self, context, server_id, volume_id, host):
        [held] = self.volumes.attachments(context, server_ids=[server_id], volume_id=volume_id)
        return self.volumes.connection(context, held.id).connection


@pytest.fixture
def driver(guests, volumes):
    guests.conf.set_override('detach_seconds', 20, 'qemu')
    return local_driver(guests.conf, guests.images, GuestServices(exports=Hosts(volumes)))


def exporter_of(guests, attachment_id):
    return VolumeExport(guests.folder / 'exports' / attachment_id).process


def listed(port, *more):
    """Whether a client with these arguments can list the exports."""
    arguments = ['qemu-nbd', *more, '--list', '--bind', '127.0.0.1', '--port', str(port)]
    return subprocess.run(arguments, capture_output=True, check=False).returncode == 0


def test_who_has_not_the_key_of_an_attachment_learns_nothing(guests, volumes, hold, tmp_path):
    volume, server = volumes.create(ALICE, 1), str(uuid.uuid4())
    held = hold(server, volume, ALICE)
    found = volumes.connection(ADMIN, held).connection
    keys = tmp_path / 'keys'
    keys.mkdir()
    shown = ['--object', f'tls-creds-psk,id=key,endpoint=client,dir={keys}', '--tls-creds', 'key']
    (keys / 'keys.psk').write_text(f'qemu:{found["key"]}\n')
    assert listed(found['port'], *shown)
    (keys / 'keys.psk').write_text(f'qemu:{"0" * 64}\n')
    assert not listed(found['port'], *shown) and not listed(found['port'])

    app = cinder(volumes, CALLERS.__getitem__)
    for caller in CALLERS:
        headers = {'X-Auth-Token': caller, 'OpenStack-API-Version': 'volume 3.44'}
        answer = webob.Request.blank(f'/v3/attachments/{held}', headers=headers).get_response(app)
        assert answer.json['attachment']['id'] == held
        assert (found['key'] in answer.text) == (caller == 'admin')


def test_it_is_exported_as_long_as_it_is_attached(guests, volumes, hold):
    volume = volumes.create(ADMIN, 1)
    held = hold(str(uuid.uuid4()), volume)
    found = volumes.connection(ADMIN, held).connection
    exporter_of(guests, held).end()
    volumes.upkeep()
    assert exporter_of(guests, held).runs and volumes.connection(ADMIN, held).connection == found
    other = hold(str(uuid.uuid4()), volumes.create(ADMIN, 1))
    assert volumes.connection(ADMIN, other).connection['key'] != found['key']
    volumes.release(ADMIN, held)
    volumes.detach(ADMIN, volumes.attachment(ADMIN, other).volume_id, other)
    assert not listed(found['port']) and not [*guests.folder.glob('exports/*/')]


def test_a_port_that_somebody_else_has_by_now_is_another_one(guests, volumes, hold):
    held = hold(str(uuid.uuid4()), volumes.create(ADMIN, 1))
    former = volumes.connection(ADMIN, held).connection
    exporter_of(guests, held).end()
    with socket.create_server(('127.0.0.1', former['port'])):
        found = volumes.connection(ADMIN, held).connection
        assert exporter_of(guests, held).runs and found['port'] != former['port']
    assert volumes.connection(ADMIN, held).connection == found
    assert found['key'] == former['key']


def test_one_that_is_slow_to_start_delays_no_other(volumes, monkeypatch):
    monkeypatch.setattr(module, 'LOCK_SECONDS', 1)
    ids = [f'00000000-0000-4000-8000-00000000000{number}' for number in (1, 2)]
    slow, starting, let, start = ids[0], threading.Event(), threading.Event(), VolumeExport.start

    def started(export, *facts):
        if export.path.name == slow:
            starting.set()
            assert let.wait(SECONDS)
        return start(export, *facts)

    monkeypatch.setattr(VolumeExport, 'start', started)
    exports, volume = volumes.exports, volumes.create(ADMIN, 1)
    with ThreadPoolExecutor() as pool:
        found = pool.submit(exports.connection, slow, volume.id)
        try:
            assert starting.wait(SECONDS)
            other = exports.connection(ids[1], volume.id)
        finally:
            let.set()
        assert found.result()['port'] != other['port']
    for each in ids:
        exports.end(each)


def test_a_volume_that_could_not_be_copied_in_time_is_let_go_of(guests, driver, servers, volumes, hold, monkeypatch):
    old = settled(volumes.get, volumes.create(ADMIN, 1, image_id=guests.boot_sector()).id)
    new = volumes.create(ADMIN, 1)
    server = servers.get(servers.add(host='compute1', image_id=None))
    device, replaced = device_of(old, boot_index=0), device_of(new, boot_index=0)
    replaced.uuid = device.uuid
    for volume in (old, new):
        hold(server.uuid, volume)
    driver.spawn(server, [device])
    assert wrote(driver, server, f'{BANNER}01')
    work = driver.look(server)
    with work.monitor() as monitor:
        before = monitor.nodes()
    with monkeypatch.context() as hurried:
        hurried.setattr(attached, 'COPY_SECONDS', -1)
        with pytest.raises(TooSlow):
            driver.swap(server, device, replaced)
    with work.monitor() as monitor:
        assert monitor.nodes() == before and not monitor.execute('query-jobs')
    assert keys_of(work.folder, old.id).exists() and not keys_of(work.folder, new.id).exists()
    driver.swap(server, device, replaced)
    assert keys_of(work.folder, new.id).exists() and echoes(driver, server, 'still there')


def test_a_guest_goes_on_with_another_one(guests, driver, servers, volumes, hold):
    old = settled(volumes.get, volumes.create(ADMIN, 1, image_id=guests.boot_sector()).id)
    new = volumes.create(ADMIN, 2)
    server = servers.get(servers.add(host='compute1', image_id=None))
    device, replaced = device_of(old, boot_index=0), device_of(new, boot_index=0)
    replaced.uuid = device.uuid
    for volume in (old, new):
        hold(server.uuid, volume)
    driver.spawn(server, [device])
    assert wrote(driver, server, f'{BANNER}01')
    for _ in range(2):
        driver.swap(server, device, replaced)
    for size in (3, 4, 5):
        volumes.extend(ADMIN, new.id, size)
        driver.extend(server, replaced)
    with driver.look(server).monitor() as monitor:
        [disk] = [each for each in monitor.execute('query-block') if each.get('inserted')]
        assert disk['inserted']['image']['virtual-size'] == 5 * 1024**3
    driver.reboot(server, hard=True)
    assert wrote(driver, server, f'{BANNER}02')
    folder = driver.look(server).folder
    assert not keys_of(folder, old.id).exists() and keys_of(folder, new.id).exists()
    driver.destroy(server)
