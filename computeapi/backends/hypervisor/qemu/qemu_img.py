"""qemu-img, bounded: what it reads may have been made to keep it busy for ever."""

import logging
import subprocess
from pathlib import Path
from typing import Any

import orjson

from computeapi import chance
from computeapi.backends.hypervisor import HypervisorError

LOG = logging.getLogger(__name__)
SECONDS = 30
# Address space and processor time: more than any header needs that is well meant.
LIMITS = ['prlimit', f'--as={2 * 2**30}', f'--cpu={SECONDS}', '--core=0', '--']


def run(command: str, *arguments: str) -> bytes:
    """What it prints; HypervisorError."""
    done = tried(command, *arguments)
    if done.returncode:
        LOG.warning('qemu-img %s: %s', command, done.stderr.decode(errors='replace')[:2000])
        raise HypervisorError('A disk could not be made or read.')
    return done.stdout


def tried(command: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            [*LIMITS, 'qemu-img', command, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=2 * SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        LOG.warning('qemu-img %s: %s', command, error)
        raise HypervisorError('A disk could not be made or read.') from None


def complaint(command: str, *arguments: str) -> str:
    """What it says against what it is asked, if anything."""
    done = tried(command, *arguments)
    return done.stderr.decode(errors='replace').strip().removeprefix('qemu-img: ') if done.returncode else ''


def info(path: Path, disk_format: str) -> dict[str, Any]:
    """What qemu-img says of an image, which is of that format, and of nothing that it refers to."""
    found: dict[str, Any] = orjson.loads(run('info', '-U', '--output=json', '-f', disk_format, str(path)))
    return found


def create(
    path: Path, size: int | None, *, disk_format: str = 'qcow2', backing: tuple[Path, str] | None = None
) -> None:
    """A new image at the path, unless there is one; size in bytes, None: that of what it is laid over."""
    if path.exists():
        return
    # Who was killed while it made one may have left a qemu-img that is still at it.
    part = path.with_name(f'{path.name}.{chance.new_hex_id()}.part')
    over = ['-b', str(backing[0]), '-F', backing[1]] if backing else []
    run('create', '-q', '-f', disk_format, *over, str(part), *([str(size)] if size is not None else []))
    part.replace(path)


def grow(path: Path, size: int, disk_format: str = 'qcow2') -> None:
    """To so many bytes, if it has less."""
    if info(path, disk_format)['virtual-size'] < size:
        run('resize', '-q', '-f', disk_format, str(path), str(size))
