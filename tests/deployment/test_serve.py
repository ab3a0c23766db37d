"""`computeapi serve`, as somebody uses it who has nothing yet."""

import hashlib
import hmac
import os
import re
import shlex
import signal
import socket
import stat
import subprocess

import pytest
import requests
from openstack.config import OpenStackConfig
from openstack.connection import Connection

MOST_MEMORY = 120
"""What the service may take of a machine, in MB, before it has done anything."""
SMALL = {'flavor_id': '1', 'networks': 'none'}


class Served:
    """A running `computeapi serve` and what it printed."""

    def __init__(self, process):
        self.process = process
        self.greeting = process.lines_until('curl')
        self.url = re.search('ready at (http://\\S+)', self.greeting)[1]
        self.openrc, self.clouds = re.findall('also in (\\S+):', self.greeting)

    def connect(self, cloud='computeapi'):
        """An unmodified SDK, set up by the file that the service wrote."""
        config = OpenStackConfig(config_files=[self.clouds], vendor_files=[], secure_files=[])
        return Connection(config=config.get_one(cloud))


@pytest.fixture
def serve(start):
    def serve(*arguments, **environment):
        command = ['-m', 'computeapi.cli', 'serve', '--port', '0', *arguments]
        return Served(start(command, environment))

    return serve


@pytest.fixture
def free_port():
    with socket.create_server(('127.0.0.1', 0)) as listening:
        return listening.getsockname()[1]


def names(resources):
    return {resource.name for resource in resources}


def test_a_new_cloud_has_what_a_first_server_needs(serve):
    served = serve('--in-memory')
    with served.connect() as cloud:
        assert names(cloud.compute.flavors()) == {'m1.tiny', 'm1.small', 'm1.medium', 'm1.large', 'm1.xlarge'}
        [image] = cloud.image.images()
        assert (image.name, image.disk_format) == ('cirros-0.6.3-x86_64-disk', 'qcow2')
        assert names(cloud.network.networks()) == {'public', 'private'}
        assert list(cloud.block_storage.types())
    with served.connect('computeapi-demo') as cloud:
        assert cloud.compute.find_flavor('m1.tiny').ram == 512
    assert served.process.memory() < MOST_MEMORY
    assert served.process.stop() == 0


def test_its_files_are_the_users_own(serve, tmp_path):
    served = serve()
    folder = tmp_path / 'computeapi-data'
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in [folder, *folder.iterdir()]}
    assert served.clouds == f'{folder}/clouds.yaml'
    assert {'admin-password', 'clouds.yaml', 'openrc', 'computeapi.db'} < modes.keys()
    assert not [name for name, mode in modes.items() if mode & 0o077]


def test_the_openrc_file_sets_up_a_shell(serve):
    served = serve('--in-memory', '--admin-password', "it's $HOME")
    shown = subprocess.run(['sh', '-c', f'. {shlex.quote(served.openrc)}; env'], capture_output=True, text=True)
    variables = dict(line.split('=', 1) for line in shown.stdout.splitlines() if line.startswith('OS_'))
    assert variables['OS_PASSWORD'] == "it's $HOME"
    assert variables['OS_AUTH_URL'] == f'{served.url}/identity/v3'


def test_the_next_start_finds_everything_again(serve):
    first = serve()
    with first.connect() as cloud:
        cloud.compute.delete_flavor('1')
        cloud.compute.create_keypair(name='mine')
    password = re.search('OS_PASSWORD=(.*)', first.greeting)[1]
    assert first.process.stop() == 0
    second = serve()
    assert password in second.greeting
    with second.connect() as cloud:
        assert 'm1.tiny' not in names(cloud.compute.flavors())
        assert [pair.name for pair in cloud.compute.keypairs()] == ['mine']


def test_a_new_password_replaces_the_one_so_far(serve):
    serve().process.stop()
    changed = serve('--admin-password', 'changed')
    assert 'OS_PASSWORD=changed\n' in changed.greeting
    with changed.connect() as cloud:
        assert names(cloud.compute.flavors())


def test_one_process_at_a_time(serve, start):
    serve()
    second = start(['-m', 'computeapi.cli', 'serve', '--port', '0'])
    assert second.process.wait(timeout=30) == 2
    assert 'computeapi-data is in use by another process' in second.log.read_text()


def test_a_port_that_is_taken_is_an_error_in_one_line(serve, start):
    port = serve('--in-memory').url.rpartition(':')[2]
    second = start(['-m', 'computeapi.cli', 'serve', '--in-memory', '--port', port])
    assert second.process.wait(timeout=30) == 2
    assert second.log.read_text().count('\n') == 1


def test_guests_have_a_port_of_their_own(serve, free_port, tmp_path):
    served = serve('--metadata-port', str(free_port))
    with served.connect() as cloud:
        server = cloud.compute.create_server(name='web', image_id=cloud.image.find_image('cirros').id, **SMALL)
        secret = (tmp_path / 'computeapi-data' / 'metadata-secret').read_text().strip()
        signature = hmac.new(secret.encode(), server.id.encode(), hashlib.sha256).hexdigest()
        headers = {
            'X-Instance-ID': server.id,
            'X-Tenant-ID': cloud.current_project_id,
            'X-Instance-ID-Signature': signature,
        }
    url = f'http://127.0.0.1:{free_port}/openstack/latest/meta_data.json'
    assert requests.get(url, headers=headers, timeout=30).json()['name'] == 'web'
    assert requests.get(url, headers=headers | {'X-Instance-ID-Signature': 'forged'}, timeout=30).status_code == 403
    assert requests.get(f'{served.url}/openstack/latest/meta_data.json', headers=headers, timeout=30).status_code == 300
    assert secret not in served.process.log.read_text()


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGINT])
def test_nothing_stays_of_a_cloud_in_memory(serve, number):
    served = serve('--in-memory')
    folder = os.path.dirname(served.clouds)
    assert os.path.isdir(folder)
    assert served.process.stop(number) == 0
    assert not os.path.exists(folder)


def test_secrets_are_not_logged(serve):
    served = serve('--in-memory', OS_DEFAULT__DEBUG='true')
    with served.connect() as cloud:
        token = cloud.auth_token
        assert names(cloud.compute.flavors())
    password = re.search('OS_PASSWORD=(.*)', served.greeting)[1]
    served.process.stop()
    log = served.process.log.read_text()
    assert '"GET /v2.1/flavors' in log
    assert token not in log and password not in log


def test_without_tokens(serve):
    served = serve('--in-memory', OS_API__AUTH_STRATEGY='none')
    with served.connect() as cloud:
        assert names(cloud.compute.flavors()) and names(cloud.image.images()) and names(cloud.network.networks())


def test_with_a_password_for_each_request(serve):
    served = serve('--in-memory', OS_API__AUTH_STRATEGY='http_basic')
    with served.connect() as cloud:
        assert names(cloud.compute.flavors())
