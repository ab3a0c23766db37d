"""The data of images, one file each in a directory."""

import errno
import hashlib
import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from computeapi import errors, randomness

LOG = logging.getLogger(__name__)
CHUNK = 64 * 1024
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


class FileChunks:
    """Yields the contents of an open file for a WSGI server, which calls `close` if the client disconnects."""

    def __init__(self, file: BinaryIO):
        self.file = file
        self.left: int | None = None

    def narrow(self, start: int, stop: int) -> None:
        """Yield only the bytes from `start` to before `stop`."""
        self.file.seek(start)
        self.left = stop - start

    def __iter__(self) -> 'FileChunks':
        return self

    def __next__(self) -> bytes:
        most = CHUNK if self.left is None else min(CHUNK, self.left)
        chunk = b'' if self.file.closed else self.file.read(most)
        if self.left is not None:
            self.left -= len(chunk)
        if not chunk:
            self.close()
            raise StopIteration
        return chunk

    def close(self) -> None:
        self.file.close()


@dataclass(frozen=True)
class Written:
    """Data on the disk, under a temporary name until they are kept."""

    path: Path
    size: int
    checksum: str
    hash_value: str


class ImageFiles:
    """Files named after images; the directory is created at the first write."""

    def __init__(self, directory: Path, max_bytes: int):
        self.directory = directory
        self.max_bytes = max_bytes

    def write(self, image_id: str, data: Iterable[bytes]) -> Written:
        """Write the data to the disk; TooLarge above the limit, or without room. A failure leaves no file behind."""
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self.directory / f'{image_id}.{randomness.new_hex_id()}.part'
        try:
            return self._write(path, data)
        except BaseException as error:
            path.unlink(missing_ok=True)
            if isinstance(error, OSError) and error.errno in NO_ROOM:
                LOG.error('There is no room in %s for the data of image %s', self.directory, image_id)
                raise errors.TooLarge('There is no room for the data of this image.') from None
            raise

    def _write(self, path: Path, data: Iterable[bytes]) -> Written:
        size, checksum, hash_value = 0, hashlib.md5(usedforsecurity=False), hashlib.sha512()
        with path.open('xb') as file:
            for chunk in data:
                size += len(chunk)
                if size > self.max_bytes:
                    raise errors.TooLarge(f'The image data is longer than the allowed {self.max_bytes} bytes.')
                checksum.update(chunk)
                hash_value.update(chunk)
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        return Written(path, size, checksum.hexdigest(), hash_value.hexdigest())

    def store(self, image_id: str, written: Written) -> None:
        """Make it the data of the image."""
        written.path.replace(self.directory / image_id)
        self._sweep(image_id)

    def discard(self, written: Written) -> None:
        written.path.unlink(missing_ok=True)

    def read(self, image_id: str) -> FileChunks:
        """The data of the image; FileNotFoundError if there are none."""
        return FileChunks((self.directory / image_id).open('rb'))

    def delete(self, image_id: str) -> None:
        (self.directory / image_id).unlink(missing_ok=True)
        self._sweep(image_id)

    def image_ids(self) -> set[str]:
        """The images that have files, complete or not."""
        return {path.name.partition('.')[0] for path in self.directory.glob('*')}

    def _sweep(self, image_id: str) -> None:
        """Remove temporary files of interrupted or outdated writes."""
        for path in self.directory.glob(f'{image_id}.*.part'):
            path.unlink(missing_ok=True)
