"""Processes that outlive their starter, and are found again by their pid files."""

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import NamedTuple

# The time to save what it has in memory before it is killed.
END_SECONDS = 5
LOOK_SECONDS = 0.02
# From linux/sched.h.
PF_EXITING = 0x4


class DetachedProcess:
    """number: the pid file.  mark: text that only this process's arguments contain, because PIDs are reused."""

    def __init__(self, number: Path, mark: str):
        self.number, self.mark = number, mark

    @property
    def pid(self) -> int | None:
        """None: it does not run."""
        try:
            pid = int(self.number.read_text())
            arguments = Path(f'/proc/{pid}/cmdline').read_bytes()
        except (OSError, ValueError):
            return None
        return pid if self.mark.encode() in arguments and is_alive(pid) else None

    @property
    def runs(self) -> bool:
        return self.pid is not None

    def end(self) -> bool:
        """Terminate it, by force if needed, and remove the pid file; returns whether it has ended."""
        pid = self.pid
        if pid is not None and not any(ended(pid, way) for way in (signal.SIGTERM, signal.SIGKILL)):
            return False
        if not self._has_exited():
            return False
        self.number.unlink(missing_ok=True)
        return True

    def _has_exited(self) -> bool:
        """Waits for a process that is exiting by itself: it has no arguments any more, but resources. It gets no
        signal, because the PID may belong to another process by now."""
        try:
            pid = int(self.number.read_text())
        except (OSError, ValueError):
            return True
        return not status_of(pid).exits or is_gone(pid)


def ended(pid: int, way: signal.Signals) -> bool:
    """Whether the process ends after that signal."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, way)
    return is_gone(pid)


def is_gone(pid: int) -> bool:
    """Whether the process ends soon. It holds resources such as an address until it has fully exited, which is later
    than its arguments are gone."""
    deadline = time.monotonic() + END_SECONDS
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)
    return not is_alive(pid)


def is_alive(pid: int) -> bool:
    return status_of(pid).is_alive


def lives(group: int) -> bool:
    """Whether a process of the group is alive."""
    found = (status_of(int(path.name)) for path in Path('/proc').glob('[0-9]*'))
    return any(each.group == group and each.is_alive for each in found)


class Status(NamedTuple):
    """exits: whether its main thread is exiting, or has."""

    is_alive: bool
    exits: bool
    group: int


def status_of(pid: int) -> Status:
    try:
        fields = Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
    except OSError:
        return Status(is_alive=False, exits=True, group=0)
    state, group, flags, threads = fields[0], int(fields[2]), int(fields[6]), int(fields[17])
    # A zombie, whose parent has not waited for it yet, is not alive, unless other threads of the process still are.
    is_over = state == 'X' or (state == 'Z' and threads <= 1)
    return Status(is_alive=not is_over, exits=bool(flags & PF_EXITING), group=group)
