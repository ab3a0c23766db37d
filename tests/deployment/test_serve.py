"""`computeapi serve` for a new user."""

import hashlib
import hmac
import os
import shlex
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import requests

from tests.deployment.conftest import ROOT, free_port

MAX_MEMORY = 120
"""The maximum memory of the idle service, in MB."""
SMALL = {'flavor_id': '1', 'networks': 'none'}


def names(resources):
    return {resource.name for resource in resources}


def test_a_new_cloud_has_what_a_first_server_needs(serve):
    served = serve('--in-memory')
    with served.connect() as cloud:
        assert names(cloud.compute.flavors()) == {'m1.tiny', 'm1.small', 'm1.medium', 'm1.large', 'm1.xlarge'}
        [image] = cloud.image.images()
        assert (image.name, image.disk_format) == ('cirros-0.6.3-x86_64-disk', 'qcow2')
        assert names(cloud.network.networks()) == {'public', 'private', 'demo'}
        assert list(cloud.block_storage.types())
    with served.connect('computeapi-demo') as cloud:
        networks = {network.name: network.id for network in cloud.network.networks()}
        assert networks.keys() == {'public', 'demo'}
        flavor, network = cloud.compute.find_flavor('m1.tiny'), {'uuid': networks['demo']}
        server = cloud.compute.create_server(name='first', flavor_id=flavor.id, image_id=image.id, networks=[network])
        assert cloud.compute.wait_for_server(server, interval=0.1).addresses['demo'][0]['addr'] == '10.1.0.2'
    assert served.process.memory() < MAX_MEMORY
    assert served.process.stop() == 0


def test_its_files_are_the_users_own(serve, tmp_path):
    served = serve()
    folder = tmp_path / 'computeapi-data'
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in [folder, *folder.iterdir()]}
    assert served.clouds == f'{folder}/clouds.yaml'
    assert {'admin-password', 'clouds.yaml', 'openrc', 'computeapi.db'} < modes.keys()
    assert not [name for name, mode in modes.items() if mode & 0o077]


@pytest.mark.parametrize('content', [b'garbage', b'', b'\xff'])
def test_a_key_that_is_damaged_is_named_at_the_start(tmp_path, content):
    (tmp_path / 'credential-key').write_bytes(content)
    command = [sys.executable, '-m', 'computeapi', 'serve', '--port', '0', '--data-dir', str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    [line] = done.stderr.splitlines()
    assert done.returncode == 2 and f'{tmp_path}/credential-key is not a key' in line


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
    password = first.password
    assert first.process.stop() == 0
    second = serve()
    assert second.password == password
    with second.connect() as cloud:
        assert 'm1.tiny' not in names(cloud.compute.flavors())
        assert [pair.name for pair in cloud.compute.keypairs()] == ['mine']


def test_a_new_password_replaces_the_one_so_far(serve):
    serve().process.stop()
    changed = serve('--admin-password', 'changed')
    assert changed.password == 'changed'
    with changed.connect() as cloud:
        assert names(cloud.compute.flavors())


def test_one_process_at_a_time(serve, start):
    serve()
    second = start(['-m', 'computeapi', 'serve', '--port', '0'])
    assert second.process.wait(timeout=30) == 2
    assert 'computeapi-data is in use by another process' in second.log.read_text()


def test_a_port_that_is_taken_is_an_error_in_one_line(serve, start):
    port = serve('--in-memory').url.rpartition(':')[2]
    second = start(['-m', 'computeapi', 'serve', '--in-memory', '--port', port])
    assert second.process.wait(timeout=30) == 2
    [line] = second.log.read_text().splitlines()
    assert f'Port {port} of 127.0.0.1 is in use' in line and '--port' in line


@pytest.mark.parametrize('host', ['192.0.2.1', 'no..host', 'x' * 64])
def test_an_address_that_cannot_be_had_is_named(start, host):
    service = start(['-m', 'computeapi', 'serve', '--in-memory', '--port', '0', '--host', host])
    assert service.process.wait(timeout=30) == 2
    [line] = service.log.read_text().splitlines()
    assert line.startswith(f'computeapi: Port 0 of {host} (--port): ')


@pytest.mark.parametrize(
    ('values', 'reason'),
    [
        ('spawn_seconds = 5  # a boot takes its time', 'spawn_seconds'),
        ('fail = spawn:bad, migrat', '[simulated]fail: there is no operation migrat; there are attach, '),
    ],
)
def test_a_mistake_about_the_simulation_is_an_error_in_one_line(start, tmp_path, values, reason):
    (tmp_path / 'computeapi.conf').write_text(f'[simulated]\n{values}\n')
    process = start(['-m', 'computeapi', 'serve', '--in-memory', '--port', '0', '--config-file', 'computeapi.conf'])
    assert process.process.wait(timeout=30) == 2
    [line] = process.log.read_text().splitlines()
    assert reason in line


def test_who_needs_another_host_is_told_how_to_get_one(serve):
    with serve('--in-memory').connect() as cloud:
        image = next(cloud.image.images())
        server = cloud.compute.create_server(name='server', image_id=image.id, **SMALL)
        cloud.compute.wait_for_server(server)
        cloud.compute.migrate_server(server)
        while cloud.compute.get_server(server).task_state:
            pass
        [migrated] = [each for each in cloud.compute.server_actions(server) if each.action == 'migrate']
        events = cloud.compute.get_server_action(migrated, server).events
        assert all('--hosts' in event.details for event in events) and events


def test_guests_have_a_port_of_their_own(serve, tmp_path):
    port = free_port()
    served = serve('--metadata-port', str(port))
    with served.connect() as cloud:
        server = cloud.compute.create_server(name='web', image_id=next(cloud.image.images()).id, **SMALL)
        secret = (tmp_path / 'computeapi-data' / 'metadata-secret').read_text().strip()
        signature = hmac.new(secret.encode(), server.id.encode(), hashlib.sha256).hexdigest()
        headers = {
            'X-Instance-ID': server.id,
            'X-Tenant-ID': cloud.current_project_id,
            'X-Instance-ID-Signature': signature,
        }
    url = f'http://127.0.0.1:{port}/openstack/latest/meta_data.json'
    assert requests.get(url, headers=headers, timeout=30).json()['name'] == 'web'
    assert requests.get(url, headers=headers | {'X-Instance-ID-Signature': 'forged'}, timeout=30).status_code == 403
    assert requests.get(f'{served.url}/openstack/latest/meta_data.json', headers=headers, timeout=30).status_code == 300
    assert requests.get(f'{served.url}/ui/', timeout=30).status_code == 200
    assert requests.get(f'http://127.0.0.1:{port}/ui/', headers=headers, timeout=30).status_code == 404
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
    password = served.password
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


def test_passwords_are_shown_on_terminals_only(serve, start, tmp_path):
    served = serve()
    assert served.password not in served.greeting
    served.process.stop()
    shown = on_terminal([sys.executable, '-m', 'computeapi', 'serve', '--port', '0'], tmp_path, 'curl')
    assert f'OS_PASSWORD={served.password}' in shown


def on_terminal(command, folder, until):
    """The output of the command on a terminal, up to a word; then it is stopped."""
    ours, theirs = os.openpty()
    environment = os.environ | {'PYTHONPATH': str(ROOT)}
    process = subprocess.Popen(command, stdout=theirs, stderr=subprocess.DEVNULL, cwd=folder, env=environment)
    os.close(theirs)
    shown = b''
    while until.encode() not in shown:
        shown += os.read(ours, 4096)
    process.terminate()
    process.wait(timeout=30)
    os.close(ours)
    return shown.decode().replace('\r\n', '\n')


def test_links_name_the_public_url_and_no_other_host(serve):
    served = serve('--in-memory', '--public-url', 'https://cloud.example.org')
    assert 'ready at https://cloud.example.org ' in served.greeting
    assert 'https://cloud.example.org/identity/v3' in Path(served.openrc).read_text()


@pytest.mark.parametrize(('host', 'warned'), [('127.0.0.1', False), ('0.0.0.0', True)])
def test_whoever_trusts_everybody_on_the_network_is_warned(serve, host, warned):
    served = serve('--in-memory', '--host', host, OS_API__AUTH_STRATEGY='none')
    served.process.stop()
    assert ('auth_strategy' in served.process.log.read_text()) is warned
