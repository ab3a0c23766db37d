"""What takes a guest with an operating system: power buttons, config drives, devices that it lets go of."""

import contextlib
import json
import os
from pathlib import Path

import pytest

from computeapi.backends.hypervisor import NotYet, PowerState
from tests.conftest import FLAVOR
from tests.guests.screens import wait_until, wrote

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
def linux(guests, servers, driver, board):
    """A server whose guest is the tiny Linux, which has started."""
    folder = os.environ.get('COMPUTEAPI_TEST_GUESTS')
    assert folder, 'tests/guests/install makes the guests, and says where they are.'
    image_id = guests.image(Path(folder, 'linux.qcow2').read_bytes(), 'qcow2')
    facts = {'host': 'compute1', 'flavor': FLAVOR | {'memory_mb': 128}, 'network_info': [CARD]}
    server = servers.get(servers.add(image_id=image_id, image_properties={'hw_machine_type': board}, **facts))
    driver.spawn(server, [], DRIVE)
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
        """No time at first, and then a second."""
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
