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

from computeapi.backends.atomic_files import write
from computeapi.backends.hypervisor import HypervisorError
from computeapi.backends.hypervisor.qemu import storage_daemon
from computeapi.backends.hypervisor.qemu.folder import GuestFolder, alone
from computeapi.backends.hypervisor.qemu.process import FolderProcess
from computeapi.backends.hypervisor.qemu.storage_daemon import ServedFile, free_port, is_free, listens
from computeapi.backends.hypervisor.qemu.volume_access import KEYS, NBD, VolumePath, key_line

LOCK_SECONDS = 60
BUSY = 'Volumes are being exported.'


class VolumeExports:
    """folder: has a folder for each attachment.  path_of: returns the path of a volume's data.  address: of this
    machine, as hosts reach it.

    The processes outlive this one, as guests do. One that has died is started again on its former port, because guests
    try to reconnect; a later request is given another port if that one has been taken."""

    def __init__(self, folder: Path, path_of: VolumePath, address: str):
        self.folder, self.path_of, self.address = folder, path_of, address

    def connection(self, attachment_id: str, volume_id: str) -> dict[str, Any]:
        """How a host connects to the volume, with the key; valid from now on until `end`. HypervisorError."""
        with self._alone(attachment_id):
            export = self._of(attachment_id)
            facts = export.facts() or {'volume_id': volume_id, 'key': secrets.token_hex(32)}
            if 'port' not in facts or not (export.process.runs or is_free(self.address, facts['port'])):
                # A port can have been taken, e.g. after a restart of the machine: this caller is given another one.
                facts = self._with_port(export, facts)
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
        with self._alone(attachment_id):
            self._of(attachment_id).end()

    def upkeep(self, is_held: Callable[[str], bool]) -> None:
        """Restart processes that have died, and end those whose attachment is gone."""
        for path in self.folder.glob('*/export.json'):
            # Failures to start have been logged, and are retried the next time.
            with contextlib.suppress(HypervisorError), self._alone(path.parent.name):
                export = self._of(path.parent.name)
                if not is_held(path.parent.name):
                    export.end()
                elif (facts := export.facts()) and not export.process.runs:
                    export.start(facts, self.path_of(facts['volume_id']), self.address)

    def _of(self, attachment_id: str) -> 'VolumeExport':
        return VolumeExport(self.folder / str(uuid.UUID(attachment_id)))

    def _with_port(self, export: 'VolumeExport', facts: dict[str, Any]) -> dict[str, Any]:
        """The facts, with a port that no other export has, not even one that is just starting."""
        with alone(self.folder / 'lock', LOCK_SECONDS, BUSY):
            others = [VolumeExport(path.parent).facts() for path in self.folder.glob('*/export.json')]
            taken, port = {each['port'] for each in others if each}, 0
            while not port or port in taken:
                port = free_port(self.address)
            return export.note(facts | {'port': port})

    def _alone(self, attachment_id: str) -> AbstractContextManager[None]:
        """A process that is slow to start delays only the few attachments with the same lock. There is no lock for each
        attachment, because a lock file cannot be removed while others may wait for it."""
        return alone(self.folder / f'lock-{attachment_id[-2:]}', LOCK_SECONDS, BUSY)


class VolumeExport:
    """The export of one attachment; the folder is named after it."""

    def __init__(self, path: Path):
        self.path = path
        self.process = FolderProcess(GuestFolder(path), 'exporter', str(path))

    def facts(self) -> dict[str, Any] | None:
        """volume_id, key, port, and data: the inode and size of the exported file, once it is exported; None: there is
        no export."""
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
        if self.process.runs and facts.get('data') == seen:
            return facts
        self.process.end()
        # Connected guests reconnect to the same port.
        facts = self.note(facts | {'data': seen})
        write(self.path / KEYS, key_line(facts['key']))
        self.process.begin(arguments(self.path, facts, data, address), lambda: listens(address, facts['port']))
        return facts

    def note(self, facts: dict[str, Any]) -> dict[str, Any]:
        """Record the facts."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        write(self.path / 'export.json', orjson.dumps(facts))
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
