"""Processes that outlive their starter, and are found again by their pid files."""

import contextlib
import os
import signal
import time
from pathlib import Path

# The time to save what it has in memory before it is killed.
END_SECONDS = 5
LOOK_SECONDS = 0.02
OVER = 'ZX'


class Running:
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
        self.number.unlink(missing_ok=True)
        return True


def ended(pid: int, way: signal.Signals) -> bool:
    """Whether the process ends after that signal. It holds resources such as an address until it has fully exited,
    which is later than its arguments are gone."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, way)
    deadline = time.monotonic() + END_SECONDS
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)
    return not is_alive(pid)


def is_alive(pid: int) -> bool:
    """A zombie, whose parent has not waited for it yet, is not alive."""
    return state_of(Path(f'/proc/{pid}'))[0] not in OVER


def lives(group: int) -> bool:
    """Whether a process of the group is alive."""
    found = (state_of(path) for path in Path('/proc').glob('[0-9]*'))
    return any(of == group and state not in OVER for state, of in found)


def state_of(process: Path) -> tuple[str, int]:
    """The letter of its state, and its process group."""
    try:
        state, _, group = (process / 'stat').read_text().rpartition(')')[2].split()[:3]
    except OSError:
        return 'X', 0
    return state, int(group)
