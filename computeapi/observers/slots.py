"""A directory in which the processes of a service collect their metrics.

Each process has a slot: a file that it locks for its lifetime, and the files with its counts. The next process
continues with the counts of one that died, so no count decreases and there are never more files than concurrent
processes. A process that starts when no other one is running begins with empty counts.
"""

import fcntl
import itertools
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from oslo_config import cfg

from computeapi.lock_files import hold


class Slot:
    """The slot of this process. Raises cfg.ConfigFileValueError for a directory that others could write to.

    number: unique among running processes.
    """

    def __init__(self, directory: Path):
        self.directory = directory
        _check(directory)
        with _locked(directory / 'lock'):
            living = _living(directory)
            if not living:
                _remove(directory.glob('*.db'))
            self.number = next(number for number in itertools.count() if number not in living)
            self._remove_dead({*living})
            self.held = hold(_lock_of(directory, self.number))

    def leave(self) -> None:
        """Release the slot for another process."""
        self.held.close()

    def tidy(self) -> None:
        """Remove the gauges of processes that died."""
        with _locked(self.directory / 'lock'):
            self._remove_dead({*_living(self.directory), self.number})

    def _remove_dead(self, living: set[int]) -> None:
        """Remove the gauges of other slots; prometheus_client names the files."""
        gauges = self.directory.glob('gauge_live*_*.db')
        _remove(path for path in gauges if int(path.stem.rpartition('_')[2]) not in living)


def _check(directory: Path) -> None:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = directory.stat()
    if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o022:
        raise cfg.ConfigFileValueError(
            f'[metrics]directory: {directory} must be owned by, and writable only for, the user of this service'
        )


def _living(directory: Path) -> set[int]:
    """The slots that are in use."""
    numbers = [int(path.stem.rpartition('-')[2]) for path in directory.glob('slot-*.lock')]
    return {number for number in numbers if not _is_free(_lock_of(directory, number))}


def _lock_of(directory: Path, number: int) -> Path:
    return directory / f'slot-{number}.lock'


def _is_free(path: Path) -> bool:
    try:
        hold(path).close()
    except BlockingIOError:
        return False
    return True


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock, and wait for it if necessary."""
    with path.open('a') as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _remove(paths: Iterator[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
