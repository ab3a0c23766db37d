"""What an agent must remember of each server after it was killed, in one file per server."""

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

from computeapi.backends.atomic_files import write
from computeapi.backends.hypervisor.remote.codec import codec

LOG = logging.getLogger(__name__)
# A claim on a server that was not touched for this long will not be used again.
FORGOTTEN_SECONDS = 14 * 24 * 3600
BOOT = Path('/proc/sys/kernel/random/boot_id')


@dataclass
class ServerState:
    """What an agent must remember of one server.

    token: the newest claim seen.  did: the identity of the last operation, with its result in `value`; forgotten after
    a boot of the machine.  work: the work that the steps belong to.  steps: when it first reached each step.
    """

    token: int = 0
    did: str = ''
    value: Any = None
    boot: str = ''
    work: str = ''
    steps: dict[str, datetime] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Only one thread writes at a time; the lock itself is not written.
        self.writing = threading.Lock()


CODEC = codec(ServerState)


class ServerStates:
    """The states of servers in a directory. Only the operation that runs for a server changes its own, except for the
    token.

    held: the states of servers with an operation in progress.
    """

    def __init__(self, directory: Path, clock: Callable[[], datetime] = lambda: datetime.now(UTC)):
        self.directory, self.clock = directory, clock
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.boot = BOOT.read_text().strip() if BOOT.exists() else ''
        self.lock, self.held = threading.Lock(), WeakValueDictionary[str, ServerState]()
        self.unwritten: dict[str, ServerState] = {}

    def of(self, server_id: str) -> ServerState:
        """The state of a server; ValueError if the ID is not a UUID, because it might be a path."""
        with self.lock:
            state = self.held.get(server_id)
            if state is None:
                state = self.held[server_id] = self._read(self._path(server_id))
            return state

    def save(self, server_id: str) -> None:
        """Write the state that `of` returned and the caller changed. If that fails, e.g. on a full disk, it is
        kept in memory for the life of this process, so that servers can be deleted to make room."""
        path, state = self._path(server_id), self.of(server_id)
        with state.writing:
            try:
                write(path, json.dumps(CODEC.write(state)).encode())
                self.unwritten.pop(server_id, None)
            except OSError as error:
                self.unwritten[server_id] = state
                LOG.warning('The work on server %s could not be recorded: %s', server_id, error)

    def passed(self, server_id: str, work: str, step: str) -> float:
        """The seconds since that work on a server first reached this step."""
        state, now = self.of(server_id), self.clock()
        if state.work != work:
            state.work, state.steps = work, {}
        if step not in state.steps:
            state.steps[step] = now
            self.save(server_id)
        return (now - state.steps[step]).total_seconds()

    def forget(self) -> None:
        """Remove files that are too old to be needed."""
        before = time.time() - FORGOTTEN_SECONDS
        for path in self.directory.glob('*.json'):
            with self.lock, contextlib.suppress(FileNotFoundError):
                if path.stem not in self.held and path.stat().st_mtime < before:
                    path.unlink()

    def _path(self, server_id: str) -> Path:
        return self.directory / f'{uuid.UUID(server_id)}.json'

    def _read(self, path: Path) -> ServerState:
        try:
            state: ServerState = CODEC.read(json.loads(path.read_text()))
        except FileNotFoundError:
            return ServerState(boot=self.boot)
        if state.boot != self.boot:
            state.did, state.boot = '', self.boot
        return state
