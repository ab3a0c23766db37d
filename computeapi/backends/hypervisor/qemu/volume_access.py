"""How a host accesses the data of volumes, which are stored elsewhere or belong to another service."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from computeapi.backends.hypervisor import HypervisorError
from computeapi.backends.hypervisor.qemu.folder import GuestFolder
from computeapi.context import Context

VolumePath = Callable[[str], Path]
"""Returns the path of a volume's data on this machine."""

NBD = 'nbd'
"""The connection type of exported volumes of the built-in service, in the form of Cinder's driver_volume_type."""
KEYS = 'keys.psk'
"""The file in which QEMU looks for the pre-shared key of such a connection."""


def key_line(key: str) -> bytes:
    """The contents of that file, for a key in hexadecimal."""
    return f'qemu:{key}\n'.encode()


class VolumeConnections(Protocol):
    """The part of the volume service that hosts use."""

    def connection(self, context: Context, server_id: str, volume_id: str, host: str) -> Mapping[str, Any]: ...


class Opening(NamedTuple):
    """The raw block node that QEMU opens, as for blockdev-add, and its credentials, as for object-add."""

    file: dict[str, Any]
    credentials: dict[str, Any] | None = None


class VolumeAccess(Protocol):
    """Every method is idempotent, also after an interruption; the guest's folder must exist. Errors: HypervisorError,
    also if something cannot be reached."""

    def connector(self) -> Mapping[str, Any]:
        """The connector properties of the host for block storage, without its name."""

    def connect(self, folder: GuestFolder, volume_id: str) -> Opening:
        """Connect the host to the volume for the guest; returns how QEMU opens it."""

    def extend(self, folder: GuestFolder, volume_id: str) -> None:
        """Make the host notice that a connected volume has grown."""

    def disconnect(self, folder: GuestFolder, volume_id: str) -> None:
        """Disconnect the volume from the guest; it is no error if it is not connected."""


class VolumeFilesHere:
    """Volumes of the built-in service, as files of this machine. path_of: None if there are none."""

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
        """Nothing to do for a file."""

    disconnect = extend


def opened(path: Path) -> Opening:
    """No page cache for a block device, because other hosts may access the same one."""
    if path.is_block_device():
        return Opening({'driver': 'host_device', 'filename': str(path), 'cache': {'direct': True}})
    return Opening({'driver': 'file', 'filename': str(path)})
