"""Long-running commands, which outlive the process that starts them and are found by the file that they create."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from computeapi.backends.hypervisor.qemu.detached_process import LOOK_SECONDS, DetachedProcess, lives
from computeapi.backends.hypervisor.qemu.folder import GuestFolder

# The output has another name until it is complete.
SCRIPT = 'echo $$ > "$0.pid"; : > "$0.part"; "$@" && mv "$0.part" "$0"; rm -f "$0.pid"'
START_SECONDS = 30
OUTPUT_PATTERNS = ('snapshot-*', 'sent-*')
"""The names of such outputs in the folders of guests."""


class Child:
    """A command that creates a file, or an empty one to show that it has finished; it must write to that file's name
    with `.part` appended."""

    def __init__(self, target: Path):
        self.target, self.part, self.number = target, suffixed(target, 'part'), suffixed(target, 'pid')
        self.running = DetachedProcess(self.number, str(target))

    @property
    def is_under_way(self) -> bool:
        try:
            # It has not written its PID yet.
            beginning = self.number.stat().st_size == 0 and self.number.stat().st_mtime > time.time() - START_SECONDS
        except FileNotFoundError:
            return False
        return beginning or self.running.runs

    @property
    def is_done(self) -> bool:
        return self.target.exists()

    def start(self, arguments: Sequence[str]) -> None:
        """Start it in a session of its own, so that it does not get the signals that end this process."""
        self.part.unlink(missing_ok=True)
        self.number.write_bytes(b'')
        command = ['setsid', '--fork', 'sh', '-c', SCRIPT, str(self.target), *arguments]
        null = subprocess.DEVNULL
        subprocess.run(command, stdin=null, stdout=null, stderr=null, check=True, timeout=START_SECONDS)

    def end(self) -> None:
        """Kill it with all its children, which hold files open until they exit; waits for its PID if necessary."""
        group, deadline = 0, time.monotonic() + START_SECONDS
        while (self.is_under_way or (group and lives(group))) and time.monotonic() < deadline:
            if (pid := self.running.pid) is not None:
                group = pid
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(group, signal.SIGKILL)
            time.sleep(LOOK_SECONDS)
        for path in (self.part, self.number):
            path.unlink(missing_ok=True)


def end_those_of(folder: GuestFolder, but: Path | None = None) -> None:
    """End a guest's commands, whose results nobody will fetch. but: the output of one that may continue."""
    for target in [number.with_suffix('') for name in OUTPUT_PATTERNS for number in folder.path.glob(f'{name}.pid')]:
        if target != but:
            Child(target).end()


def suffixed(path: Path, suffix: str) -> Path:
    return path.with_name(f'{path.name}.{suffix}')
