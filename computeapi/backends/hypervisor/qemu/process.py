"""The QEMU of a guest: a process of its own, which outlives the driver and is found again by its pid file."""

import contextlib
import logging
import os
import subprocess
import time
from collections.abc import Callable, Sequence

from computeapi.backends.hypervisor import HypervisorError
from computeapi.backends.hypervisor.qemu.detached_process import LOOK_SECONDS, DetachedProcess
from computeapi.backends.hypervisor.qemu.folder import GuestFolder
from computeapi.backends.hypervisor.qemu.monitor import Monitor

LOG = logging.getLogger(__name__)
START_SECONDS, PID_SECONDS, STARTING_SECONDS = 60, 5, 0.5
QMP = 'qmp'
# QEMU's own -daemonize does what its -sandbox forbids.
# The output is appended, so that the file can be truncated: a guest can make QEMU complain without end.
START = ('setsid', '--fork', 'sh', '-c', 'echo $$ >"$0.pid"; : >"$0.output"; exec "$@" >>"$0.output" 2>&1')
MAX_OUTPUT_BYTES = 2**20
LIMITS = ('prlimit', '--core=0', '--nofile=4096', '--')
MAX_COMPLAINT_LENGTH = 2000


class FolderProcess:
    """A process that belongs to a guest. name: of its files in the folder.  mark: unique text in its arguments."""

    def __init__(self, folder: GuestFolder, name: str, mark: str):
        self.folder, self.name = folder, name
        self.running = DetachedProcess(folder / f'{name}.pid', mark)

    @property
    def pid(self) -> int | None:
        """None: it does not run."""
        return self.running.pid

    @property
    def runs(self) -> bool:
        return self.running.runs

    def begin(self, arguments: Sequence[str], is_ready: Callable[[], bool], files: Sequence[int] = ()) -> None:
        """Start it, and wait until it is ready; HypervisorError. files: open files that it inherits."""
        # One that is just exiting still has its files open.
        self.end()
        null, environment = subprocess.DEVNULL, {'PATH': os.defpath, 'LC_ALL': 'C'}
        try:
            subprocess.run(
                [*START, self.name, *LIMITS, *arguments],
                cwd=self.folder.path,
                env=environment,
                stdin=null,
                stdout=null,
                stderr=null,
                pass_fds=files,
                timeout=START_SECONDS,
                check=True,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise self._failed(str(error)) from None
        self._wait_until(is_ready)

    def _wait_until(self, is_ready: Callable[[], bool]) -> None:
        began, has_pid = time.monotonic(), False
        deadline, latest = began + START_SECONDS, began + PID_SECONDS
        # On a busy machine the PID file comes late; on a full disk it never comes. A process has no arguments for a
        # moment while it executes another program.
        while self.runs or time.monotonic() < latest:
            if self.runs or (not has_pid and self.running.number.exists()):
                has_pid, latest = True, time.monotonic() + STARTING_SECONDS
            if is_ready():
                return
            if time.monotonic() > deadline:
                self.end()
                break
            time.sleep(LOOK_SECONDS)
        output = self.folder / f'{self.name}.output'
        complaint = output.read_bytes()[-MAX_COMPLAINT_LENGTH:] if output.exists() else b''
        raise self._failed(complaint.decode(errors='replace'))

    def _failed(self, complaint: str) -> HypervisorError:
        """The output goes to the log only: it is about the host."""
        LOG.warning('The %s of %s could not be started: %s', self.name, self.folder.server_id, complaint)
        return HypervisorError(f'The virtual machine of {self.folder.server_id} could not be started.')

    def trim(self) -> None:
        """Truncate its output if it has grown too long."""
        with contextlib.suppress(FileNotFoundError):
            if (self.folder / f'{self.name}.output').stat().st_size > MAX_OUTPUT_BYTES:
                os.truncate(self.folder / f'{self.name}.output', 0)

    def end(self) -> None:
        """End it, as if its power was cut; data that it has written to its disks are kept."""
        if not self.running.end():
            raise HypervisorError(f'The virtual machine of {self.folder.server_id} could not be stopped.')


class GuestProcess(FolderProcess):
    """The QEMU that runs the guest."""

    def __init__(self, folder: GuestFolder):
        super().__init__(folder, 'guest', name_of(folder.server_id))

    def start(self, arguments: Sequence[str], files: Sequence[int] = ()) -> None:
        """Start it, or wait for one just started; returns once it has opened all its files. HypervisorError."""
        if self.runs:
            return self._wait_until(self._answers)
        (self.folder / QMP).unlink(missing_ok=True)
        self.begin(arguments, self._answers, files)

    def _answers(self) -> bool:
        if not (self.folder / QMP).exists():
            return False
        try:
            with Monitor(self.folder / QMP, timeout=0):
                return True
        except HypervisorError:
            # The socket exists a moment before QEMU listens on it.
            return False


def exporter_of(folder: GuestFolder) -> FolderProcess:
    """The process that lets another host write to the disks of a guest that is arriving from there."""
    return FolderProcess(folder, 'exporter', export_of(folder))


def export_of(folder: GuestFolder) -> str:
    """The prefix of the names of its exports."""
    return f'export-{folder.server_id}'


def name_of(server_id: str) -> str:
    """The argument that identifies the guest's QEMU."""
    return f'guest={server_id}'
