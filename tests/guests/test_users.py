"""Guests of a service that runs as root are not processes of root; conftest.py starts all guests like this."""

import os
import pwd
from pathlib import Path

import pytest
from oslo_config import cfg

from computeapi.backends.hypervisor import HypervisorError
from computeapi.backends.hypervisor.qemu.process import GuestProcess
from computeapi.backends.hypervisor.qemu.qemu_img import DATA_ELSEWHERE
from tests.conftest import FLAVOR
from tests.guests.boot_sector import BANNER
from tests.guests.screens import wrote

NOBODY = pwd.getpwnam('nobody').pw_uid


def rights(pid):
    """The user IDs and capabilities of a process, and whether it can gain any."""
    lines = Path(f'/proc/{pid}/status').read_text().splitlines()
    found = dict(line.split(':', 1) for line in lines)
    capabilities = {found[name].strip() for name in ('CapInh', 'CapPrm', 'CapEff', 'CapAmb')}
    return {int(each) for each in found['Uid'].split()}, capabilities, int(found['NoNewPrivs'])


def test_a_guest_has_no_rights_and_reads_no_files_of_others(guests, servers):
    driver = guests.driver()
    server = servers.get(servers.add(host='compute1', flavor=FLAVOR | {'memory_mb': 16}))
    driver.spawn(server, [])
    assert wrote(driver, server, f'{BANNER}01')
    folder = driver.folder(server)
    assert rights(GuestProcess(folder).pid) == ({NOBODY}, {'0' * 16}, 1)
    assert (folder.path.stat().st_mode & 0o777, folder.path.stat().st_uid) == (0o700, 0)
    driver.power_off(server)
    # What an attacker who escaped from the guest could write into its disk.
    with open(folder / 'root.qcow2', 'r+b') as disk:
        disk.seek(79)
        disk.write(bytes([DATA_ELSEWHERE]))
    for act in (driver.power_on, lambda each: driver.snapshot(each, 'qcow2')):
        with pytest.raises(HypervisorError, match='refers to other files'):
            act(server)


def test_a_user_that_guests_cannot_run_as_is_an_error_at_the_start(guests, monkeypatch):
    with pytest.raises(cfg.ConfigFileValueError, match=r'\[qemu\]user: there is no user nobody-is'):
        guests.driver(user='nobody-is')
    monkeypatch.setattr(os, 'geteuid', lambda: 4711)
    with pytest.raises(cfg.ConfigFileValueError, match=r'\[qemu\]user: guests can run as nobody only if'):
        guests.driver(user='nobody')
