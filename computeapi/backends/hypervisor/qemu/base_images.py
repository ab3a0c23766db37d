"""Images as files on a host: fetched once, verified, never modified. The disks of guests are laid over them."""

import io
import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from oslo_utils.imageutils import format_inspector

from computeapi.backends.atomic_files import write
from computeapi.backends.hypervisor import HypervisorError, NotYet, Unfit
from computeapi.backends.hypervisor.qemu import qemu_img
from computeapi.backends.image import Image, Images
from computeapi.context import Context
from computeapi.errors import Error
from computeapi.lock_files import hold

LOG = logging.getLogger(__name__)
FORMATS = {'raw': 'raw', 'qcow2': 'qcow2', 'iso': 'raw', 'aki': 'raw', 'ari': 'raw', 'ami': 'raw'}
"""The formats as which QEMU opens images of these disk formats; others are refused."""
FOR_ALL = {'public', 'community'}
"""The visibilities of images that every project may use."""
PLAIN = {'raw', 'gpt', 'iso'}
"""The detected formats that are accepted for a raw image: disks with partitions and CDs are raw, too."""
AT_ONCE_SECONDS, LOOK_SECONDS = 2.0, 0.05
HEADERS_BYTES, CHUNK = 4 * 2**20, 64 * 1024


@dataclass(frozen=True)
class BaseImage:
    """size: of the disk, in bytes."""

    path: Path
    format: str
    size: int

    @property
    def backing(self) -> tuple[Path, str]:
        return self.path, self.format


class Fetching(threading.Thread):
    """A download into a file. lock: an open file, held until the download has ended.  error: why it failed."""

    def __init__(self, target: Path, image: Image, data: Iterable[bytes], max_bytes: int, lock: IO[str]):
        super().__init__(name=f'fetch {image.id}', daemon=True)
        self.target, self.image, self.data, self.max_bytes, self.lock = target, image, data, max_bytes, lock
        self.error: Error | None = None

    def run(self) -> None:
        part = self.target.with_suffix('.part')
        try:
            with self.lock:
                self.fill(part)
        except Error as error:
            self.error = error
        except Exception:
            LOG.exception('Image %s could not be downloaded', self.image.id)
            self.error = HypervisorError(f'Image {self.image.id} could not be fetched.')
        finally:
            if callable(close := getattr(self.data, 'close', None)):
                close()

    def fill(self, part: Path) -> None:
        try:
            with part.open('wb') as file:
                for chunk in bounded(self.data, self.max_bytes):
                    file.write(chunk)
                file.flush()
                os.fsync(file.fileno())
            size = checked(part, self.image)
            part.chmod(0o444)
            write(self.target.with_suffix('.size'), str(size).encode())
            part.replace(self.target)
        finally:
            part.unlink(missing_ok=True)


class BaseImages:
    """The images in a folder, which several drivers may share.

    max_bytes: the size limit of a file, in bytes.
    """

    def __init__(self, folder: Path, images: Images, max_bytes: int):
        self.folder, self.images, self.max_bytes = folder, images, max_bytes
        self.fetching: dict[Path, Fetching] = {}
        self.guard = threading.Lock()

    def get(self, context: Context, image_id: str, *, waits: bool) -> BaseImage:
        """The image, which must be visible to the caller; Unfit if it cannot be used.

        waits: raise NotYet while the data are being fetched, for callers that can call again."""
        image = self.images.get(context, image_id)
        if image.disk_format not in FORMATS:
            raise Unfit(f'Image {image_id} is in the format {image.disk_format}: this host supports raw and qcow2.')
        target = self.folder / f'{image.id}-{image.checksum or "unknown"}'
        deadline = time.monotonic() + AT_ONCE_SECONDS
        while not target.exists():
            self.fetch(context, image, target)
            if waits and time.monotonic() > deadline:
                raise NotYet(1)
        # The modification time marks the image as recently used: see `tidy`.
        os.utime(target)
        return BaseImage(target, FORMATS[image.disk_format], int(target.with_suffix('.size').read_bytes()))

    def file(self, context: Context, image_id: str) -> tuple[Path, str, int]:
        """The same, for callers that block until it is there."""
        found = self.get(context, image_id, waits=False)
        return found.path, found.format, found.size

    def check_owner(self, context: Context, image_id: str, project_id: str) -> None:
        """Unfit for an image that neither belongs to that project nor is public or community."""
        image = self.images.get(context, image_id)
        if image.owner != project_id and image.visibility not in FOR_ALL:
            raise Unfit(f'Image {image_id} is not available to project {project_id}.')

    def tidy(self, used: Callable[[], Collection[str]], hours: float) -> None:
        """Remove images that were not requested for *hours*; used: returns the paths that guests need."""
        since = time.time() - hours * 3600
        old = [path for path in self.folder.glob('*') if not path.suffix and path.stat().st_mtime < since]
        for path in set(map(str, old)) - set(used() if old else ()):
            LOG.info('Image %s is removed from the cache', path)
            for suffix in ('', '.size', '.lock'):
                Path(path).with_suffix(suffix).unlink(missing_ok=True)

    def fetch(self, context: Context, image: Image, target: Path) -> None:
        """Start fetching the image unless that is under way, wait briefly, and raise the error of a failure."""
        with self.guard:
            fetching = self.fetching.get(target) or self.begin(context, image, target)
        if fetching is None:
            time.sleep(LOOK_SECONDS)
            return
        fetching.join(LOOK_SECONDS)
        if not fetching.is_alive():
            with self.guard:
                self.fetching.pop(target, None)
            if fetching.error is not None:
                raise fetching.error

    def begin(self, context: Context, image: Image, target: Path) -> Fetching | None:
        """None: another process is fetching it."""
        self.folder.mkdir(mode=0o711, parents=True, exist_ok=True)
        try:
            lock = hold(target.with_suffix('.lock'))
        except BlockingIOError:
            return None
        try:
            data = self.images.download(context, image.id)
        except BaseException:
            lock.close()
            raise
        found = self.fetching[target] = Fetching(target, image, data, self.max_bytes, lock)
        found.start()
        return found


def bounded(data: Iterable[bytes], max_bytes: int) -> Iterator[bytes]:
    size = 0
    for chunk in data:
        size += len(chunk)
        if size > max_bytes:
            raise HypervisorError(f'The image is larger than the {max_bytes} bytes that this host accepts.')
        yield chunk


def checked(path: Path, image: Image) -> int:
    """The size of the disk in the file, after everything that its header could make QEMU do has been checked; Unfit."""
    wanted = FORMATS[image.disk_format or '']
    found = looks_like(path)
    names = {str(each) for each in found}
    if not names or not names <= (PLAIN if wanted == 'raw' else {wanted}):
        raise Unfit(f'Image {image.id} is declared as {image.disk_format}, but its content does not match.')
    if wanted == 'raw':
        return path.stat().st_size
    try:
        for each in found:
            each.safety_check()
    except (format_inspector.SafetyCheckFailed, format_inspector.ImageFormatError):
        raise Unfit(f'Image {image.id} refers to other files, or has unknown features.') from None
    try:
        info = qemu_img.info(path, wanted)
    except HypervisorError:
        raise Unfit(f'Image {image.id} cannot be read.') from None
    if 'backing-filename' in info or 'data-file' in info.get('format-specific', {}).get('data', {}):
        raise Unfit(f'Image {image.id} refers to other files.')
    if info.get('encrypted'):
        raise Unfit(f'Image {image.id} is encrypted.')
    return int(info['virtual-size'])


def looks_like(path: Path) -> list[format_inspector.FileInspector]:
    """The formats that the beginning of the file matches; an ISO image that also boots as a disk matches two."""
    with path.open('rb') as file:
        wrapper = format_inspector.InspectWrapper(io.BytesIO(file.read(HEADERS_BYTES)))
        try:
            while wrapper.read(CHUNK):
                pass
        finally:
            wrapper.close()
    return wrapper.formats or []
