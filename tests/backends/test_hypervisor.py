"""The behaviour of every driver with the virtual machine of a server."""

import json
import uuid
from dataclasses import fields, replace

import pytest

from computeapi.backends.hypervisor import (
    CONSOLES,
    DISK_COUNTERS,
    INTERFACE_COUNTERS,
    Capability,
    HypervisorError,
    Outdated,
    PowerState,
    require,
)
from computeapi.db.servers import BlockDevice
from computeapi.errors import NotSupported
from tests.backends.implementations import HYPERVISOR
from tests.consoles.spice_viewer import MAIN, link

OPTIONAL = {
    Capability.PAUSE: lambda driver, server: driver.pause(server),
    Capability.SUSPEND: lambda driver, server: driver.suspend(server),
    Capability.RESCUE: lambda driver, server: driver.rescue(server, None),
    Capability.CRASH_DUMP: lambda driver, server: driver.crash_dump(server),
    Capability.SET_PASSWORD: lambda driver, server: driver.set_password(server, 'secret'),
    Capability.DIAGNOSTICS: lambda driver, server: driver.diagnostics(server, []),
    Capability.CONSOLE_OUTPUT: lambda driver, server: driver.console_output(server, 1),
}
"""Operations on a running server that are optional for a driver."""
SAID_FIRST = {'serial': b'\n', 'spice': link(MAIN)}
"""What a client must send to a console before it receives anything."""


@pytest.fixture(params=HYPERVISOR)
def driver(request, store, conf):
    return request.param(store, conf)


@pytest.fixture
def here(driver):
    return driver.hosts()[0].name


@pytest.fixture
def there(driver):
    return driver.hosts()[1].name


@pytest.fixture
def server(servers, here):
    """A server without a virtual machine."""
    return servers.get(servers.add(host=here, network_info=[{'mac_address': 'fa:16:3e:00:00:01'}]))


@pytest.fixture
def running(driver, server):
    driver.spawn(server, [])
    return server


@pytest.fixture
def moved(servers, running, there):
    """The same server as if it were on the other host."""
    servers.change(running.uuid, host=there)
    return servers.get(running.uuid)


def disk(server):
    """A volume attached to the server."""
    facts = dict.fromkeys(field.name for field in fields(BlockDevice))
    volume = {'destination_type': 'volume', 'device_name': '/dev/vdb', 'volume_id': str(uuid.uuid4()), 'volume_size': 2}
    return BlockDevice(**facts | volume | {'uuid': str(uuid.uuid4()), 'server_id': server.uuid})


def blank(server):
    """A blank local disk."""
    facts = {'source_type': 'blank', 'destination_type': 'local', 'guest_format': 'swap', 'volume_id': None}
    return replace(disk(server), **facts)


def test_hosts_have_names_of_their_own_and_room(driver):
    hosts = driver.hosts()
    assert len({host.name for host in hosts}) == len(hosts)
    assert all(host.vcpus and host.memory_mb and host.local_gb for host in hosts)


def test_a_machine_runs_once_it_is_made_and_is_gone_once_it_is_destroyed(driver, server):
    assert driver.power_state(server) is None
    driver.spawn(server, [])
    assert driver.power_state(server) is PowerState.RUNNING
    driver.destroy(server)
    assert driver.power_state(server) is None


def test_what_is_done_already_can_be_told_again(driver, server):
    driver.spawn(server, [])
    driver.power_off(server)
    driver.power_off(server)
    driver.spawn(server, [])
    assert driver.power_state(server) is PowerState.SHUTDOWN
    driver.power_on(server)
    driver.power_on(server)
    assert driver.power_state(server) is PowerState.RUNNING
    driver.destroy(server)
    driver.destroy(server)
    assert driver.power_state(server) is None


@pytest.mark.parametrize('hard', [False, True])
def test_a_reboot_ends_with_a_running_machine(driver, running, hard):
    driver.reboot(running, hard=hard)
    assert driver.power_state(running) is PowerState.RUNNING


def test_a_machine_that_is_not_there_cannot_be_switched(driver, server):
    for act in (driver.power_on, driver.power_off, driver.pause, driver.suspend, driver.resume, driver.unrescue):
        with pytest.raises(HypervisorError):
            act(server)


def test_a_machine_is_held_and_goes_on(driver, running):
    if Capability.PAUSE in driver.capabilities_of(running.host):
        driver.pause(running)
        assert driver.power_state(running) is PowerState.PAUSED
        driver.unpause(running)
        assert driver.power_state(running) is PowerState.RUNNING
    if Capability.SUSPEND in driver.capabilities_of(running.host):
        driver.suspend(running)
        assert driver.power_state(running) is PowerState.SHUTDOWN
        driver.resume(running)
    if Capability.RESCUE in driver.capabilities_of(running.host):
        driver.rescue(running, None)
        assert driver.power_state(running) is PowerState.RUNNING
        driver.unrescue(running)
    assert driver.power_state(running) is PowerState.RUNNING


def test_a_host_that_is_off_runs_nothing(driver, running, here):
    if Capability.HOST_POWER not in driver.capabilities_of(running.host):
        return
    for _ in range(2):
        driver.switch_host(here, False)
    assert [host.on for host in driver.hosts() if host.name == here] == [False]
    assert driver.power_state(running) is PowerState.SHUTDOWN
    with pytest.raises(HypervisorError):
        driver.power_on(running)
    for _ in range(2):
        driver.switch_host(here, True)
    assert all(host.on for host in driver.hosts()) and driver.power_state(running) is PowerState.SHUTDOWN
    driver.power_on(running)
    driver.switch_host(here, False)
    driver.destroy(running)
    assert driver.power_state(running) is None


@pytest.mark.parametrize('capability', OPTIONAL)
def test_what_a_driver_says_it_can_do_it_does_and_the_rest_it_refuses(driver, running, capability):
    check_capability(driver, running, capability)


def check_capability(driver, running, capability):
    if capability in driver.capabilities_of(running.host):
        OPTIONAL[capability](driver, running)
    else:
        with pytest.raises(NotSupported):
            OPTIONAL[capability](driver, running)


@pytest.mark.parametrize('capability', Capability)
def test_what_a_driver_cannot_do_is_refused_before_it_is_begun(driver, here, capability):
    if capability in driver.capabilities_of(here):
        require(driver, capability, here)
    else:
        with pytest.raises(NotSupported, match=f'^The current driver does not support {capability.value}.$'):
            require(driver, capability, here)


@pytest.mark.parametrize('protocol', CONSOLES)
def test_a_console_is_somewhere(driver, running, protocol):
    if CONSOLES[protocol] in driver.capabilities_of(running.host):
        console = driver.console(running, protocol)
        assert console.host.startswith('/') if console.port == 0 else console.host and console.port < 65536


@pytest.mark.parametrize('protocol', CONSOLES)
def test_who_connects_to_a_console_is_answered_as_long_as_the_machine_runs(driver, running, protocol):
    if CONSOLES[protocol] not in driver.capabilities_of(running.host):
        return
    console = driver.console(running, protocol)
    try:
        connection = driver.connect(running, protocol, console)
    except NotSupported:
        assert protocol not in ('vnc', 'serial', 'spice')
        return
    with connection:
        connection.send(SAID_FIRST.get(protocol, b''))
        assert connection.recv(1)
        driver.power_off(running)
        while connection.recv(4096):
            pass
    with pytest.raises(HypervisorError):
        driver.connect(running, protocol, console)


def test_a_guest_finds_each_device_at_a_place_of_its_own(driver, server):
    cards = {'first': 'fa:16:3e:00:00:01', 'second': 'fa:16:3e:00:00:02'}
    server.network_info = [{'port_id': port_id, 'mac_address': address} for port_id, address in cards.items()]
    disks = [blank(server), replace(blank(server), uuid=str(uuid.uuid4()), device_name='/dev/vdc')]
    planned = driver.bus_addresses(server, disks)
    driver.spawn(server, disks)
    found = driver.bus_addresses(server, disks)
    assert planned == found
    assert set(found) == {*cards, disks[0].uuid, disks[1].uuid}
    assert len(set(found.values())) == 4
    assert {place.bus for place in found.values()} <= {'pci', 'scsi', 'ide', 'usb'}


def test_what_a_server_wrote_can_be_read_from_its_end(driver, running):
    log = driver.console_output(running, None)
    assert driver.console_output(running, 1) == ''.join(log.splitlines()[-1:])
    assert driver.console_output(running, 0) == ''


def test_diagnostics_tell_of_processors_disks_and_interfaces(driver, server):
    device = blank(server)
    driver.spawn(server, [device])
    found = driver.diagnostics(server, [device])
    assert len(found['cpus']) == server.vcpus
    assert [set(each) for each in found['disks']] == [{'device_name', *DISK_COUNTERS}]
    assert [each['mac_address'] for each in found['interfaces']] == ['fa:16:3e:00:00:01']
    assert all(set(each) <= {'mac_address', *INTERFACE_COUNTERS} for each in found['interfaces'])


def test_a_snapshot_has_data(driver, running):
    assert b''.join(driver.snapshot(running, 'raw'))


def test_volumes_and_interfaces_come_and_go(driver, running):
    device, interface = disk(running), {'mac_address': 'fa:16:3e:00:00:02'}
    driver.attach(running, device)
    if Capability.EXTEND_VOLUME in driver.capabilities_of(running.host):
        driver.extend(running, device)
    if Capability.SWAP_VOLUME in driver.capabilities_of(running.host):
        driver.swap(running, device, disk(running))
    driver.detach(running, device)
    driver.plug(running, [interface])
    driver.unplug(running, [interface])
    assert driver.power_state(running) is PowerState.RUNNING


def test_volumes_in_use_have_their_snapshots(driver, running):
    if Capability.SNAPSHOT_VOLUME not in driver.capabilities_of(running.host):
        return
    device, snapshot = disk(running), str(uuid.uuid4())
    facts = {'snapshot_id': snapshot, 'type': 'qcow2', 'new_file': 'new'}
    driver.attach(running, device)
    driver.snapshot_volume(running, device, facts)
    driver.delete_volume_snapshot(running, device, snapshot, {'type': 'qcow2', 'file_to_merge': 'new'})
    assert driver.power_state(running) is PowerState.RUNNING


def test_a_copy_that_is_switched_off_is_on_both_hosts_until_one_is_destroyed(driver, running, moved, there):
    for _ in range(2):
        driver.migrate(running, there, driver.prepare_migration(running, there, driver.describe(running)))
        assert driver.power_state(running) is driver.power_state(moved) is PowerState.SHUTDOWN
    driver.destroy(running)
    assert (driver.power_state(running), driver.power_state(moved)) == (None, PowerState.SHUTDOWN)


def test_a_move_to_the_same_host_switches_off(driver, running, here):
    driver.migrate(running, here, driver.prepare_migration(running, here, driver.describe(running)))
    assert driver.power_state(running) is PowerState.SHUTDOWN


def test_what_is_not_there_cannot_move(driver, server, there):
    with pytest.raises(HypervisorError):
        driver.migrate(server, there, driver.prepare_migration(server, there, driver.describe(server)))
    with pytest.raises(HypervisorError):
        driver.check_live_migration(server, there)


def test_a_live_migration_ends_on_the_other_host(driver, running, moved, there):
    driver.check_live_migration(running, there)
    for _ in range(2):
        facts = driver.prepare_live_migration(running, there, driver.describe(running))
        assert json.loads(json.dumps(facts)) == facts
    assert (driver.power_state(running), driver.power_state(moved)) == (PowerState.RUNNING, None)
    assert driver.live_migrate(running, there, facts, 'running')
    assert (driver.power_state(running), driver.power_state(moved)) == (None, PowerState.RUNNING)


def test_a_live_migration_can_be_cancelled(driver, running, moved, there):
    facts = driver.prepare_live_migration(running, there, driver.describe(running))
    assert not driver.live_migrate(running, there, facts, 'cancelling')
    assert (driver.power_state(running), driver.power_state(moved)) == (PowerState.RUNNING, None)


def test_a_piece_of_work_may_be_told_to_come_again(driver, running):
    working = driver.during(lambda step: 3600.0)
    working.power_off(running)
    assert driver.power_state(running) is PowerState.SHUTDOWN


CHANGING = {
    'spawn': lambda driver, server, there: driver.spawn(server, []),
    'destroy': lambda driver, server, there: driver.destroy(server),
    'power_off': lambda driver, server, there: driver.power_off(server),
    'migrate': lambda driver, server, there: driver.migrate(server, there, {}),
    'live_migrate': lambda driver, server, there: driver.live_migrate(server, there, {}, 'running'),
}


@pytest.mark.parametrize('change', CHANGING.values(), ids=CHANGING)
def test_who_was_taken_for_dead_is_refused(driver, servers, running, moved, there, change):
    """For every operation, and also when the newer claim has removed the machine."""
    servers.change(running.uuid, claims=4)
    older, newer = (driver.during(lambda step: 3600.0, token) for token in (3, 4))
    older.reboot(running, hard=True)
    newer.reboot(running, hard=True)
    with pytest.raises(Outdated):
        change(older, running, there)
    assert (driver.power_state(running), driver.power_state(moved)) == (PowerState.RUNNING, None)
    newer.destroy(running)
    with pytest.raises(Outdated):
        change(older, running, there)
    assert (driver.power_state(running), driver.power_state(moved)) == (None, None)
