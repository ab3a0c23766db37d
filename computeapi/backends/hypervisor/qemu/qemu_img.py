"""qemu-img, bounded: what it reads may have been made to keep it busy for ever."""

import logging
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from computeapi import chance
from computeapi.backends.hypervisor import HypervisorError

LOG = logging.getLogger(__name__)
SECONDS = 30
# A bit of a qcow2's header, among the features that are to be known.
DATA_ELSEWHERE = 1 << 2
# Address space and processor time: more than any header needs that is well meant.
LIMITS = ['prlimit', f'--as={2 * 2**30}', f'--cpu={SECONDS}', '--core=0', '--']


def run(command: str, *arguments: str) -> bytes:
    """What it prints; HypervisorError."""
    done = tried((), command, *arguments)
    if done.returncode:
        LOG.warning('qemu-img %s: %s', command, done.stderr.decode(errors='replace')[:2000])
        raise HypervisorError('A disk could not be made or read.')
    return done.stdout


def tried(runner: Sequence[str], command: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            [*LIMITS, *runner, 'qemu-img', command, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=2 * SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        LOG.warning('qemu-img %s: %s', command, error)
        raise HypervisorError('A disk could not be made or read.') from None


def complaint(runner: Sequence[str], command: str, *arguments: str) -> str:
    """What it says against what it is asked, if anything; runner: the command that runs it."""
    done = tried(runner, command, *arguments)
    return done.stderr.decode(errors='replace').strip().removeprefix('qemu-img: ') if done.returncode else ''


def info(path: Path, disk_format: str) -> dict[str, Any]:
    """What qemu-img says of an image, which is of that format, and of nothing that it refers to."""
    if disk_format == 'qcow2':
        check_whole(path)
    found: dict[str, Any] = orjson.loads(run('info', '-U', '--output=json', '-f', disk_format, str(path)))
    return found


def check_whole(path: Path) -> None:
    """HypervisorError for a qcow2 whose data are in another file, which it names itself: none is made so here, but who
    broke out of a guest can write that into its disk, and whoever opens it next may have more rights."""
    with path.open('rb') as file:
        header = file.read(80)
    version, features = int.from_bytes(header[4:8]), int.from_bytes(header[72:80])
    if version >= 3 and features & DATA_ELSEWHERE:
        LOG.warning('%s refers to data in another file', path)
        raise HypervisorError('A disk refers to other files.')


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
