"""The folder in which a standalone service keeps everything: database, images, passwords."""

import base64
import fcntl
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MEMORY = Path('/dev/shm')


class Directory:
    """A folder of this user only; `temporary` if it goes away at the end."""

    def __init__(self, path: Path, *, temporary: bool = False):
        self.path, self.temporary = path, temporary

    def read(self, name: str) -> str | None:
        """What was written under this name; None if nothing was."""
        try:
            return (self.path / name).read_text().rstrip('\n')
        except FileNotFoundError:
            return None

    def write(self, name: str, text: str) -> Path:
        """Keep text in a file of this user only, whole or not at all."""
        target, new = self.path / name, self.path / f'.{name}.new'
        new.unlink(missing_ok=True)
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), 'w') as file:
            file.write(text + '\n')
        new.replace(target)
        return target

    def secret(self, name: str) -> str:
        """The 32 random bytes that are kept under this name, as text; they are made when they are first asked for."""
        kept = self.read(name)
        if kept is None:
            kept = base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()
            self.write(name, kept)
        return kept


def database(path: str | Path) -> str:
    """The URL of the database in a directory."""
    return f'sqlite:///{Path(path) / "computeapi.db"}'


@contextmanager
def opened(path: str | None) -> Iterator[Directory]:
    """The directory at `path`, for one process at a time; None: one in memory, removed at the end."""
    if path is None:
        memory = MEMORY if os.access(MEMORY, os.W_OK) else None
        with tempfile.TemporaryDirectory(prefix='computeapi-', dir=memory) as name:
            yield Directory(Path(name), temporary=True)
        return
    folder = Path(path).resolve()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(folder / 'lock', 'w') as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BlockingIOError(f'{folder} is in use by another process') from None
        yield Directory(folder)
