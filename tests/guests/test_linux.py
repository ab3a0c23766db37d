"""The tiny Linux works as the tests expect."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.deployment.conftest import free_port
from tests.guests.machine import SECONDS, disk, machine

MAC = 'fa:16:3e:00:00:01'


@pytest.fixture
def linux(tmp_path):
    """A disk of its own, based on the image built by tests/guests/build."""
    folder = os.environ.get('COMPUTEAPI_TEST_GUESTS')
    assert folder, 'tests/guests/install makes the guests, and says where they are.'
    image, overlay = Path(folder, 'linux.qcow2'), tmp_path / 'linux.qcow2'
    subprocess.run(['qemu-img', 'create', '-q', '-f', 'qcow2', '-F', 'qcow2', '-b', image, overlay], check=True)
    return disk(overlay, 'qcow2')


@pytest.fixture
def key(tmp_path):
    subprocess.run(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', tmp_path / 'key'], check=True)
    return tmp_path / 'key'


def config_drive(folder, documents):
    """The arguments for a config drive with these documents, by name."""
    for name, content in documents.items():
        path = folder / 'config' / 'openstack' / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    drive = f'driver=vvfat,dir={folder / "config"},label=config-2,read-only=on,node-name=config'
    return ['-blockdev', drive, '-device', 'virtio-blk-pci,drive=config']


def network(forwarded=''):
    return ['-netdev', f'user,id=net{forwarded}', '-device', f'virtio-net-pci,netdev=net,mac={MAC}']


def ssh(key, port, command):
    """The output of a command in the guest behind a port of the host."""
    options = ['BatchMode=yes', 'StrictHostKeyChecking=no', 'UserKnownHostsFile=/dev/null', 'LogLevel=ERROR']
    arguments = [word for option in options for word in ('-o', option)]
    return subprocess.check_output(
        ['ssh', '-i', key, '-p', str(port), *arguments, 'cirros@127.0.0.1', command], text=True, timeout=SECONDS
    )


def test_it_is_what_its_config_drive_says(tmp_path, linux, key):
    documents = {
        'latest/meta_data.json': {
            'hostname': 'first.novalocal',
            'public_keys': {'mine': key.with_suffix('.pub').read_text()},
            'files': [{'path': '/opt/some/file', 'content_path': 'content/0000'}],
        },
        'latest/user_data': '#!/bin/sh\necho "what the user wants"\nexit 3\n',
        'content/0000': 'from outside',
    }
    port = free_port()
    drive = config_drive(tmp_path, documents)
    with machine(tmp_path, *linux, *drive, *network(f',hostfwd=tcp:127.0.0.1:{port}-:22')) as guest:
        guest.expect(f'computeapi-guest: interface eth0 {MAC}\r\n')
        guest.expect('computeapi-guest: address eth0 10.0.2.15/24\r\n')
        guest.expect('computeapi-guest: hostname first\r\n')
        guest.expect('computeapi-guest: ready\r\n')
        guest.expect('what the user wants\r\n')
        guest.expect('computeapi-guest: user_data ended with 3\r\n')
        assert ssh(key, port, 'sudo hostname; cat /opt/some/file') == 'first\nfrom outside'


def test_it_takes_an_address_that_is_written_down(tmp_path, linux):
    route = {'network': '0.0.0.0', 'netmask': '0.0.0.0', 'gateway': '192.0.2.1'}
    facts = {
        'links': [{'id': 'tap1', 'ethernet_mac_address': MAC.upper(), 'mtu': 1400}],
        'networks': [
            {'type': 'ipv4', 'link': 'other', 'ip_address': '192.0.2.8', 'netmask': '255.255.255.0', 'routes': []},
            {'type': 'ipv4', 'link': 'tap1', 'ip_address': '192.0.2.9', 'netmask': '255.255.255.0', 'routes': [route]},
        ],
    }
    drive = config_drive(tmp_path, {'latest/network_data.json': facts})
    with machine(tmp_path, *linux, *drive, *network()) as guest:
        guest.expect('computeapi-guest: address eth0 192.0.2.9/24\r\n')
        guest.expect('# ')
        assert 'default via 192.0.2.1 dev eth0' in guest.ask('ip route')
        assert guest.ask('cat /sys/class/net/eth0/mtu').count('1400\r\n') == 1


def test_it_says_what_comes_and_goes(tmp_path, linux):
    with (tmp_path / 'volume').open('wb') as file:
        file.truncate(1 << 20)
    with machine(tmp_path, *linux) as guest:
        guest.expect('computeapi-guest: ready\r\n')
        file = {'driver': 'file', 'filename': str(tmp_path / 'volume')}
        guest.execute('blockdev-add', driver='raw', file=file, **{'node-name': 'volume'})
        guest.execute('device_add', driver='virtio-blk-pci', id='disk', drive='volume', serial='0123-4567')
        guest.expect('computeapi-guest: disk vdb 1048576 0123-4567\r\n')
        guest.execute('block_resize', size=2 << 20, **{'node-name': 'volume'})
        guest.expect('computeapi-guest: disk vdb 2097152 0123-4567\r\n')
        guest.execute('device_del', id='disk')
        guest.expect('computeapi-guest: disk vdb gone\r\n')
        guest.execute('netdev_add', type='user', id='net')
        guest.execute('device_add', driver='virtio-net-pci', id='card', netdev='net', mac=MAC)
        guest.expect(f'computeapi-guest: interface eth0 {MAC}\r\n')
        guest.expect('computeapi-guest: address eth0 10.0.2.15/24\r\n')
        guest.execute('device_del', id='card')
        guest.expect('computeapi-guest: interface eth0 gone\r\n')


def test_it_ends_at_the_power_button_and_keeps_what_was_written(tmp_path, linux):
    with machine(tmp_path, *linux) as guest:
        guest.expect('computeapi-guest: ready\r\n')
        guest.ask('echo "written before" >/mnt/file')
        guest.execute('system_powerdown')
        guest.expect('computeapi-guest: power button\r\n')
        assert guest.wait() == 0
    with machine(tmp_path, *linux) as guest:
        guest.expect('computeapi-guest: ready\r\n')
        assert 'written before\r\n' in guest.ask('cat /mnt/file')
