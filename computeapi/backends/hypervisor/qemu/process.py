"""The QEMU of a guest: a process of its own, which outlives the driver and is found again by its pid file."""

import contextlib
import logging
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from computeapi.backends.hypervisor import HypervisorError
from computeapi.backends.hypervisor.qemu.folder import GuestFolder
from computeapi.backends.hypervisor.qemu.monitor import Monitor

LOG = logging.getLogger(__name__)
START_SECONDS, STARTING_SECONDS = 60, 0.5
# How long one has to write back what it has in memory before it is ended by force.
END_SECONDS = 5
LOOK_SECONDS = 0.02
PID, OUTPUT, QMP = 'pid', 'output', 'qmp'
# QEMU's own -daemonize does what its -sandbox forbids.
START = ['setsid', '--fork', 'sh', '-c', f'echo $$ >{PID}; exec "$@" >{OUTPUT} 2>&1', 'guest']
LIMITS = ['prlimit', '--core=0', '--nofile=4096', '--']
LONGEST_COMPLAINT = 2000


class GuestProcess:
    def __init__(self, folder: GuestFolder):
        self.folder = folder

    @property
    def pid(self) -> int | None:
        """None: it does not run. A number that another process has by now is none of it."""
        try:
            number = int((self.folder / PID).read_text())
            state = Path(f'/proc/{number}/stat').read_text().rpartition(')')[2].split()[0]
            arguments = Path(f'/proc/{number}/cmdline').read_bytes()
        except (OSError, ValueError):
            return None
        # Nobody may have asked yet how it ended.
        ended = state in 'ZX'
        return None if ended or name_of(self.folder.server_id).encode() not in arguments else number

    @property
    def runs(self) -> bool:
        return self.pid is not None

    def start(self, arguments: Sequence[str], files: Sequence[int] = ()) -> None:
        """Start it, which is done when it has opened all that it needs; HypervisorError. files: open ones for it."""
        for name in (PID, QMP):
            (self.folder / name).unlink(missing_ok=True)
        null, environment = subprocess.DEVNULL, {'PATH': os.defpath, 'LC_ALL': 'C'}
        try:
            subprocess.run(
                [*START, *LIMITS, *arguments],
                cwd=self.folder.path,
                env=environment,
                stdin=null,
                stdout=null,
                stderr=null,
                pass_fds=files,
                timeout=START_SECONDS,
                check=True,
            )
            self._wait_for_answer()
        except (OSError, subprocess.SubprocessError) as error:
            LOG.warning('The guest of %s was not started: %s', self.folder.server_id, error)
            raise not_started(self.folder) from None

    def _wait_for_answer(self) -> None:
        seen, deadline = time.monotonic(), time.monotonic() + START_SECONDS
        # Whoever becomes another program has no arguments for a moment.
        while self.runs or time.monotonic() < seen + STARTING_SECONDS:
            if self.runs:
                seen = time.monotonic()
            if (self.folder / QMP).exists() and self._answers():
                return
            if time.monotonic() > deadline:
                self.end()
                break
            time.sleep(LOOK_SECONDS)
        complaint = (self.folder / OUTPUT).read_bytes()[-LONGEST_COMPLAINT:].decode(errors='replace')
        LOG.warning('The guest of %s was not started: %s', self.folder.server_id, complaint)
        raise not_started(self.folder)

    def _answers(self) -> bool:
        try:
            with Monitor(self.folder / QMP):
                return True
        except HypervisorError:
            # Its socket is there a moment before it listens.
            return False

    def end(self) -> None:
        """End it, as if its power was cut; what it wrote to its disks is there."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            pid = self.pid
            if pid is None:
                break
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
            self.wait(END_SECONDS)
        if self.runs:
            raise HypervisorError(f'The virtual machine of {self.folder.server_id} could not be ended.')
        (self.folder / PID).unlink(missing_ok=True)

    def wait(self, seconds: float) -> bool:
        """Whether it has ended by then."""
        deadline = time.monotonic() + seconds
        while self.runs:
            if time.monotonic() > deadline:
                return False
            time.sleep(LOOK_SECONDS)
        return True


def name_of(server_id: str) -> str:
    """How a QEMU is told apart from others by its arguments."""
    return f'guest={server_id}'


def not_started(folder: GuestFolder) -> HypervisorError:
    return HypervisorError(f'The virtual machine of {folder.server_id} could not be started.')
