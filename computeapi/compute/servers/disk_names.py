"""The device names of a server's disks, and how many disks it may have."""

import itertools
from collections.abc import Iterator, Sequence
from string import ascii_lowercase
from typing import Protocol

from computeapi.compute.platform import Platform
from computeapi.db.servers import BlockDevice, Server
from computeapi.errors import DeviceInUse, Forbidden


class Named(Protocol):
    """A disk, which may have a name."""

    @property
    def device_name(self) -> str | None: ...
    @property
    def boot_index(self) -> int | None: ...


def letters() -> Iterator[str]:
    """a to z, aa to zz, aaa and so on."""
    for length in itertools.count(1):
        yield from map(''.join, itertools.product(ascii_lowercase, repeat=length))


def names_for(devices: Sequence[Named], root: str | None) -> list[str]:
    """A device name for each disk: its own, the root's, or the next free one."""
    taken = {device.device_name for device in devices if device.device_name}
    names: list[str] = []
    for device in devices:
        name = device.device_name or (root if device.boot_index == 0 and root not in taken else None) or _next(taken)
        taken.add(name)
        names.append(name)
    return names


def free_name(platform: Platform, server: Server, devices: Sequence[BlockDevice], wanted: str | None = None) -> str:
    """A device name for one more disk; DeviceInUse if the wanted one is taken, Forbidden if there are too many disks.
    A disk without a name does not count, as it may be the one to be named."""
    taken = {name for name in (server.root_device_name, *(device.device_name for device in devices)) if name}
    check_count(platform, len(taken) + 1)
    if wanted is not None and wanted in taken:
        raise DeviceInUse(path=wanted)
    return wanted or _next(taken)


def check_count(platform: Platform, count: int) -> None:
    """Forbidden if a server cannot have so many disks."""
    most = platform.conf.compute.max_disk_devices_to_attach
    if 0 <= most < count:
        raise Forbidden(
            f'The maximum allowed number of disk devices ({most}) to attach to a single instance has been exceeded.'
        )


def _next(taken: set[str]) -> str:
    return next(name for letter in letters() if (name := f'/dev/vd{letter}') not in taken)
