"""Servers whose guests QEMU runs: what they boot, keep and lose."""

import base64
import json
import os
import signal
import subprocess
import sys
import time
import uuid
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
from oslo_config import cfg
from pycdlib import PyCdlib

from computeapi.backends.hypervisor import HypervisorError, NotYet, Outdated, PowerState, Unfit
from computeapi.backends.hypervisor.behaviour import at_once
from computeapi.backends.hypervisor.qemu import migration_destination, migration_source
from computeapi.backends.hypervisor.qemu.child import Child
from computeapi.backends.hypervisor.qemu.console_log import MAX_BYTES
from computeapi.backends.hypervisor.qemu.detached_process import is_alive
from computeapi.backends.hypervisor.qemu.monitor import Monitor
from computeapi.backends.hypervisor.qemu.process import GuestProcess, exporter_of
from computeapi.backends.image import blank
from tests.conftest import FLAVOR
from tests.guests import boot_sector
from tests.guests.boot_sector import BANNER
from tests.guests.screens import behind_cards, echoes, wait_until, wrote

CARD = {'port_id': 'aaaaaaaa', 'mac_address': 'fa:16:3e:00:00:01', 'addresses': []}


@pytest.fixture
def shared():
    """Whether both hosts store their guests on shared storage."""
    return False


@pytest.fixture
def driver(guests, shared):
    if not shared:
        guests.keep_apart('compute2')
    return guests.driver()


@pytest.fixture
def made(servers, driver):
    """made(**facts) -> a small server on the first host, which is not spawned yet."""

    def made(**kwargs):
        flavor = FLAVOR | {'memory_mb': 16}
        return servers.get(servers.add(**{'host': 'compute1', 'flavor': flavor} | kwargs))

    return made


def process(driver, server):
    return GuestProcess(driver.folder(server))


# ------------------------------------------------------------------ booting


@pytest.mark.parametrize('disk_format', ['raw', 'qcow2'])
@pytest.mark.parametrize('board', ['pc', 'q35'])
def test_it_boots_an_image_and_remembers(guests, driver, made, disk_format, board):
    server = made(image_id=guests.boot_sector(disk_format), image_properties={'hw_machine_type': board})
    driver.spawn(server, [])
    assert wrote(driver, server, f'{BANNER}01')
    driver.reboot(server, hard=True)
    assert wrote(driver, server, f'{BANNER}02')


@pytest.mark.parametrize(
    'wanted, board', {'pc-q35-7.2': 'q35', 'q35': 'q35', 'pc-i440fx-6.2': 'pc', 'pc': 'pc'}.items()
)
def test_boards_are_known_by_their_names_with_versions(driver, made, wanted, board):
    server = made(image_properties={'hw_machine_type': wanted})
    driver.spawn(server, [])
    assert driver.folder(server).existing().machine == board


def test_a_board_that_is_not_there_is_refused(driver, made):
    with pytest.raises(HypervisorError, match='Machine type virt is not supported here'):
        driver.spawn(made(image_properties={'hw_machine_type': 'virt'}), [])


def test_a_kernel_must_be_one_that_its_project_may_see(guests, driver, made):
    secret = guests.image(b'of another project', 'aki', visibility='private')
    with pytest.raises(HypervisorError, match=f'Image {secret} is not available to project project'):
        driver.spawn(made(kernel_id=secret), [])
    public = guests.image(b'no kernel', 'aki')
    with pytest.raises(HypervisorError, match=f'Image {secret} is not available to project project'):
        driver.spawn(made(kernel_id=public, ramdisk_id=secret), [])
    assert not list((guests.state / 'images').glob(f'{secret}*'))


def test_what_no_kernel_can_be_told_is_refused(guests, driver, made):
    properties = {'os_command_line': 'console=ttyS0\0quiet'}
    with pytest.raises(Unfit, match='os_command_line'):
        driver.spawn(made(kernel_id=guests.image(b'no kernel', 'aki'), image_properties=properties), [])


def qcow2(folder, *options):
    path = folder / 'made.qcow2'
    subprocess.run(['qemu-img', 'create', '-q', '-f', 'qcow2', *options, path, '1M'], check=True, cwd=folder)
    return path.read_bytes()


def test_what_refers_to_other_files_is_refused(guests, driver, made, tmp_path):
    backed = qcow2(tmp_path, '-b', '/etc/passwd', '-F', 'raw')
    (tmp_path / 'made.qcow2').unlink()
    apart = qcow2(tmp_path, '-o', 'data_file=secret,data_file_raw=on')
    for data in (backed, apart):
        server = made(image_id=guests.image(data, 'qcow2'))
        with pytest.raises(Unfit, match='refers to other files'):
            driver.spawn(server, [])
        assert driver.power_state(server) is None


def test_what_is_not_what_it_says_is_refused(guests, driver, made, tmp_path):
    disguised = guests.image(qcow2(tmp_path), 'raw'), guests.image(boot_sector.sector() * 8, 'qcow2')
    for image_id in disguised:
        with pytest.raises(Unfit, match='its content does not match'):
            driver.spawn(made(image_id=image_id), [])
    with pytest.raises(Unfit, match='supports raw and qcow2'):
        driver.spawn(made(image_id=guests.image(b'KDMV', 'vmdk')), [])


def test_a_disk_that_is_larger_than_the_flavor_allows_is_refused(guests, driver, made, tmp_path):
    path = tmp_path / 'large.qcow2'
    subprocess.run(['qemu-img', 'create', '-q', '-f', 'qcow2', path, '2G'], check=True)
    server = made(image_id=guests.image(path.read_bytes(), 'qcow2'))
    with pytest.raises(HypervisorError, match='2147483648 bytes'):
        driver.spawn(server, [])
    roomy = made(image_id=server.image_id, root_gb=2)
    driver.spawn(roomy, [])
    assert driver.power_state(roomy) is PowerState.RUNNING


def test_an_image_is_fetched_once_and_by_whoever_can_wait_in_pieces(guests, driver, made):
    server = made()
    while True:
        try:
            driver.during(lambda step: 0.0, 1).spawn(server, [])
            break
        except NotYet as pause:
            time.sleep(min(pause.seconds, 0.1))
    guests.images.delete = guests.images.download = None
    driver.spawn(made(), [])
    assert len([path for path in (guests.state / 'images').glob('*') if not path.suffix]) == 1


def test_an_image_is_kept_as_long_as_a_guest_needs_it(guests, made):
    driver = guests.driver(image_cache_hours=0)
    server = made()
    driver.spawn(server, [])
    [image] = [path for path in (guests.state / 'images').glob('*') if not path.suffix]
    driver.upkeep()
    assert image.exists()
    driver.destroy(server)
    driver.upkeep()
    assert not list((guests.state / 'images').glob('*'))
    driver.spawn(server, [])
    assert wrote(driver, server, f'{BANNER}01')


def test_the_processor_executes_guests_where_one_was_seen_to_run(guests, made):
    driver = guests.driver(accelerator='auto')
    found = {host.accelerator for host in driver.driven.values()}
    assert found <= {'kvm', 'tcg'} and len(found) == 1
    kept = guests.state / 'accelerator'
    assert kept.read_text().endswith(f' {found.pop()}')
    # It is not retried.
    kept.write_text(kept.read_text().rpartition(' ')[0] + ' tcg')
    again = guests.driver()
    assert {host.accelerator for host in again.driven.values()} == {'tcg'}
    server = made()
    again.spawn(server, [])
    assert wrote(again, server, BANNER)


def test_config_drives_hold_what_they_were_given(driver, made):
    documents = {
        'openstack/latest/meta_data.json': json.dumps({'hostname': 'first'}).encode(),
        'openstack/latest/network_data.json': b'{}',
        'openstack/content/0000': bytes(range(256)),
    }
    server = made()
    driver.spawn(server, [], documents)
    disc = PyCdlib()
    disc.open(str(driver.folder(server) / 'config.iso'))
    try:
        for name, data in documents.items():
            with disc.open_file_from_iso(rr_path=f'/{name}') as file:
                assert file.read() == data
        assert disc.pvd.volume_identifier.strip() == b'config-2'
    finally:
        disc.close()


# ------------------------------------------------------------------ restarts of the driver


def test_a_driver_that_starts_anew_finds_the_guests_of_the_one_before(guests, driver, made):
    server = made()
    driver.spawn(server, [])
    wrote(driver, server, f'{BANNER}01')
    pid, other = process(driver, server).pid, guests.driver()
    assert list(other.machines()) == [(server.uuid, 'compute1')]
    assert other.power_state(server) is PowerState.RUNNING and echoes(other, server, 'still here')
    other.spawn(server, [])
    assert process(other, server).pid == pid


def test_a_guest_that_is_killed_is_off_and_can_be_switched_on(driver, made):
    server = made()
    driver.spawn(server, [])
    wrote(driver, server, f'{BANNER}01')
    os.kill(process(driver, server).pid, signal.SIGKILL)
    wait_until(lambda: driver.power_state(server) is PowerState.SHUTDOWN)
    driver.power_on(server)
    assert wrote(driver, server, f'{BANNER}02')


def test_what_was_being_written_when_somebody_died_goes_with_the_next_that_is_done(driver, made):
    server = made()
    driver.spawn(server, [])
    half = driver.folder(server) / f'root.qcow2.{uuid.uuid4().hex}.part'
    half.touch()
    driver.pause(server)
    assert not half.exists()


SPAWNING = """
import pickle, sys
from computeapi import config
from computeapi.backends.hypervisor.qemu.drivers import local_driver
from computeapi.backends.image.local import LocalImages
from computeapi.db.engine import Store
overrides, url, folder, server, act = pickle.load(sys.stdin.buffer)
conf = config.load(overrides=overrides)
driver = local_driver(conf, LocalImages(Store(url, durable=False), folder))
print('ready', flush=True)
sys.stdin.buffer.read(1)
getattr(driver, act)(server, *([[]] if act == 'spawn' else []))
"""


def killed(guests, server, act, seconds):
    """Let another process do it, and kill that process after this many seconds."""
    import pickle

    options = {('qemu', name): guests.conf.qemu[name] for name in ('state_path', 'host_name', 'hosts')}
    given = pickle.dumps((options, guests.store.url, guests.folder / 'images', server, act))
    child = subprocess.Popen([sys.executable, '-c', SPAWNING], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with child:
        child.stdin.write(given)
        child.stdin.flush()
        assert child.stdout.readline() == b'ready\n'
        child.stdin.write(b'!')
        child.stdin.flush()
        time.sleep(seconds)
        child.kill()


@pytest.mark.parametrize('database', ['sqlite'], indirect=True)
@pytest.mark.parametrize('seconds', [0.02, 0.07, 0.15, 0.3])
def test_whatever_is_cut_short_is_ended_by_the_next_call(guests, driver, made, seconds):
    server = made()
    killed(guests, server, 'spawn', seconds)
    driver.spawn(server, [])
    assert driver.power_state(server) is PowerState.RUNNING and wrote(driver, server, BANNER)
    killed(guests, server, 'suspend', seconds)
    driver.suspend(server)
    assert driver.power_state(server) is PowerState.SHUTDOWN
    killed(guests, server, 'resume', seconds)
    driver.resume(server)
    assert echoes(driver, server, 'awake')
    killed(guests, server, 'destroy', seconds)
    driver.destroy(server)
    assert driver.power_state(server) is None and not driver.folder(server).path.exists()


# ------------------------------------------------------------------ power


def test_a_guest_that_heeds_no_power_button_is_given_time(guests, made):
    driver = guests.driver(shutdown_timeout=7)
    server = made()
    driver.spawn(server, [])
    wrote(driver, server, BANNER)
    with pytest.raises(NotYet):
        driver.during(lambda step: 0.0, 1).power_off(server)
    assert driver.power_state(server) is PowerState.RUNNING
    driver.during(lambda step: 8.0, 1).power_off(server)
    assert driver.power_state(server) is PowerState.SHUTDOWN


def test_an_image_gives_its_guests_no_time_without_end(driver, made):
    server = made(image_properties={'os_shutdown_timeout': '9' * 20})
    driver.spawn(server, [])
    wrote(driver, server, BANNER)
    with pytest.raises(NotYet):
        driver.during(lambda step: 60.0, 1).power_off(server)
    driver.during(lambda step: 3600.0, 1).power_off(server)
    assert driver.power_state(server) is PowerState.SHUTDOWN


def test_memory_outlives_a_suspension(driver, made):
    server = made()
    driver.spawn(server, [])
    wrote(driver, server, f'{BANNER}01')
    driver.suspend(server)
    driver.suspend(server)
    assert not process(driver, server).runs
    driver.resume(server)
    driver.resume(server)
    assert echoes(driver, server, 'as it was')
    assert f'{BANNER}02' not in driver.console_output(server, None)


def test_a_guest_that_was_cut_off_just_when_it_ran_again_does_not_go_back_in_time(driver, made, monkeypatch):
    server = made()
    driver.spawn(server, [])
    wrote(driver, server, f'{BANNER}01')
    driver.suspend(server)
    execute = Monitor.execute

    def cut_off(monitor, command, **arguments):
        told = execute(monitor, command, **arguments)
        if command == 'cont':
            process(driver, server).end()
            raise HypervisorError('The power of the host failed.')
        return told

    with monkeypatch.context() as failing:
        failing.setattr(Monitor, 'execute', cut_off)
        with pytest.raises(HypervisorError, match='power'):
            driver.resume(server)
    with pytest.raises(HypervisorError, match='is not suspended'):
        driver.resume(server)
    driver.reboot(server, hard=True)
    assert wrote(driver, server, f'{BANNER}02')


def test_a_suspended_guest_that_is_rebooted_begins_anew(driver, made):
    server = made()
    driver.spawn(server, [])
    wrote(driver, server, f'{BANNER}01')
    driver.suspend(server)
    driver.reboot(server, hard=True)
    assert wrote(driver, server, f'{BANNER}02')


def test_a_guest_that_is_rebooted_while_it_is_suspended_leaves_no_part_of_its_memory(driver, made, monkeypatch):
    server = made()
    driver.spawn(server, [])
    wrote(driver, server, f'{BANNER}01')
    sends = iter([False])
    with monkeypatch.context() as slow:
        slow.setattr(Monitor, 'sends', lambda monitor: next(sends, True))
        with pytest.raises(NotYet):
            driver.during(lambda step: 0.0, 1).suspend(server)
    driver.during(lambda step: 0.0, 2).reboot(server, hard=True)
    assert wrote(driver, server, f'{BANNER}02')
    assert not list(driver.folder(server).path.glob('memory*'))


def test_rescue_boots_another_image_and_leaves_the_disk_alone(guests, driver, made):
    server = made()
    driver.spawn(server, [])
    wrote(driver, server, f'{BANNER}01')
    other = (
        boot_sector.write_disk(guests.folder / 'other').read_bytes().replace(b'computeapi-guest', b'computeapi-other')
    )
    driver.rescue(server, guests.image(other))
    assert wrote(driver, server, 'computeapi-other: boot 01')
    driver.unrescue(server)
    assert wrote(driver, server, f'{BANNER}02')


def test_a_server_in_rescue_has_no_disk_without_bounds(guests, made, tmp_path):
    driver = guests.driver(max_image_bytes=2**21)
    server = made(root_gb=1)
    driver.spawn(server, [])
    path = tmp_path / 'large.qcow2'
    subprocess.run(['qemu-img', 'create', '-q', '-f', 'qcow2', path, '60T'], check=True)
    large = guests.image(path.read_bytes(), 'qcow2')
    with pytest.raises(Unfit, match='can have at most 1073741824'):
        driver.rescue(server, large)
    with pytest.raises(Unfit, match='can have at most 2097152'):
        driver.spawn(made(image_id=large, root_gb=0), [])
    assert driver.power_state(server) is PowerState.RUNNING


@pytest.fixture
def full(guests):
    """A function that fills the disk of the first host."""
    small = guests.state / 'hosts' / 'compute1'
    small.mkdir(parents=True)
    subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=4m,mode=711', 'none', small], check=True)

    def fill():
        with (small / 'filler').open('wb', buffering=0) as file, pytest.raises(OSError, match='No space left'):
            while file.write(bytes(4096)):
                pass

    yield fill
    for folder in guests.folders():
        GuestProcess(folder).end()
    # A QEMU that was killed has its files open for another moment.
    subprocess.run(['umount', '--lazy', small], check=True)


def test_servers_go_from_a_host_whose_disk_is_full(full, driver, made):
    server, other = made(), made()
    driver.during(lambda step: 0.0, 8, 8).spawn(server, [])
    wrote(driver, server, f'{BANNER}01')
    full()
    for operation, arguments in {'spawn': (other, []), 'describe': (server,)}.items():
        with pytest.raises(HypervisorError, match='The disk of host compute1 is full'):
            getattr(driver.during(lambda step: 0.0, 9, 9), operation)(*arguments)
    driver.during(lambda step: 0.0, 10, 10).destroy(other)
    with pytest.raises(HypervisorError):
        driver.suspend(server)
    assert driver.power_state(server) is PowerState.RUNNING
    driver.during(lambda step: 0.0, 10, 10).destroy(server)
    with pytest.raises(Outdated):
        driver.during(lambda step: 0.0, 9, 9).power_on(server)
    driver.spawn(other, [])
    assert list(driver.machines()) == [(other.uuid, 'compute1')]


# ------------------------------------------------------------------ snapshots


@pytest.mark.parametrize('disk_format', ['raw', 'qcow2'])
@pytest.mark.parametrize('running', [True, False])
def test_a_snapshot_boots_from_where_the_server_was(guests, driver, made, disk_format, running):
    # As large as its image, because all of it is sent.
    server = made(root_gb=0)
    driver.spawn(server, [])
    wrote(driver, server, f'{BANNER}01')
    if not running:
        driver.power_off(server)
    image_id = guests.image(b''.join(driver.snapshot(server, disk_format)), disk_format)
    assert (driver.power_state(server) is PowerState.RUNNING) is running
    assert not list(driver.folder(server).path.glob('snapshot*'))
    copied = made(image_id=image_id, root_gb=0)
    driver.spawn(copied, [])
    assert wrote(driver, copied, f'{BANNER}02')


def copying(driver, server, name):
    """The PIDs of the processes that copy its disk; they continue without the process that started them."""
    child = Child(driver.folder(server) / name)
    child.start(['sleep', '600'])
    wait_until(lambda: child.running.pid)
    listed = subprocess.run(['ps', '-o', 'pid=', '-s', str(child.running.pid)], capture_output=True, check=True)
    return [int(pid) for pid in listed.stdout.split()]


@pytest.mark.parametrize('act', ['power_on', 'destroy'])
@pytest.mark.parametrize('name', ['snapshot-1.raw', 'sent-0123abcd-root'])
def test_what_copies_a_disk_ends_when_its_guest_starts_or_goes(driver, made, act, name):
    server = made()
    driver.spawn(server, [])
    driver.power_off(server)
    pids = copying(driver, server, name)
    getattr(driver, act)(server)
    wait_until(lambda: not any(map(is_alive, pids)))


def test_a_snapshot_ends_what_makes_one_that_nobody_waits_for(driver, made):
    server = made()
    driver.spawn(server, [])
    driver.power_off(server)
    pids = copying(driver, server, 'snapshot-1.raw')
    assert b''.join(driver.during(at_once, 2, 2).snapshot(server, 'raw'))
    wait_until(lambda: not any(map(is_alive, pids)))


def test_who_can_wait_comes_again_for_a_snapshot(guests, driver, made):
    server = made()
    driver.spawn(server, [])
    wrote(driver, server, f'{BANNER}01')
    waiting = driver.during(lambda step: 0.0, 1, 7)

    def data():
        try:
            return b''.join(waiting.snapshot(server, 'qcow2'))
        except NotYet:
            return None

    copied = made(image_id=guests.image(wait_until(data), 'qcow2'))
    driver.spawn(copied, [])
    assert wrote(driver, copied, f'{BANNER}02')


# ------------------------------------------------------------------ devices


def test_cards_come_and_go_while_it_runs(driver, made):
    server = made(network_info=[CARD])
    driver.spawn(server, [])
    second = CARD | {'port_id': 'bbbbbbbb', 'mac_address': 'fa:16:3e:00:00:02'}
    cards = lambda: {each['mac_address'] for each in driver.diagnostics(server, [])['interfaces']}  # noqa: E731
    for _ in range(2):
        driver.plug(server, [second])
        assert cards() == {'fa:16:3e:00:00:01', 'fa:16:3e:00:00:02'}
    places = driver.bus_addresses(server, [])
    assert len(set(places.values())) == 2
    for _ in range(2):
        driver.unplug(server, [CARD])
        assert cards() == {'fa:16:3e:00:00:02'}
    # The boot sector does not release devices, so the slot of the first is still occupied, with nothing connected.
    assert behind_cards(driver, server) == ['net-bbbbbbbb']
    for change in (lambda: driver.check_live_migration(server, 'compute2'), lambda: driver.suspend(server)):
        with pytest.raises(HypervisorError, match='has not released an interface'):
            change()
    for _ in range(2):
        driver.plug(server, [CARD])
        assert len({*places.values(), driver.bus_addresses(server, [])['aaaaaaaa']}) == 3
        assert behind_cards(driver, server) == ['net-aaaaaaaa', 'net-bbbbbbbb']
    server.network_info = [second]
    driver.reboot(server, hard=True)
    assert set(driver.bus_addresses(server, [])) == {'bbbbbbbb'}
    assert behind_cards(driver, server) == ['net-bbbbbbbb']
    driver.check_live_migration(server, 'compute2')


def test_spice_is_for_the_user_of_the_service_alone(guests, made):
    guests.conf.set_override('enabled', True, 'spice')
    driver, server = guests.driver(), made()
    driver.spawn(server, [])
    address = Path(driver.console(server, 'spice').host)
    assert address.is_socket() and address.parent.stat().st_mode & 0o777 == 0o700


def test_a_qemu_without_spice_is_named_where_guests_are_to_have_it(guests):
    binary = guests.folder / 'qemu'
    binary.write_text('#!/bin/sh\n[ "$1" != -spice ] && exec qemu-system-x86_64 "$@"\n')
    binary.chmod(0o755)
    guests.driver(binary=str(binary))
    guests.conf.set_override('enabled', True, 'spice')
    with pytest.raises(cfg.ConfigFileValueError, match=r'\[spice\]enabled: .*/qemu has no SPICE'):
        guests.driver()


def test_what_goes_wrong_with_one_guest_keeps_nobody_from_the_others(driver, made, monkeypatch):
    broken, server, seen = made(), made(host='compute2'), []
    for each in (broken, server):
        driver.spawn(each, [])
    networks = driver.host('compute1').networks
    monkeypatch.setattr(networks, 'refresh', lambda: seen.append('networks'))
    (driver.folder(broken) / 'guest.json').write_bytes(b'{')
    log = driver.folder(server) / 'console.log'
    with log.open('ab') as file:
        file.write(bytes(MAX_BYTES + 1))
    driver.upkeep()
    assert log.stat().st_size < MAX_BYTES and seen == ['networks']


def test_a_console_log_is_kept_short(driver, made):
    server = made()
    driver.spawn(server, [])
    log = driver.folder(server) / 'console.log'
    wrote(driver, server, BANNER)
    with log.open('ab') as file:
        file.write(b'x' * MAX_BYTES + b'\nthe end\n')
    driver.upkeep()
    assert log.stat().st_size == 0 and driver.console_output(server, 1) == 'the end'
    assert echoes(driver, server, 'and on')
    assert wrote(driver, server, 'and on')


# ------------------------------------------------------------------ moves


@pytest.mark.parametrize('shared', [False, True])
def test_what_moves_while_it_runs_goes_on_with_its_memory_and_its_disk(guests, driver, made, shared):
    server = made(network_info=[CARD])
    driver.spawn(server, [], {'openstack/latest/meta_data.json': b'{}'})
    wrote(driver, server, f'{BANNER}01')
    [disk] = driver.folder(server).existing().own_disks
    former = os.stat(disk.file['filename']).st_ino
    for _ in range(2):
        assert driver.sees_disks(server, 'compute2', driver.describe(server)) is shared
    facts = driver.prepare_live_migration(server, 'compute2', driver.describe(server))
    assert driver.live_migrate(server, 'compute2', facts, 'running')
    there = replace(server, host='compute2')
    assert echoes(driver, there, 'moved')
    assert BANNER not in driver.console_output(there, None)
    assert not driver.folder(server).path.exists()
    driver.upkeep()
    assert not exporter_of(driver.folder(there)).runs
    driver.reboot(there, hard=True)
    assert wrote(driver, there, f'{BANNER}02')
    assert (driver.folder(there) / 'config.iso').exists()
    [disk] = driver.folder(there).existing().own_disks
    assert (os.stat(disk.file['filename']).st_ino == former) is shared
    assert not [*guests.state.glob('hosts/*/*.mark')]
    driver.destroy(there)
    assert not os.path.exists(disk.file['filename'])


@pytest.mark.parametrize('shared', [False, True])
def test_what_has_moved_moves_on_and_is_suspended_again_and_again(driver, made, shared):
    """QEMU reports the incoming migration like an outgoing one."""
    server = made()
    driver.spawn(server, [])
    wrote(driver, server, f'{BANNER}01')
    for number, host in enumerate(('compute2', 'compute1', 'compute2')):
        facts = driver.prepare_live_migration(server, host, driver.describe(server))
        assert driver.live_migrate(server, host, facts, 'running')
        server = replace(server, host=host)
        assert echoes(driver, server, f'moved {number}')
        driver.upkeep()
    for number in range(2):
        driver.suspend(server)
        assert not process(driver, server).runs
        driver.resume(server)
        assert echoes(driver, server, f'awake {number}')
    assert BANNER not in driver.console_output(server, None)


def test_a_move_of_what_has_moved_fails_and_leaves_it_running(driver, made):
    server = made()
    driver.spawn(server, [])
    wrote(driver, server, BANNER)
    facts = driver.prepare_live_migration(server, 'compute2', driver.describe(server))
    assert driver.live_migrate(server, 'compute2', facts, 'running')
    server = replace(server, host='compute2')
    driver.upkeep()
    facts = driver.prepare_live_migration(server, 'compute1', driver.describe(server))
    driver.destroy(replace(server, host='compute1'))
    with pytest.raises(HypervisorError):
        driver.live_migrate(server, 'compute1', facts, 'running')
    assert echoes(driver, server, 'as before')


def test_what_is_left_of_a_guest_that_has_moved_is_not_taken_for_one(driver, made):
    server = made()
    driver.spawn(server, [])
    folder = driver.folder(server)
    # This is recorded, and QEMU stopped, before the folder is deleted.
    folder.write(replace(folder.existing(), departed=True))
    assert driver.power_state(server) is None
    process(driver, server).end()
    assert driver.power_state(server) is None
    driver.destroy(server)
    assert not folder.path.exists()


def test_a_move_that_is_cancelled_half_way_leaves_it_running(driver, made):
    server = made()
    driver.spawn(server, [])
    wrote(driver, server, f'{BANNER}01')
    for _ in range(2):
        facts = driver.prepare_live_migration(server, 'compute2', driver.describe(server))
        waiting = driver.during(lambda step: 0.0, 1)
        try:
            moved = waiting.live_migrate(server, 'compute2', facts, 'running')
        except NotYet:
            moved = waiting.live_migrate(server, 'compute2', facts, 'cancelling')
        if moved:
            return
        driver.destroy(replace(server, host='compute2'))
        assert echoes(driver, server, 'as before')


@pytest.mark.parametrize('shared', [False, True])
def test_a_move_to_a_host_that_fails_leaves_it_running(driver, made):
    server = made()
    driver.spawn(server, [])
    wrote(driver, server, BANNER)
    facts = driver.prepare_live_migration(server, 'compute2', driver.describe(server))
    driver.destroy(replace(server, host='compute2'))
    with pytest.raises(HypervisorError):
        driver.live_migrate(server, 'compute2', facts, 'running')
    assert echoes(driver, server, 'as before')
    driver.reboot(server, hard=True)
    assert wrote(driver, server, f'{BANNER}02')


def test_a_guest_goes_on_where_it_is_until_it_is_said_to_run_on_the_other_host(driver, made, monkeypatch):
    """The destination has everything, and is paused."""
    monkeypatch.setattr(migration_source, 'SWITCH_SECONDS', 0.5)
    server = made()
    driver.spawn(server, [])
    wrote(driver, server, f'{BANNER}01')
    facts = driver.prepare_live_migration(server, 'compute2', driver.describe(server))
    there = replace(server, host='compute2')
    os.kill(process(driver, there).pid, signal.SIGSTOP)
    with pytest.raises(HypervisorError, match='could not be moved'):
        driver.live_migrate(server, 'compute2', facts, 'running')
    driver.destroy(there)
    assert echoes(driver, server, 'as before')
    driver.suspend(server)
    driver.resume(server)
    assert echoes(driver, server, 'again')


def test_a_paused_guest_moves_paused_and_stays_so_where_it_does_not_go(driver, made):
    server = made(vm_state='paused')
    driver.spawn(server, [])
    wrote(driver, server, BANNER)
    driver.pause(server)
    facts = driver.prepare_live_migration(server, 'compute2', driver.describe(server))
    assert not driver.live_migrate(server, 'compute2', facts, 'cancelling')
    assert driver.power_state(server) is PowerState.PAUSED
    assert driver.live_migrate(server, 'compute2', facts, 'running')
    there = replace(server, host='compute2')
    assert driver.power_state(there) is PowerState.PAUSED
    driver.unpause(there)
    assert echoes(driver, there, 'moved')


def test_hosts_that_are_machines_have_their_guests_on_shared_storage(guests, made, tmp_path):
    guests.conf.set_override('instances_path', str(tmp_path / 'shared'), 'qemu')
    first, second = (
        guests.driver(hosts=1, host_name=name, state_path=str(tmp_path / name)) for name in ('compute1', 'compute2')
    )
    server = made()
    there = replace(server, host='compute2')
    first.spawn(server, [])
    try:
        wrote(first, server, f'{BANNER}01')
        facts = second.prepare_live_migration(server, 'compute2', first.describe(server))
        assert first.live_migrate(server, 'compute2', facts, 'running')
        second.upkeep()
        second.reboot(there, hard=True)
        assert wrote(second, there, f'{BANNER}02')
        # Nobody knows whether the guests of a host that is down are still running.
        with pytest.raises(HypervisorError, match='could not be started'):
            first.spawn(server, [], former_host='compute2')
        process(second, there).end()
        first.spawn(server, [], former_host='compute2')
        assert wrote(first, server, f'{BANNER}03')
        second.destroy(there)
        first.reboot(server, hard=True)
        assert wrote(first, server, f'{BANNER}04')
    finally:
        for driver, each in ((first, server), (second, there)):
            driver.destroy(each)
    assert not [*tmp_path.glob('compute*/*/guests')]


@pytest.mark.parametrize('shared', [True])
def test_only_disks_of_the_guest_itself_are_taken_over(driver, made, tmp_path):
    server = made()
    driver.spawn(server, [])
    described = driver.describe(server)
    assert not driver.sees_disks(server, 'compute2', described | {'mark': 'another'})
    assert not driver.sees_disks(replace(server, host='../compute1'), 'compute2', described)
    [disk] = described['guest']['disks']
    image = dict(disk['backing']['file'])
    disk['backing']['file']['filename'] = '/etc/passwd'
    with pytest.raises(HypervisorError, match='is not an image'):
        driver.prepare_live_migration(server, 'compute2', described)
    disk['backing']['file'], disk['format'] = image, 'vmdk'
    with pytest.raises(HypervisorError, match='an unsupported format'):
        driver.prepare_live_migration(server, 'compute2', described)
    driver.destroy(replace(server, host='compute2'))


LEAKS = {'name': 'rescue', 'slot': 20, 'format': 'raw', 'file': {'driver': 'file', 'filename': '/etc/passwd'}}


@pytest.mark.parametrize('live', [True, False])
@pytest.mark.parametrize(
    'more',
    [
        {'rescue': LEAKS},
        {'machine': 'pc,firmware=/etc/passwd'},
        {'memory_mb': '16,maxmem=1T'},
        {'memory_mb': 2**20},
        {'vcpus': 200},
        # These become names of folders, which are deleted at the end.
        {'disks': [LEAKS | {'name': 'more', 'volume_id': '../../../claims'}]},
        {'cards': [{'port_id': 'bbbb', 'mac_address': CARD['mac_address'], 'slot': 20, 'interface': {}}]},
    ],
)
def test_a_host_that_was_taken_over_describes_no_guest_that_reads_files_of_others(driver, made, live, more):
    server = made(network_info=[CARD])
    driver.spawn(server, [])
    described = driver.describe(server)
    prepare = driver.prepare_live_migration if live else driver.prepare_migration
    taken = described | {'guest': described['guest'] | more}
    with pytest.raises(HypervisorError, match='does not match its server'):
        prepare(server, 'compute2', taken)
    assert not process(driver, replace(server, host='compute2')).runs


@pytest.mark.parametrize('live', [True, False])
@pytest.mark.parametrize(
    'more',
    [
        {'file': {'driver': 'file', 'filename': 'guest.json'}},
        {'file': {'driver': 'file', 'filename': 'guest.json'}, 'read_only': True},
        {'name': 'root', 'file': {'driver': 'file', 'filename': 'guest.json'}},
        {'name': 'root', 'file': {'driver': 'file', 'filename': 'root.raw'}, 'read_only': True},
        {'file': {'driver': 'file', 'filename': 'x.iso'}, 'read_only': True},
    ],
)
def test_a_host_that_was_taken_over_describes_no_guest_with_other_files_as_disks(driver, made, live, more):
    """A guest that can write its guest.json has all files of its host."""
    server = made()
    driver.spawn(server, [])
    described = driver.describe(server)
    prepare = driver.prepare_live_migration if live else driver.prepare_migration
    guest = described['guest'] | {'disks': [*described['guest']['disks'], LEAKS | {'name': 'more'} | more]}
    files = {'guest.json': base64.b64encode(zlib.compress(bytes(512))).decode()}
    with pytest.raises(HypervisorError, match='does not match its server'):
        prepare(server, 'compute2', described | {'guest': guest, 'files': files})
    with pytest.raises(HypervisorError, match='does not match its server'):
        prepare(server, 'compute2', described | {'files': files})


def test_volumes_are_opened_as_they_are_whatever_another_host_says_of_them(driver, made):
    server = made()
    driver.spawn(server, [])
    described = driver.describe(server)
    volume = LEAKS | {'name': 'volume', 'volume_id': str(uuid.uuid4()), 'format': 'vmdk'}
    volume |= {'backing': {'file': LEAKS['file'], 'format': 'raw'}}
    more = {'guest': described['guest'] | {'disks': [*described['guest']['disks'], volume]}}
    driver.prepare_migration(server, 'compute2', described | more)
    disk = driver.folder(replace(server, host='compute2')).existing().disk('volume')
    assert (disk.format, disk.file, disk.backing) == ('raw', {}, None)


def test_a_host_that_was_taken_over_says_sizes_only(driver, made):
    server = made()
    driver.spawn(server, [])
    with pytest.raises(HypervisorError, match='does not match its server'):
        driver.prepare_migration(server, 'compute2', driver.describe(server) | {'sizes': {'root': '--help'}})


def test_a_host_that_was_taken_over_fills_no_memory_with_what_it_packed(driver, made):
    server = made()
    driver.spawn(server, [], {'openstack/latest/user_data': b'#!'})
    described = driver.describe(server)
    half = base64.b64encode(zlib.compress(bytes(migration_destination.MAX_FILES_BYTES // 2 + 1))).decode()
    with pytest.raises(HypervisorError, match='is too large'):
        driver.prepare_migration(server, 'compute2', described | {'files': {'config.iso': half, 'two.iso': half}})
    assert driver.prepare_migration(server, 'compute2', described)['port']


def test_a_guest_of_a_later_release_moves_as_one_of_this(driver, made):
    server = made(network_info=[CARD])
    driver.spawn(server, [])
    described = json.loads(json.dumps(driver.describe(server)))
    for each in (described['guest'], *described['guest']['disks'], *described['guest']['cards']):
        each['later'] = 'more'
    assert driver.prepare_migration(server, 'compute2', described)['port']


def test_what_moves_switched_off_has_its_disk_there(driver, made):
    server, there = made(), None
    driver.spawn(server, [])
    wrote(driver, server, f'{BANNER}01')
    facts = driver.prepare_migration(server, 'compute2', driver.describe(server))
    driver.migrate(server, 'compute2', facts)
    there = replace(server, host='compute2', root_gb=2)
    driver.power_on(there)
    assert wrote(driver, there, f'{BANNER}02')
    assert not exporter_of(driver.folder(there)).runs
    size = Path(driver.folder(there) / 'root.raw').stat().st_size
    assert size == 2 * 2**30
    driver.power_on(server)
    assert wrote(driver, server, f'{BANNER}02')


def test_a_machine_without_qemu_is_no_host(guests):
    with pytest.raises(cfg.ConfigFileValueError, match='cannot be run'):
        guests.driver(binary='/nowhere/qemu')


def test_the_image_that_a_cloud_begins_with_says_that_it_runs(guests, driver, made):
    server = made(image_id=guests.image(blank.disk(), 'qcow2'))
    driver.spawn(server, [])
    assert wrote(driver, server, blank.GREETING)
