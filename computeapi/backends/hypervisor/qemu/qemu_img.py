"""Runs qemu-img with limits: its input may have been crafted to keep it busy forever."""

import logging
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from computeapi import randomness
from computeapi.backends.hypervisor import HypervisorError

LOG = logging.getLogger(__name__)
SECONDS = 30
# The bit for an external data file in the incompatible features of a qcow2 header.
DATA_ELSEWHERE = 1 << 2
# Limits of address space and CPU time, which are more than any legitimate header needs.
LIMITS = ['prlimit', f'--as={2 * 2**30}', f'--cpu={SECONDS}', '--core=0', '--']


def run(command: str, *arguments: str) -> bytes:
    """Its output; HypervisorError."""
    done = tried((), command, *arguments)
    if done.returncode:
        LOG.warning('qemu-img %s failed: %s', command, done.stderr.decode(errors='replace')[:2000])
        raise HypervisorError('A disk could not be created or read.')
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
        LOG.warning('qemu-img %s failed: %s', command, error)
        raise HypervisorError('A disk could not be created or read.') from None


def complaint(runner: Sequence[str], command: str, *arguments: str) -> str:
    """Its error message, if it fails; runner: the command that runs it."""
    done = tried(runner, command, *arguments)
    return done.stderr.decode(errors='replace').strip().removeprefix('qemu-img: ') if done.returncode else ''


def info(path: Path, disk_format: str) -> dict[str, Any]:
    """The output of qemu-img info for an image in that format, without its backing chain."""
    if disk_format == 'qcow2':
        check_whole(path)
    found: dict[str, Any] = orjson.loads(run('info', '-U', '--output=json', '-f', disk_format, str(path)))
    return found


def check_whole(path: Path) -> None:
    """HypervisorError for a qcow2 with an external data file. None is created here, but an attacker who broke out of a
    guest can write such a header into its disk, and whoever opens it next may have more privileges."""
    with path.open('rb') as file:
        header = file.read(80)
    version, features = int.from_bytes(header[4:8]), int.from_bytes(header[72:80])
    if version >= 3 and features & DATA_ELSEWHERE:
        LOG.warning('Disk %s is rejected: its header refers to an external data file', path)
        raise HypervisorError('A disk refers to other files.')


def create(
    path: Path, size: int | None, *, disk_format: str = 'qcow2', backing: tuple[Path, str] | None = None
) -> None:
    """Create an image at the path, unless there is one; size in bytes, None: that of the backing file."""
    if path.exists():
        return
    # A unique name: a qemu-img started by a process that was killed may still be running.
    part = path.with_name(f'{path.name}.{randomness.new_hex_id()}.part')
    over = ['-b', str(backing[0]), '-F', backing[1]] if backing else []
    run('create', '-q', '-f', disk_format, *over, str(part), *([str(size)] if size is not None else []))
    part.replace(path)


def grow(path: Path, size: int, disk_format: str = 'qcow2') -> None:
    """Grow it to that many bytes, if it has fewer."""
    if info(path, disk_format)['virtual-size'] < size:
        run('resize', '-q', '-f', disk_format, str(path), str(size))
