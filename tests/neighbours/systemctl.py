"""A replacement for systemctl that does what docs/how-to/deploying.md needs: it starts and stops units in a folder.

MACHINE is the folder that stands for the whole file system; paths in units are relative to it.
"""

import os
import re
import shlex
import sys
import time
from pathlib import Path

from tests.neighbours.services.processes import Processes

MACHINE = Path(os.environ['MACHINE'])
UNITS = MACHINE / 'etc/systemd/system'
STOPPED_WITHIN_SECONDS = 90
ON_THE_MACHINE = re.compile(r'(?<![\w/])/(?=(opt|etc|var)/)')


def main(command, *words):
    units = [word for word in words if not word.startswith('-')]
    if command == 'daemon-reload':
        return
    for unit in units:
        if command in ('restart', 'reload-or-restart', 'stop'):
            stop(unit)
        if command != 'stop':
            start(unit)


def of(unit):
    (MACHINE / 'run' / unit).mkdir(parents=True, exist_ok=True)
    return Processes(MACHINE / 'run' / unit)


def start(unit):
    command, environment = said(unit)
    of(unit).start(unit, *shlex.split(command), **environment)


def stop(unit):
    """Send SIGTERM, and wait until the process has exited."""
    processes = of(unit)
    if unit in processes.known and processes.lives(unit):
        os.kill(processes.known[unit][0], 15)
        deadline = time.monotonic() + STOPPED_WITHIN_SECONDS
        while processes.lives(unit):
            if time.monotonic() > deadline:
                raise TimeoutError(f'{unit} does not stop')
            time.sleep(0.05)


def said(unit):
    """The command of the unit, and its environment."""
    if unit == 'haproxy':
        return f'haproxy -f {MACHINE}/etc/haproxy/haproxy.cfg', {}
    files = [UNITS / f'{unit}.service', *(UNITS / f'{unit}.service.d').glob('*.conf')]
    text = ON_THE_MACHINE.sub(f'{MACHINE}/', '\n'.join(file.read_text() for file in files))
    [command] = re.findall('(?m)^ExecStart=(.*)$', text)
    return command, dict(re.findall(r'(?m)^Environment=(\w+)=(.*)$', text))


if __name__ == '__main__':
    main(*sys.argv[1:])
