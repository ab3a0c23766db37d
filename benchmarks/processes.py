"""CPU time and memory of processes on this machine, from /proc (Linux)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

PROC = Path('/proc')
LISTENING = '0A'
"""The state of a socket in /proc/net/tcp."""


def cpu_seconds(pids: Iterable[int]) -> float:
    """The CPU time that the living threads of these processes have used so far, to the nanosecond."""
    threads = (thread for pid in pids for thread in PROC.glob(f'{pid}/task/*/schedstat'))
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


def resident_mib(pids: Iterable[int]) -> float:
    """The sum of their resident memory; shared pages count for each process."""
    return sum(int(_status(pid)['VmRSS'].split()[0]) for pid in pids) / 1024


def with_children(pids: Collection[int]) -> list[int]:
    """These processes and all their descendants."""
    parents = {pid: int(_status(pid).get('PPid', '0')) for pid in _all()}
    found = set(pids)
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found)


def listening_at(port: int) -> list[int]:
    """The processes that hold a socket listening on the port, and all their descendants."""
    sockets = {f'socket:[{inode}]' for inode in _listening(port)}
    return with_children([pid for pid in _all() if not sockets.isdisjoint(_files(pid))])


def _listening(port: int) -> set[str]:
    """The inodes of the sockets that listen on the port."""
    rows = [row.split() for name in ('tcp', 'tcp6') for row in (PROC / 'net' / name).read_text().splitlines()[1:]]
    return {row[9] for row in rows if row[3] == LISTENING and int(row[1].rpartition(':')[2], 16) == port}


def _all() -> list[int]:
    return [int(path.name) for path in PROC.iterdir() if path.name.isdecimal()]


def _files(pid: int) -> set[str]:
    """The open files of a process; empty if it belongs to another user or has just ended."""
    try:
        return {str(file.readlink()) for file in PROC.glob(f'{pid}/fd/*')}
    except OSError:
        return set()


def _status(pid: int) -> dict[str, str]:
    """The fields of /proc/PID/status by name; empty if the process has just ended."""
    try:
        lines = (PROC / f'{pid}/status').read_text().splitlines()
    except OSError:
        return {}
    return {name: value.strip() for name, _, value in (line.partition(':') for line in lines)}
