"""How a host comes to the data of volumes, which lie elsewhere or are another service's."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from computeapi.backends.hypervisor import HypervisorError
from computeapi.backends.hypervisor.qemu.folder import GuestFolder
from computeapi.context import Context

VolumePath = Callable[[str], Path]
"""Where the data of a volume are on this machine."""

NBD = 'nbd'
"""How volumes of the built-in service are reached from other hosts, as a Cinder would call it."""
KEYS = 'keys.psk'
"""The file in which QEMU looks for the key that both sides of such a connection have."""


def key_line(key: str) -> bytes:
    """All of that file, for a key in hexadecimal."""
    return f'qemu:{key}\n'.encode()


class VolumeConnections(Protocol):
    """The volume service, as far as hosts ask it."""

    def connection(self, context: Context, server_id: str, volume_id: str, host: str) -> Mapping[str, Any]: ...


class Opening(NamedTuple):
    """What QEMU opens, raw, as its blockdev-add takes it, and what it shows there, as object-add does."""

    file: dict[str, Any]
    credentials: dict[str, Any] | None = None


class VolumeAccess(Protocol):
    """Each method may be called again after it was cut short, for a guest that has its folder. Errors: HypervisorError,
    also for what cannot be reached."""

    def connector(self) -> Mapping[str, Any]:
        """What the host says about itself to block storage, beside its name."""

    def connect(self, folder: GuestFolder, volume_id: str) -> Opening:
        """Let the host reach the volume for the guest; how its QEMU does."""

    def extend(self, folder: GuestFolder, volume_id: str) -> None:
        """Let the host see that a connected volume is longer now."""

    def disconnect(self, folder: GuestFolder, volume_id: str) -> None:
        """The guest has no use for it any more; what is not connected is no error."""


class VolumeFilesHere:
    """Those of the built-in service, as files of this machine. path_of: None where there are none."""

    def __init__(self, path_of: VolumePath | None, my_ip: str):
        self.path_of, self.my_ip = path_of, my_ip

    def connector(self) -> Mapping[str, Any]:
        return {'ip': self.my_ip, 'initiator': '', 'multipath': False}

    def connect(self, folder: GuestFolder, volume_id: str) -> Opening:
        path = None if self.path_of is None else self.path_of(volume_id)
        if path is None or not path.exists():
            raise HypervisorError(f'Volume {volume_id} has no data on this host.')
        return opened(path)

    def extend(self, folder: GuestFolder, volume_id: str) -> None:
        """The file is."""

    disconnect = extend


def opened(path: Path) -> Opening:
    """What a device holds is the same for all hosts that have it: none keeps pages of it."""
    if path.is_block_device():
        return Opening({'driver': 'host_device', 'filename': str(path), 'cache': {'direct': True}})
    return Opening({'driver': 'file', 'filename': str(path)})
