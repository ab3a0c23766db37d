"""The data of volumes, snapshots and backups, if guests are to see them: sparse raw files of the size of the volume."""

import contextlib
import fcntl
import logging
import math
import shutil
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from computeapi.backends.image.blank import simulated_disk
from computeapi.context import Context
from computeapi.cpu_affinity import CPU_AFFINITY
from computeapi.errors import Error

LOG = logging.getLogger(__name__)
GIB = 1024**3
MAX_SECONDS = 6 * 3600
# The age in seconds from which a file without a record is an orphan: the record of a newer one may not be committed
# yet.
SETTLED_SECONDS = 3600

UPLOADED = ('raw', 'qcow2')
"""The formats of images that can be created from volumes."""
CHUNK = 256 * 1024

ImageFile = Callable[[Context, str], tuple[Path, str, int]]
"""Returns an image as an inspected file: its path, its format, and the size of its disk in bytes."""


class Unfillable(Error):
    text = 'The data of the volume could not be written.'


@dataclass(frozen=True)
class Contents:
    """The initial contents of a file: the disk of an image, or another file's data."""

    image_id: str | None = None
    source_id: str | None = None

    @property
    def passing(self) -> str:
        """The status of a volume while it is being filled."""
        return 'creating' if self.image_id is None else 'downloading'


class VolumeFiles:
    """Files named by the ID of their record; the directory is created on first write."""

    def __init__(self, directory: Path, image: ImageFile):
        self.directory, self.image = directory, image

    def room(self) -> tuple[int, int]:
        """The total and the free size of the disk, in GiB."""
        there = next(folder for folder in (self.directory, *self.directory.parents) if folder.exists())
        usage = shutil.disk_usage(there)
        return usage.total // GIB, usage.free // GIB

    def path(self, thing_id: str) -> Path:
        return self.directory / str(uuid.UUID(thing_id))

    def make_blank(self, thing_id: str, size: int) -> None:
        """size: in GiB."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self.path(thing_id).open('ab') as file:
            file.truncate(size * GIB)

    grow = make_blank

    def delete(self, thing_id: str) -> None:
        self.path(thing_id).unlink(missing_ok=True)

    def begin(self, thing_id: str, contents: Contents | None = None) -> 'FileFilling':
        """Lock the file while it is filled, or while its data are read for an image."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        source_id = None if contents is None else contents.source_id
        return FileFilling(self, thing_id, None if source_id is None else self.path(source_id))

    def is_being_filled(self, thing_id: str) -> bool:
        try:
            with self.path(thing_id).with_suffix('.lock').open('rb') as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except FileNotFoundError:
            return False
        return False

    def left(self) -> list[str]:
        """The IDs of files that were not touched for SETTLED_SECONDS. Deletes the partial files of dead processes."""
        before = time.time() - SETTLED_SECONDS
        old = [path for path in self.directory.glob('*') if touched(path) < before]
        for path in old:
            if path.suffix and not self.is_being_filled(path.stem):
                path.unlink(missing_ok=True)
        return [path.name for path in old if not path.suffix]

    def write(self, part: Path, contents: Contents, opened: int | None, context: Context, size: int) -> None:
        """opened: the descriptor of the source, if it is a file here.  size: in bytes."""
        if contents.image_id is not None:
            source, disk_format, length = self.image(context, contents.image_id)
            if length > size:
                raise Unfillable(
                    f'The disk of image {contents.image_id} has {length} bytes, but the volume only {size}.'
                )
            run('qemu-img', 'convert', '-q', '-f', disk_format, '-O', 'raw', str(source), str(part))
        elif opened is not None:
            run('cp', '--sparse=always', '--reflink=auto', f'/dev/fd/{opened}', str(part), kept=(opened,))
        else:
            raise Unfillable(f'There is no data of {contents.source_id}.')
        with part.open('ab') as file:
            file.truncate(size)


def touched(path: Path) -> float:
    """The time of the last change; infinity for a file that another process has just removed."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return math.inf


class FileFilling:
    """A file that is being filled; it appears under its name when it is complete. Its source is kept open, so that it
    may be deleted as soon as the record of the new file exists."""

    def __init__(self, files: VolumeFiles, thing_id: str, source: Path | None = None):
        self.files, self.thing_id = files, thing_id
        self.source: IO[bytes] | None = None
        if source is not None:
            with contextlib.suppress(FileNotFoundError):
                self.source = source.open('rb')
        self.target = files.path(thing_id)
        self.lock: IO[bytes] = self.target.with_suffix('.lock').open('ab')
        fcntl.flock(self.lock, fcntl.LOCK_EX)

    def start(self, contents: Contents, context: Context, size: int, done: Callable[[bool], None]) -> None:
        """Fill the file in a background thread. size: in GiB.  done: called with whether it worked."""

        def fill(part: Path) -> None:
            opened = None if self.source is None else self.source.fileno()
            self.files.write(part, contents, opened, context, size * GIB)
            part.replace(self.target)

        self.begin(fill, done)

    def send(self, disk_format: str, send: Callable[[Iterator[bytes]], Any], done: Callable[[bool], None]) -> None:
        """Send the data of the file in a background thread, as an image of that format."""

        def convert(part: Path) -> None:
            if disk_format == 'raw':
                send(chunks(self.target))
                return
            run('qemu-img', 'convert', '-q', '-U', '-f', 'raw', '-O', disk_format, str(self.target), str(part))
            send(chunks(part))

        self.begin(convert, done)

    def begin(self, work: Callable[[Path], None], done: Callable[[bool], None]) -> None:
        """work: called with a path for incomplete data."""
        threading.Thread(target=self.run, args=(work, done), name=f'fill {self.thing_id}', daemon=True).start()

    def run(self, work: Callable[[Path], None], done: Callable[[bool], None]) -> None:
        part = self.target.with_suffix('.part')
        try:
            work(part)
            worked = True
        except Exception as error:
            LOG.warning('%s could not be filled: %s', self.thing_id, error, exc_info=not isinstance(error, Error))
            worked = False
        finally:
            part.unlink(missing_ok=True)
        try:
            done(worked)
        except Error as error:
            outcome = 'was filled' if worked else 'could not be filled'
            LOG.warning('%s %s, but its status could not be updated: %s', self.thing_id, outcome, error)
        finally:
            self.end()

    def end(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            self.target.with_suffix('.lock').unlink()
        self.lock.close()
        if self.source is not None:
            self.source.close()


class SimulatedData:
    """The data of images created from volumes that have no data."""

    def __init__(self, label: str):
        self.label = label

    def send(self, disk_format: str, send: Callable[[Iterator[bytes]], Any], done: Callable[[bool], None]) -> None:
        """Like `FileFilling.send`, but synchronous."""
        try:
            send(iter([simulated_disk(self.label)]))
        except Error as error:
            LOG.warning('No image of %s could be created: %s', self.label, error)
            done(False)
        else:
            done(True)

    def end(self) -> None:
        return


def chunks(path: Path) -> Iterator[bytes]:
    with path.open('rb') as file:
        while chunk := file.read(CHUNK):
            yield chunk


def run(*arguments: str, kept: Collection[int] = ()) -> None:
    """Raises Unfillable on failure.  kept: file descriptors that the command inherits."""
    try:
        with CPU_AFFINITY.suspended():
            done = subprocess.run(
                arguments,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=MAX_SECONDS,
                check=False,
                pass_fds=kept,
            )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unfillable(f'{arguments[0]}: {error}') from None
    if done.returncode:
        raise Unfillable(f'{arguments[0]}: {done.stderr.decode(errors="replace")[:2000]}')
