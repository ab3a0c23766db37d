"""The directory in which a standalone service keeps everything: database, images, passwords."""

import base64
import os
import secrets
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from computeapi.errors import Error
from computeapi.lock_files import hold

MEMORY = Path('/dev/shm')
TEMPORARY = 'computeapi-'
"""The prefix of the names of temporary directories."""
LOCK = 'lock'
KEY_BYTES = 32
DATABASE_FILES = {'.db', '.db-wal', '.db-shm'}


class Directory:
    """A directory that only this user can access; `temporary` if it is removed at the end."""

    def __init__(self, path: Path, *, temporary: bool = False):
        self.path, self.temporary = path, temporary

    def read(self, name: str) -> str | None:
        """The text of a file; None if it does not exist."""
        try:
            return (self.path / name).read_text().rstrip('\n')
        except FileNotFoundError:
            return None

    def write(self, name: str, text: str) -> Path:
        """Write a file that only this user can read, atomically."""
        target, new = self.path / name, self.path / f'.{name}.new'
        new.unlink(missing_ok=True)
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), 'w') as file:
            file.write(text + '\n')
        new.replace(target)
        return target

    def copy_to(self, other: 'Directory') -> None:
        """Copy all files except the database to another directory, which is empty."""
        for path in self.path.iterdir():
            if path.is_file() and path.suffix not in DATABASE_FILES and path.name != LOCK:
                other.write(path.name, path.read_text().rstrip('\n'))

    def secret(self, name: str) -> str:
        """Random bytes as text, which are stored under this name when they are first needed."""
        kept = self.read(name)
        if kept is None:
            kept = base64.urlsafe_b64encode(secrets.token_bytes(KEY_BYTES)).decode()
            self.write(name, kept)
        return kept

    def key(self, name: str) -> str:
        """A secret that encrypts; Error if it is damaged, which otherwise only users would notice."""
        try:
            key = self.secret(name)
            if len(base64.urlsafe_b64decode(key)) == KEY_BYTES:
                return key
        except ValueError:
            pass
        raise Error(f'{self.path / name} is not a key, which is {KEY_BYTES} bytes in URL-safe base64: restore it')


def database_file(path: str | Path) -> Path:
    """The database in a directory, which may not exist yet."""
    return Path(path) / 'computeapi.db'


def database(path: str | Path) -> str:
    """The URL of the database in a directory."""
    return f'sqlite:///{database_file(path)}'


@contextmanager
def opened(path: str | None) -> Iterator[Directory]:
    """The directory at `path`, locked for one process; None: a temporary one in memory, which is removed at the end."""
    if path is None:
        memory = MEMORY if os.access(MEMORY, os.W_OK) else None
        remove_abandoned(Path(memory or tempfile.gettempdir()))
        directory = Directory(Path(tempfile.mkdtemp(prefix=TEMPORARY, dir=memory)), temporary=True)
        remove = removed_with(directory, directory.path)
        try:
            with hold(directory.path / f'.{LOCK}.new') as lock:
                # By this name, the lock is known to be held as long as the process lives.
                Path(lock.name).rename(directory.path / LOCK)
                yield directory
        finally:
            remove()
        return
    folder = Path(path).resolve()
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f'{folder} is not a directory')
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with hold(folder / LOCK, f'{folder} is in use by another process'):
        yield Directory(folder)


def remove_abandoned(place: Path) -> None:
    """Remove this user's temporary directories there whose processes were killed."""
    for lock in place.glob(f'{TEMPORARY}*/{LOCK}'):
        with suppress(OSError):
            if lock.parent.lstat().st_uid == os.getuid():
                with hold(lock):
                    shutil.rmtree(lock.parent, ignore_errors=True)


def removed_with(owner: object, path: Path) -> Callable[[], object]:
    """Remove the directory when nothing refers to *owner* any more, or when the returned function is called."""
    return weakref.finalize(owner, _remove, path, os.getpid())


def _remove(path: Path, process: int) -> None:
    """Remove a directory of this process, but not in a process that was forked from it."""
    if process == os.getpid():
        shutil.rmtree(path, ignore_errors=True)
