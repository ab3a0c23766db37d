"""qemu-storage-daemon, which lets other machines write to files of this one by NBD."""

import socket
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from computeapi.backends.hypervisor.qemu import disks
from computeapi.backends.hypervisor.qemu.command_line import text


class ServedFile(NamedTuple):
    """path: of the file.  name: of the export, for clients.  node, export: their names in the daemon's own monitor."""

    path: Path
    name: str
    node: str
    export: str


def command(
    address: str, port: int, served: Iterable[ServedFile], credentials: Mapping[str, Any] | None = None
) -> list[str]:
    """The command that serves the files. credentials: the properties of a QEMU object; None: no encryption.

    It takes no locks, because other processes open the files as well; access is controlled elsewhere."""
    server: dict[str, Any] = {'addr': {'type': 'inet', 'host': address, 'port': str(port)}}
    arguments = ['qemu-storage-daemon']
    if credentials is not None:
        arguments += ['--object', text(credentials)]
        server['tls-creds'] = credentials['id']
    blockdevs, exports = [], []
    for each in served:
        file = disks.file(each.path) | {'locking': 'off'}
        blockdevs += ['--blockdev', text({'driver': 'raw', 'node-name': each.node, 'file': file, 'discard': 'unmap'})]
        export = {'type': 'nbd', 'id': each.export, 'node-name': each.node, 'name': each.name, 'writable': True}
        exports += ['--export', text(export)]
    return [*arguments, *blockdevs, '--nbd-server', text(server), *exports]


def free_port(address: str) -> int:
    with socket.create_server((address, 0)) as unused:
        return int(unused.getsockname()[1])


def is_free(address: str, port: int) -> bool:
    try:
        socket.create_server((address, port)).close()
    except OSError:
        return False
    return True


def listens(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), 1).close()
    except OSError:
        return False
    return True
