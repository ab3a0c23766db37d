"""What an agent remembers of each server, so that it knows it after it was killed: a file for each."""

import contextlib
import json
import logging
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from computeapi.backends.hypervisor.remote.codec import codec
from computeapi.backends.whole_files import write

LOG = logging.getLogger(__name__)
# After so long nobody comes back who had a claim on a server that nobody has touched since.
FORGOTTEN_SECONDS = 14 * 24 * 3600
BOOT = Path('/proc/sys/kernel/random/boot_id')


@dataclass
class Recollection:
    """Of one server.

    token: the newest claim on it that was seen.  did: what was done last, by its identity, and what it returned; what
    was done before the machine was switched on is not so any more.  work: whose steps these are, each with the moment
    when it came to it first.
    """

    token: int = 0
    did: str = ''
    value: Any = None
    boot: str = ''
    work: str = ''
    steps: dict[str, datetime] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # One at a time writes it down, and it is no part of what is written.
        self.writing = threading.Lock()


CODEC = codec(Recollection)


class Memory:
    """A directory of recollections. Whoever does something with a server changes what is known of it, and nobody else
    but for the token.

    held: of those with which something is done just now.
    """

    def __init__(self, directory: Path, clock: Callable[[], datetime] = lambda: datetime.now(UTC)):
        self.directory, self.clock = directory, clock
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.boot = BOOT.read_text().strip() if BOOT.exists() else ''
        self.lock, self.held = threading.Lock(), WeakValueDictionary[str, Recollection]()
        self.unwritten: dict[str, Recollection] = {}

    def of(self, server_id: str) -> Recollection:
        """What is known of a server; ValueError for what is no UUID, and may be a path."""
        with self.lock:
            known = self.held.get(server_id)
            if known is None:
                known = self.held[server_id] = self._read(self._path(server_id))
            return known

    def keep(self, server_id: str) -> None:
        """Write down what `of` has given and somebody has changed. Where there is no room for it, it is known as long
        as this process lives, so that servers can be deleted to make room."""
        path, known = self._path(server_id), self.of(server_id)
        with known.writing:
            try:
                write(path, json.dumps(CODEC.write(known)).encode())
                self.unwritten.pop(server_id, None)
            except OSError as error:
                self.unwritten[server_id] = known
                LOG.warning('The work on server %s could not be recorded: %s', server_id, error)

    def passed(self, server_id: str, work: str, step: str) -> float:
        """How many seconds ago that piece of work on a server came to this step first."""
        known, now = self.of(server_id), self.clock()
        if known.work != work:
            known.work, known.steps = work, {}
        if step not in known.steps:
            known.steps[step] = now
            self.keep(server_id)
        return (now - known.steps[step]).total_seconds()

    def forget(self) -> None:
        """Remove what is so old that nobody needs it."""
        before = time.time() - FORGOTTEN_SECONDS
        for path in self.directory.glob('*.json'):
            with self.lock, contextlib.suppress(FileNotFoundError):
                if path.stem not in self.held and path.stat().st_mtime < before:
                    path.unlink()

    def _path(self, server_id: str) -> Path:
        return self.directory / f'{uuid.UUID(server_id)}.json'

    def _read(self, path: Path) -> Recollection:
        try:
            known: Recollection = CODEC.read(json.loads(path.read_text()))
        except FileNotFoundError:
            return Recollection(boot=self.boot)
        if known.boot != self.boot:
            known.did, known.boot = '', self.boot
        return known
