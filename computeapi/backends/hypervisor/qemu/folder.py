"""The folders of the guests on a host, and the claims to change them."""

import contextlib
import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from computeapi.backends.atomic_files import write
from computeapi.backends.hypervisor import HypervisorError, NotYet, Outdated
from computeapi.backends.hypervisor.qemu.guest import QemuGuest

LOCK_TIMEOUT_SECONDS = 5
LOOK_SECONDS = 0.05
GOING = '.going'
CLAIM_BYTES = 20
# How long the token of a claim is remembered for a server that has no guest here any more.
REMEMBERED_SECONDS = 7 * 24 * 3600


class GuestFolder:
    """The folder of one guest. It does not depend on a driver process: different ones may create, leave and find it."""

    def __init__(self, path: Path):
        self.path, self.server_id = path, path.name

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    def read(self) -> QemuGuest | None:
        """None: there is no guest."""
        try:
            return QemuGuest.of((self / 'guest.json').read_bytes())
        except FileNotFoundError:
            return None

    def existing(self) -> QemuGuest:
        """The guest; HypervisorError if there is none."""
        guest = self.read()
        if guest is None:
            raise HypervisorError(f'Server {self.server_id} has no virtual machine.')
        return guest

    def write(self, guest: QemuGuest) -> None:
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        write(self / 'guest.json', guest.text())

    def tidy(self) -> None:
        """Remove unfinished files of a dead process: the caller holds the lock, so nobody else writes any."""
        for path in self.path.glob(f'*.{"[0-9a-f]" * 32}.part'):
            path.unlink(missing_ok=True)

    def remove(self) -> None:
        """Renames before it deletes, so that others find the guest whole or not at all."""
        going = self.path.with_name(f'{self.server_id}{GOING}')
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(going)
        with contextlib.suppress(FileNotFoundError):
            self.path.rename(going)
            shutil.rmtree(going)


class HostFolder:
    """The guests of one host, in a folder that no other host uses."""

    def __init__(self, path: Path):
        self.path, self.guests, self.claims = path, path / 'guests', path / 'claims'

    def of(self, server_id: str) -> GuestFolder:
        return GuestFolder(self.guests / server_id)

    def all(self) -> list[GuestFolder]:
        return [self.of(path.parent.name) for path in sorted(self.guests.glob('*/guest.json'))]

    @contextmanager
    def claimed(self, server_id: str, token: int) -> Iterator[GuestFolder]:
        """The folder, locked for the holder of this claim on the server's work (0: no claim).

        Outdated; NotYet if another process holds the lock for long."""
        self.claims.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(os.open(self.claims / server_id, os.O_RDWR | os.O_CREAT, 0o600), 'rb') as file:
            if not is_locked(file.fileno(), LOCK_TIMEOUT_SECONDS):
                raise NotYet(1)
            newest = int(file.read() or 0)
            if token and token < newest:
                raise Outdated(f'Claim {token} on {server_id} is not the newest, {newest}.')
            folder = self.of(server_id)
            if token > newest:
                try:
                    # Overwritten in place, which works even on a full disk.
                    os.pwrite(file.fileno(), f'{token:<{CLAIM_BYTES}}'.encode(), 0)
                except OSError:
                    # A guest that does not exist may still be deleted.
                    if folder.read() is not None:
                        raise
            folder.tidy()
            yield folder

    def forget(self) -> None:
        """Remove old claims on servers that have no guest here, and remains of interrupted deletions."""
        for path in [*self.claims.glob('*')] if self.claims.exists() else []:
            old = path.stat().st_mtime < time.time() - REMEMBERED_SECONDS
            if old and not (self.guests / path.name).exists():
                path.unlink(missing_ok=True)
        for path in self.guests.glob(f'*{GOING}'):
            shutil.rmtree(path, ignore_errors=True)


@contextmanager
def alone(path: Path, seconds: float, problem: str) -> Iterator[None]:
    """Hold the lock file, exclusively on the machine; a HypervisorError with this message if that takes longer."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with path.open('a') as lock:
        if not is_locked(lock.fileno(), seconds):
            raise HypervisorError(problem)
        yield


def is_locked(lock: int, seconds: float) -> bool:
    """Try to lock the open file for so long; returns whether it succeeded."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(LOOK_SECONDS)
