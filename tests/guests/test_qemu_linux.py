"""Features that need a guest with an operating system: power button, config drive, hot-unplug."""

import contextlib
import json
import os
import shlex
from dataclasses import fields
from operator import attrgetter
from pathlib import Path

import pytest

from computeapi.backends.hypervisor import HypervisorError, NotYet, PowerState
from computeapi.backends.hypervisor.qemu import guest_agent, snapshots
from computeapi.backends.hypervisor.qemu.guest_agent import GuestAgent
from computeapi.clock import utcnow
from computeapi.db.servers import BlockDevice
from computeapi.errors import NotSupported
from tests.conftest import FLAVOR
from tests.guests.screens import behind_cards, wait_until, wrote
from tests.guests.terminal import Terminal

DRIVE = {
    'openstack/latest/meta_data.json': json.dumps({'hostname': 'first.novalocal', 'public_keys': {}}).encode(),
    'openstack/latest/user_data': b'#!/bin/sh\necho "what the user wants"\n',
}
CARD = {'port_id': 'aaaaaaaa', 'mac_address': 'fa:16:3e:00:00:01'}
CARD |= {'addresses': [{'address': '10.0.0.7', 'version': 4, 'floating': []}]}


@pytest.fixture
def driver(guests):
    return guests.driver(shutdown_timeout=60, detach_seconds=30)


@pytest.fixture
def board():
    return 'pc'


@pytest.fixture
def properties():
    """Further properties of its image."""
    return {}


@pytest.fixture
def devices():
    """Further devices."""
    return []


@pytest.fixture
def linux(guests, servers, driver, board, properties, devices):
    """A server whose guest is the tiny Linux, after its boot."""
    folder = os.environ.get('COMPUTEAPI_TEST_GUESTS')
    assert folder, 'tests/guests/install makes the guests, and says where they are.'
    image_id = guests.image(Path(folder, 'linux.qcow2').read_bytes(), 'qcow2')
    facts = {'host': 'compute1', 'flavor': FLAVOR | {'memory_mb': 128}, 'network_info': [CARD]}
    server = servers.get(
        servers.add(image_id=image_id, image_properties={'hw_machine_type': board, **properties}, **facts)
    )
    driver.spawn(server, devices, DRIVE)
    wrote(driver, server, 'computeapi-guest: ready')
    return server


@pytest.mark.parametrize('board', ['q35'])
def test_its_config_drive_is_a_cd_wherever_it_is(driver, linux):
    assert wrote(driver, linux, 'config drive /dev/sr0')


def test_it_finds_its_config_drive_and_its_address_and_heeds_the_power_button(driver, linux):
    for said in ('config drive /dev/sr0', 'hostname first', 'address eth0 10.0.0.7/24', 'what the user wants'):
        assert wrote(driver, linux, said)
    pressed = []

    def passed(step):
        """No time at first, then a second."""
        pressed.append(step)
        return 0.0 if len(pressed) == 1 else 1.0

    def is_off():
        with contextlib.suppress(NotYet):
            driver.during(passed, 1).power_off(linux)
        return driver.power_state(linux) is PowerState.SHUTDOWN

    assert wait_until(is_off)
    assert wrote(driver, linux, 'power button')


def test_it_lets_go_of_a_card_and_finds_another(driver, linux):
    driver.unplug(linux, [CARD])
    assert wrote(driver, linux, 'interface eth0 gone')
    assert driver.folder(linux).existing().ghosts == []
    driver.plug(linux, [CARD | {'port_id': 'bbbbbbbb', 'mac_address': 'fa:16:3e:00:00:02'}])
    assert wrote(driver, linux, 'interface eth0 fa:16:3e:00:00:02')
    driver.plug(linux, [CARD])
    assert behind_cards(driver, linux) == ['net-aaaaaaaa', 'net-bbbbbbbb']


# ------------------------------------------------------------------ the guest agent


HASH = 'hash=$(sed -n "s/^cirros:\\([^:]*\\):.*/\\1/p" /etc/shadow)'
SAME = '[ "$(mkpasswd -m md5 {} "$(echo "$hash" | cut -d "$" -f 3)")" = "$hash" ]'


@pytest.mark.parametrize('board', ['pc', 'q35'])
@pytest.mark.parametrize('properties', [{'hw_qemu_guest_agent': 'yes', 'os_admin_user': 'cirros'}])
def test_its_agent_sets_a_password(driver, linux):
    driver.set_password(linux, 'a new "one"')
    with contextlib.closing(Terminal(driver, linux)) as terminal:
        # Failed commands would be waited for in vain.
        terminal.ask(HASH)
        assert terminal.ask(SAME.format(shlex.quote('a new "one"')))


@pytest.mark.parametrize('properties', [{'hw_qemu_guest_agent': 'yes', 'os_admin_user': 'nobody-is'}])
def test_what_its_agent_does_not_do_is_an_error(driver, linux):
    with pytest.raises(HypervisorError, match='could not perform the command'):
        driver.set_password(linux, 'x')
    driver.pause(linux)
    with pytest.raises(NotSupported, match='does not answer'):
        driver.set_password(linux, 'x')
    driver.unpause(linux)
    driver.power_off(linux)
    with pytest.raises(HypervisorError, match='is not running'):
        driver.set_password(linux, 'x')


QUIESCED = {'hw_qemu_guest_agent': 'yes', 'os_require_quiesce': 'yes'}
UNSET = dict.fromkeys(map(attrgetter('name'), fields(BlockDevice)))
KNOWN = {'uuid': '00000000-0000-0000-0000-000000000001', 'volume_size': 1, 'created_at': utcnow()}
BLANK = BlockDevice(**UNSET | KNOWN | {'source_type': 'blank', 'destination_type': 'local', 'guest_format': 'ext4'})


@pytest.mark.parametrize('properties', [QUIESCED])
@pytest.mark.parametrize('devices', [[BLANK]])
def test_its_file_systems_are_frozen_while_a_snapshot_begins(driver, linux, monkeypatch):
    with contextlib.closing(Terminal(driver, linux)) as terminal:
        terminal.ask('mkdir /data && mount -t ext4 /dev/vdb /data')
    begin = snapshots.begin

    def state():
        with GuestAgent(driver.folder(linux)) as agent:
            return agent.execute('guest-fsfreeze-status')

    def dies(*arguments):
        begin(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as killed:
        killed.setattr(snapshots, 'begin', dies)
        killed.setattr(guest_agent, 'thaw', lambda work: None)
        with pytest.raises(KeyboardInterrupt):
            driver.snapshot(linux, 'qcow2')
    assert state() == 'frozen'
    assert b''.join(driver.snapshot(linux, 'qcow2')) and state() == 'thawed'

    seen = []
    monkeypatch.setattr(snapshots, 'begin', lambda *arguments: (seen.append(state()), begin(*arguments)))
    assert b''.join(driver.snapshot(linux, 'qcow2'))
    assert (seen, state()) == (['frozen'], 'thawed')
    driver.pause(linux)
    with pytest.raises(HypervisorError, match='could not be quiesced'):
        driver.snapshot(linux, 'qcow2')


@pytest.mark.parametrize('properties', [{'os_require_quiesce': 'yes'}])
def test_without_an_agent_nothing_is_quiesced(driver, linux):
    with pytest.raises(HypervisorError, match='^QEMU guest agent is not enabled$'):
        driver.snapshot(linux, 'qcow2')


def test_without_a_word_of_its_image_there_is_no_agent(driver, linux):
    with pytest.raises(HypervisorError, match='^QEMU guest agent is not enabled$'):
        driver.set_password(linux, 'x')
