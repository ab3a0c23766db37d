"""Exports volumes of the built-in service to guests on other hosts: each attachment has an NBD server process of its
own, for as long as the attachment exists.

Each attachment has a key of its own, without which nobody can read or write its volume: an NBD server tells everybody
the names of its exports.
"""

import contextlib
import os
import secrets
import shutil
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import orjson

from computeapi.backends.hypervisor import HypervisorError
from computeapi.backends.hypervisor.qemu import storage_daemon
from computeapi.backends.hypervisor.qemu.folder import GuestFolder, alone
from computeapi.backends.hypervisor.qemu.process import FolderProcess
from computeapi.backends.hypervisor.qemu.storage_daemon import ServedFile, free_port, is_free, listens
from computeapi.backends.hypervisor.qemu.volume_access import KEYS, NBD, VolumePath, key_line
from computeapi.backends.whole_files import write

LOCK_SECONDS = 60


class VolumeExports:
    """folder: has a folder for each attachment.  path_of: returns the path of a volume's data.  address: of this
    machine, as hosts reach it.

    The processes outlive this one, as guests do. One that has died is started again on its former port, because guests
    try to reconnect; a later request is given another port if that one has been taken."""

    def __init__(self, folder: Path, path_of: VolumePath, address: str):
        self.folder, self.path_of, self.address = folder, path_of, address

    def connection(self, attachment_id: str, volume_id: str) -> dict[str, Any]:
        """How a host connects to the volume, with the key; valid from now on until `end`. HypervisorError."""
        with self._alone():
            export = self._of(attachment_id)
            facts = export.facts() or {'volume_id': volume_id, 'key': secrets.token_hex(32)}
            if 'port' in facts and not export.process.runs and not is_free(self.address, facts['port']):
                # The port has been taken, e.g. after a restart of the machine: this caller is given another one.
                del facts['port']
            facts = export.start(facts, self.path_of(volume_id), self.address)
        return {
            'driver_volume_type': NBD,
            'address': self.address,
            'port': facts['port'],
            'export': facts['volume_id'],
            'key': facts['key'],
        }

    def end(self, attachment_id: str) -> None:
        """Disconnects clients that are connected."""
        with self._alone():
            self._of(attachment_id).end()

    def upkeep(self, is_held: Callable[[str], bool]) -> None:
        """Restart processes that have died, and end those whose attachment is gone."""
        for path in self.folder.glob('*/export.json'):
            # Failures to start have been logged, and are retried the next time.
            with contextlib.suppress(HypervisorError), self._alone():
                export = self._of(path.parent.name)
                if not is_held(path.parent.name):
                    export.end()
                elif (facts := export.facts()) and not export.process.runs:
                    export.start(facts, self.path_of(facts['volume_id']), self.address)

    def _of(self, attachment_id: str) -> 'VolumeExport':
        return VolumeExport(self.folder / str(uuid.UUID(attachment_id)))

    def _alone(self) -> AbstractContextManager[None]:
        return alone(self.folder / 'lock', LOCK_SECONDS, 'Volumes are being exported.')


class VolumeExport:
    """The export of one attachment; the folder is named after it."""

    def __init__(self, path: Path):
        self.path = path
        self.process = FolderProcess(GuestFolder(path), 'exporter', str(path))

    def facts(self) -> dict[str, Any] | None:
        """volume_id, key, port, and data: the inode and size of the exported file; None: there is no export."""
        try:
            found: dict[str, Any] = orjson.loads((self.path / 'export.json').read_bytes())
        except FileNotFoundError:
            return None
        return found

    def start(self, facts: dict[str, Any], data: Path, address: str) -> dict[str, Any]:
        """Start it, or restart it if the volume's file has changed; returns the facts that then hold."""
        if not data.exists():
            raise HypervisorError(f'Volume {facts["volume_id"]} has no data here.')
        seen = [data.stat().st_ino, data.stat().st_size]
        if self.process.runs and facts['data'] == seen:
            return facts
        self.process.end()
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        write(self.path / KEYS, key_line(facts['key']))
        # Connected guests reconnect to the same port.
        facts = facts | {'data': seen, 'port': facts.get('port') or free_port(address)}
        write(self.path / 'export.json', orjson.dumps(facts))
        self.process.begin(arguments(self.path, facts, data, address), lambda: listens(address, facts['port']))
        return facts

    def end(self) -> None:
        self.process.end()
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self.path)


def arguments(folder: Path, facts: dict[str, Any], data: Path, address: str) -> list[str]:
    """The arguments of the process. It does not limit writing: the attachments say who may write to a volume."""
    keys = {'qom-type': 'tls-creds-psk', 'id': 'keys', 'endpoint': 'server', 'dir': os.fspath(folder)}
    served = ServedFile(data, facts['volume_id'], node='volume', export='export')
    return storage_daemon.command(address, facts['port'], [served], keys)
