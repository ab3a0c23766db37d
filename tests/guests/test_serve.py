"""A cloud with real guests as a user sees it: through the SDK, with `computeapi serve`."""

import contextlib
from pathlib import Path

import pytest
from openstack.exceptions import BadRequestException, raise_from_response

from computeapi.backends.hypervisor.qemu.folder import HostFolder
from computeapi.backends.hypervisor.qemu.process import GuestProcess
from tests.consoles.viewers import Terminal, Viewer
from tests.deployment.conftest import serve, start  # noqa: F401
from tests.guests import boot_sector
from tests.guests.boot_sector import BANNER
from tests.guests.screens import wait_until

TIMEOUT = {'interval': 0.1, 'wait': 60}


def running(folder):
    """The running guests on the hosts of a cloud."""
    hosts = [HostFolder(path) for path in (folder / 'qemu/hosts').glob('*')]
    return [process for host in hosts for guest in host.all() if (process := GuestProcess(guest)).runs]


@pytest.fixture
def data(tmp_path):
    """The data directory of a cloud, whose guests are stopped at the end of the test."""
    yield tmp_path / 'data'
    for process in running(tmp_path / 'data'):
        process.end()


@pytest.fixture
def cloud(serve, data):
    """cloud(*arguments) -> the served cloud, started again with all its data, and its client."""

    def cloud(*arguments, **options):
        where = [] if '--in-memory' in arguments else ['--data-dir', str(data)]
        served = serve('--hypervisor', 'qemu', *where, *arguments, OS_QEMU__SHUTDOWN_TIMEOUT='0', **options)
        return served, served.connect()

    return cloud


def boot(client, data, **kwargs):
    """A server with the boot sector, created as a user does."""
    disk = boot_sector.write_disk(data.with_name('disk'), disk_format='qcow2')
    common = {'disk_format': 'qcow2', 'container_format': 'bare', 'wait': True, 'timeout': 60}
    image = client.create_image('boot', data=disk.read_bytes(), **common)
    flavor = client.create_flavor('nano', 16, 1, 1)
    return create(client, 'first', image, flavor, **kwargs)


def create(client, name, image, flavor, **kwargs):
    network = client.network.find_network('private')
    common = {'image_id': image.id, 'flavor_id': flavor.id, 'networks': [{'uuid': network.id}]}
    return reached(client, client.compute.create_server(name=name, **common, **kwargs), 'ACTIVE')


def reached(client, server, status):
    return client.compute.wait_for_server(server, status, **TIMEOUT)


def wrote(client, server, text):
    return wait_until(lambda: text in client.get_server_console(server), f'{text!r} is not written')


def test_a_server_boots_runs_and_leaves_nothing(cloud, data):
    served, client = cloud()
    server = boot(client, data)
    assert server.status == 'ACTIVE' and wrote(client, server, f'{BANNER}01')

    with Terminal(client.compute.create_console(server, 'serial')['url'], subprotocols=['binary']) as terminal:
        terminal.type('typed at a terminal')
        assert terminal.read_until('typed at a terminal')
    url = client.compute.create_console(server, 'novnc')['url'].replace('http://', 'ws://')
    path = url.partition('path=')[2].replace('%3F', '?').replace('%3D', '=')
    with Viewer(f'{url.partition("/vnc")[0]}/{path}', subprotocols=['binary']) as viewer:
        assert server.id in viewer.name and (viewer.width, viewer.height) >= (640, 400)

    image = client.create_image_snapshot('later', server, wait=True, timeout=60)
    copied = create(client, 'second', image, client.compute.find_flavor('nano'))
    assert wrote(client, copied, f'{BANNER}02')

    for change, status in {'pause': 'PAUSED', 'unpause': 'ACTIVE', 'suspend': 'SUSPENDED', 'resume': 'ACTIVE'}.items():
        getattr(client.compute, f'{change}_server')(server)
        assert reached(client, server, status)
    for change, status in {'stop': 'SHUTOFF', 'start': 'ACTIVE'}.items():
        getattr(client.compute, f'{change}_server')(server)
        assert reached(client, server, status)
    assert wrote(client, server, f'{BANNER}02')

    guests = running(data)
    assert len(guests) == 2
    served.process.stop()
    assert all(guest.runs for guest in guests)
    _, client = cloud()
    assert wrote(client, server, f'{BANNER}02')
    for each in (server, copied):
        client.compute.delete_server(each)
        client.compute.wait_for_delete(each, interval=0.1, wait=60)
    assert not running(data) and not any(guest.folder.path.exists() for guest in guests)


def test_servers_are_resized_and_moved_between_the_hosts_of_a_cloud(cloud, data):
    _, client = cloud('--hosts', '2')
    server = boot(client, data, config_drive=True)
    assert wrote(client, server, f'{BANNER}01')
    where = server.compute_host
    with pytest.raises(BadRequestException, match=f'{where} is not on local storage: Block migration can not be used'):
        live = {'host': None, 'block_migration': True}
        answer = client.compute.post(f'/servers/{server.id}/action', json={'os-migrateLive': live}, microversion='2.30')
        raise_from_response(answer)
    client.compute.live_migrate_server(server, block_migration=False)
    moved = wait_until(lambda: (found := client.compute.get_server(server.id)).compute_host != where and found)
    reached(client, moved, 'ACTIVE')
    assert client.get_server_console(server) == ''

    larger = client.create_flavor('micro', 32, 2, 2)
    client.compute.resize_server(server, larger.id)
    reached(client, moved, 'VERIFY_RESIZE')
    assert wrote(client, server, f'{BANNER}02')
    client.compute.confirm_server_resize(server)
    reached(client, moved, 'ACTIVE')
    found = client.compute.get_server_diagnostics(server)
    assert (found.num_cpus, len(running(data))) == (2, 1)


def test_a_server_that_switches_itself_off_is_found_to_be(cloud, data):
    _, client = cloud(OS_DEFAULT__SYNC_POWER_STATE_INTERVAL='1')
    server = boot(client, data)
    for before in ('ACTIVE', 'PAUSED'):
        if before == 'PAUSED':
            client.compute.pause_server(server)
            reached(client, server, 'PAUSED')
        [guest] = running(data)
        guest.end()
        assert reached(client, server, 'SHUTOFF')
        client.compute.start_server(server)
        assert reached(client, server, 'ACTIVE') and wrote(client, server, f'{BANNER}')


def arguments_of_all():
    """The command lines of all processes on this machine."""
    for path in Path('/proc').glob('[0-9]*/cmdline'):
        with contextlib.suppress(OSError):
            yield path.read_bytes()


def test_what_is_in_memory_only_ends_with_the_service(cloud, data):
    served, client = cloud('--in-memory', OS_VOLUME__EXPORTED='true')
    volume = client.block_storage.create_volume(size=1).id
    held = {'volume_uuid': volume, 'connector': {'host': 'another'}}
    assert client.block_storage.post('/attachments', json={'attachment': held}, microversion='3.44').ok
    marks = [f'guest={boot(client, data).id}'.encode(), f'"{volume}"'.encode()]

    def found():
        return [mark for mark in marks if any(mark in arguments for arguments in arguments_of_all())]

    assert found() == marks
    served.process.stop()
    assert found() == []
