"""Processes that outlive whoever started them, who finds them again by the number that a file keeps of each."""

import contextlib
import os
import signal
import time
from pathlib import Path

# How long one has to put away what it has in memory before it is ended by force.
END_SECONDS = 5
LOOK_SECONDS = 0.02
OVER = 'ZX'


class Running:
    """number: the file.  mark: what only the arguments of this process have: a number may be another's by now."""

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
        """Ask it to end, and then make it; whether it has, and its number is forgotten."""
        pid = self.pid
        if pid is not None and not any(ended(pid, way) for way in (signal.SIGTERM, signal.SIGKILL)):
            return False
        self.number.unlink(missing_ok=True)
        return True


def ended(pid: int, way: signal.Signals) -> bool:
    """Whether the process ends at that signal. It keeps what it holds, e.g. an address, to the end, longer than its
    arguments."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, way)
    deadline = time.monotonic() + END_SECONDS
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)
    return not is_alive(pid)


def is_alive(pid: int) -> bool:
    """Nobody may have asked yet how one ended that is not."""
    return state_of(Path(f'/proc/{pid}'))[0] not in OVER


def lives(group: int) -> bool:
    """Whether a process of the group is alive."""
    found = (state_of(path) for path in Path('/proc').glob('[0-9]*'))
    return any(of == group and state not in OVER for state, of in found)


def state_of(process: Path) -> tuple[str, int]:
    """The letter of its state, and its group."""
    try:
        state, _, group = (process / 'stat').read_text().rpartition(')')[2].split()[:3]
    except OSError:
        return 'X', 0
    return state, int(group)
