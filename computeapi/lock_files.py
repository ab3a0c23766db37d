"""Lock files, by which processes on a machine keep out of each other's way."""

import fcntl
from pathlib import Path
from typing import IO


def hold(path: Path, problem: str = 'Another process holds the lock.') -> IO[str]:
    """The lock file, created if necessary and locked for as long as it is open; a BlockingIOError with this message if
    another process has it."""
    file = path.open('a')
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise BlockingIOError(problem) from None
    return file
