"""Keeps a process on one CPU.

Python runs one thread of a process at a time. When the next one runs on another CPU, that CPU must be woken, and its
caches lack what the threads share: with several clients, this takes up to half of the CPU time of short requests.
"""

import os
import random
import socket
from collections.abc import Iterator, Set
from contextlib import contextmanager, suppress

from oslo_config import cfg

THREADS = '/proc/self/task'
RESERVATION = '\0computeapi/cpu/{cpu}'
"""The abstract socket whose holder has the CPU. The kernel frees the name when the process ends, however it ends."""


class CPUAffinity:
    """Where this process runs. permitted: the CPUs of its beginning; reserved: what it holds since it stays on one."""

    def __init__(self) -> None:
        self.permitted: set[int] = set()
        self.reserved: socket.socket | None = None

    def settle(self) -> None:
        """Stay on a CPU that no other process of this service has, with all threads; on any CPU if there is none.

        Processes do not see each other's reservations in different network namespaces, such as those of containers;
        so that they seldom choose the same CPU, they choose at random.
        """
        if self.reserved is not None or not hasattr(os, 'sched_setaffinity'):
            return
        self.permitted = os.sched_getaffinity(0)
        for cpu in random.sample(sorted(self.permitted), len(self.permitted)):
            self.reserved = _reserved(cpu)
            if self.reserved is not None:
                return _move_threads(cpu)

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """In the block, the current thread and the processes that it starts run on any CPU: for work of the operating
        system or of a C library, which Python's threads do not wait for."""
        if self.reserved is None:
            yield
            return
        settled = os.sched_getaffinity(0)
        _move(0, self.permitted)
        try:
            yield
        finally:
            _move(0, settled)


def _reserved(cpu: int) -> socket.socket | None:
    """A socket that reserves the CPU, or None if another process has it."""
    place = socket.socket(socket.AF_UNIX)
    try:
        place.bind(RESERVATION.format(cpu=cpu))
    except OSError:
        place.close()
        return None
    return place


def _move_threads(cpu: int) -> None:
    """Move all threads of this process; those that they start later stay there too."""
    for thread in os.listdir(THREADS):
        _move(int(thread), {cpu})


def _move(thread: int, cpus: Set[int]) -> None:
    """Move a thread, if possible: it may have ended, its container may have lost the CPUs, or a filter of system calls
    may forbid it. Requests are then only slower."""
    with suppress(OSError):
        os.sched_setaffinity(thread, cpus)


CPU_AFFINITY = CPUAffinity()
"""That of this process."""


def settle(conf: cfg.ConfigOpts) -> None:
    """Stay on one CPU, if the configuration permits it."""
    # Guests are processes that this one starts.
    if conf.cpu_affinity and conf.hypervisor.backend != 'qemu':
        CPU_AFFINITY.settle()
