"""A directory in which the processes of a service put their counts together.

Each has a slot, a file that it holds a lock on for as long as it lives, and counts in the files of that slot: those of
a process that died are gone on with by the next one, so that no count goes back and there are never more files than
processes at a time. Who comes when no other one lives begins anew.
"""

import fcntl
import itertools
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from oslo_config import cfg


class Slot:
    """The place of this process in the directory, until it ends. cfg.ConfigFileValueError for a directory that others
    could write to.

    number: no other living process has it.
    """

    def __init__(self, directory: Path):
        self.directory = directory
        _check(directory)
        with _locked(directory / 'lock'):
            living = _living(directory)
            if not living:
                _remove(directory.glob('*.db'))
            self.number = next(number for number in itertools.count() if number not in living)
            self._forget_the_dead({*living})
            self.held = _hold(_lock_of(directory, self.number))

    def leave(self) -> None:
        """Let another process have it."""
        self.held.close()

    def tidy(self) -> None:
        """Let nothing be told of what processes that died had open."""
        with _locked(self.directory / 'lock'):
            self._forget_the_dead({*_living(self.directory), self.number})

    def _forget_the_dead(self, living: set[int]) -> None:
        """Their gauges; the files are named by prometheus_client."""
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
    """The slots that somebody holds."""
    numbers = [int(path.stem.rpartition('-')[2]) for path in directory.glob('slot-*.lock')]
    return {number for number in numbers if not _is_free(_lock_of(directory, number))}


def _lock_of(directory: Path, number: int) -> Path:
    return directory / f'slot-{number}.lock'


def _is_free(path: Path) -> bool:
    try:
        _hold(path).close()
    except BlockingIOError:
        return False
    return True


def _hold(path: Path) -> IO[str]:
    """The file, locked for as long as it is open. BlockingIOError if somebody else has it."""
    file = path.open('a')
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise
    return file


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """While others wait."""
    with path.open('a') as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _remove(paths: Iterator[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
