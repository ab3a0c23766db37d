"""A cloud with built-in services only and agents on its hosts: guests use its images, networks and volumes."""

import os
from contextlib import closing
from pathlib import Path

import pytest

from computeapi.backends.hypervisor.qemu.exports import VolumeExport
from computeapi.backends.hypervisor.qemu.folder import HostFolder
from computeapi.backends.hypervisor.qemu.sockets import connected
from tests import databases
from tests.guests.agents import GuestCloud
from tests.guests.boot_sector import BANNER
from tests.guests.terminal import Terminal

GIB = 1024**3
HOSTS = ('alpha', 'beta', 'gamma')


class BuiltIn(GuestCloud):
    """Also serves as the `driver` of a Terminal; servers are given by ID, and found in the folders of their guests."""

    def volume(self, **kwargs):
        """Creates a volume of 1 GiB; returns its ID when it is available."""
        volume = self.ask('POST', '/volume/v3/volumes', {'volume': {'size': 1, **kwargs}})['volume']['id']
        self.until(lambda: self.status_of(volume) == 'available')
        return volume

    def status_of(self, volume):
        return self.ask('GET', f'/volume/v3/volumes/{volume}')['volume']['status']

    def exports(self):
        """The running processes that export volumes."""
        found = [VolumeExport(path.parent) for path in self.folder.glob('data/exports/*/export.json')]
        return [export.process for export in found if export.process.runs]

    def settle(self, *servers):
        self.until(lambda: self.are_at_rest(servers))

    def host_of(self, server):
        return self.servers()[server]['OS-EXT-SRV-ATTR:host']

    def move(self, server, *others):
        """Live migrate the server to the other host."""
        former = self.host_of(server)
        self.act(server, 'os-migrateLive', {'host': None, 'block_migration': 'auto'})
        self.settle(server, *others)
        assert self.host_of(server) != former

    def of(self, server):
        host = self.host_of(server)
        return HostFolder(self.folder / host / 'qemu' / 'hosts' / host).of(server)

    def console(self, server, protocol):
        return self.of(server) / protocol

    def connect(self, server, protocol, console):
        return connected(console, 5)

    def console_output(self, server, lines):
        return (self.of(server) / 'console.log').read_text(errors='replace')

    def close(self):
        super().close()
        for process in self.exports():
            process.end()


@pytest.fixture
def cloud(transport_url, tmp_path):
    with databases.made('sqlite', tmp_path) as url:
        made = BuiltIn(tmp_path, url, HOSTS)
        try:
            made.start()
            yield made
        finally:
            made.close()


def linux(cloud):
    """The request for a server that boots the tiny Linux."""
    image = cloud.upload('linux', Path(os.environ['COMPUTEAPI_TEST_GUESTS'], 'linux.qcow2').read_bytes(), 'qcow2')
    flavor = {'name': 'tiny', 'vcpus': 1, 'ram': 128, 'disk': 1}
    flavor = cloud.ask('POST', '/v2.1/flavors', {'flavor': flavor})['flavor']['id']
    [network] = cloud.ask('GET', '/networking/v2.0/networks?name=private')['networks']
    return {'imageRef': image, 'flavorRef': flavor, 'networks': [{'uuid': network['id']}]}


def test_guests_behind_agents_have_its_images_networks_and_volumes(cloud):
    server, volume = cloud.create(linux(cloud)), cloud.volume()
    root = cloud.volume(imageRef=cloud.image)
    disk = {'source_type': 'volume', 'uuid': root, 'boot_index': 0, 'destination_type': 'volume'}
    other = cloud.create({'flavorRef': cloud.flavor, 'networks': 'none', 'block_device_mapping_v2': [disk]})
    cloud.settle(server, other)

    [[address]] = cloud.servers()[server]['addresses'].values()
    with closing(Terminal(cloud, server)) as terminal:
        terminal.expect(f'computeapi-guest: address eth0 {address["addr"]}/24')
        terminal.expect('computeapi-guest: ready')
        attached = {'volumeAttachment': {'volumeId': volume}}
        cloud.ask('POST', f'/v2.1/servers/{server}/os-volume_attachments', attached)
        terminal.expect(f'computeapi-guest: disk vdb {GIB} {volume[:20]}')
        terminal.ask('echo "kept" >/dev/vdb; sync')

        # I/O of the guest is completed when the exports are back.
        for process in cloud.exports():
            process.end()
        cloud.control.kill_and_start()
        terminal.ask('echo 3 >/proc/sys/vm/drop_caches; test "$(head -n 1 /dev/vdb)" = kept')
        assert len(cloud.exports()) == 2

    live = {'os-migrateLive': {'host': None, 'block_migration': False}}
    version = {'OpenStack-API-Version': 'compute 2.30'}
    refused = cloud.send('POST', f'/v2.1/servers/{server}/action', json=live, headers=version)
    assert refused.status_code == 400 and 'is not on shared storage: ' in refused.text
    cloud.move(server, other)
    with closing(Terminal(cloud, server)) as terminal:
        cloud.ask('POST', f'/volume/v3/volumes/{volume}/action', {'os-extend': {'new_size': 2}})
        terminal.expect(f'computeapi-guest: disk vdb {2 * GIB} ')
        terminal.ask('echo 3 >/proc/sys/vm/drop_caches; test "$(head -n 1 /dev/vdb)" = kept; echo "moved" >/dev/vdb')
        cloud.agents[cloud.host_of(server)].kill_and_start()
        cloud.ask('DELETE', f'/v2.1/servers/{server}/os-volume_attachments/{volume}')
        terminal.expect('computeapi-guest: disk vdb gone')
    cloud.until(lambda: cloud.status_of(volume) == 'available')
    with (cloud.folder / 'data/volumes' / volume).open('rb') as data:
        assert data.readline() == b'moved\n'

    cloud.move(other, server)
    cloud.act(other, 'reboot', {'type': 'HARD'})
    cloud.until(lambda: f'{BANNER}02' in cloud.console_output(other, None))
    cloud.settle(server, other)
    [process] = cloud.exports()
    cloud.delete([server, other])
    assert not process.runs and not [*cloud.folder.glob('data/exports/*/export.json')]
