"""The output of guests on their serial consoles, and their reactions to input."""

import re
import time

from computeapi.backends.hypervisor.qemu.monitor import Monitor
from computeapi.backends.hypervisor.qemu.process import QMP
from tests.guests.machine import SECONDS


def wait_until(look, what=''):
    """Waits until `look` returns something true; returns that."""
    deadline = time.monotonic() + SECONDS
    while not (found := look()):
        assert time.monotonic() < deadline, what or 'it does not come to be'
        time.sleep(0.02)
    return found


def wrote(driver, server, text):
    """Wait until the server has written this text."""
    return wait_until(lambda: text in driver.console_output(server, None), f'{text!r} is not written')


def echoes(driver, server, text):
    """Whether the boot sector, which has booted before, echoes what is typed: it still runs."""
    with driver.connect(server, 'serial', driver.console(server, 'serial')) as connection:
        connection.settimeout(SECONDS)
        connection.sendall(text.encode())
        said = b''
        while text.encode() not in said:
            said += connection.recv(100)
    return True


def behind_cards(driver, server):
    """The backends of network cards in user mode, as named by the guest's QEMU."""
    with Monitor(driver.folder(server) / QMP) as monitor:
        return sorted(
            re.findall(r'[(](net-.*)[)]', monitor.execute('human-monitor-command', command_line='info usernet'))
        )
