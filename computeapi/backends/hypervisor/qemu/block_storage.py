"""Volumes of a Cinder, connected to the host by os-brick: iSCSI, NVMe, RBD, NFS, or whatever the volume driver uses."""

import functools
import json
import math
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import os_brick
from os_brick import privileged
from os_brick.initiator import connector
from os_brick.initiator.connectors.base import BaseLinuxConnector
from oslo_concurrency import lockutils
from oslo_service import backend

from computeapi.backends.atomic_files import write
from computeapi.backends.hypervisor import HypervisorError
from computeapi.backends.hypervisor.qemu.folder import GuestFolder, alone
from computeapi.backends.hypervisor.qemu.libraries import failing
from computeapi.backends.hypervisor.qemu.volume_access import Opening, VolumeConnections, opened
from computeapi.context import Context
from computeapi.errors import Error, NotFound

SUDO = 'sudo'


class ConnectedVolumes:
    """state: the state folder of the machine.  hosts: the folders of all its hosts.

    The connection of a volume is noted in the guest's folder: Cinder may no longer know it when it is to be
    disconnected."""

    def __init__(
        self,
        service: VolumeConnections,
        host: str,
        my_ip: str,
        state: Path,
        hosts: Sequence[Path],
        *,
        multipath: bool,
    ):
        self.service, self.host, self.my_ip, self.hosts, self.multipath = service, host, my_ip, hosts, multipath
        locks = state / 'volume-locks'
        locks.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.lock = locks / 'all'
        lockutils.set_defaults(str(locks))
        os_brick.setup(lockutils.CONF)
        backend.register_backend_default_hook(lambda: backend.BackendType.THREADING)
        if os.geteuid() == 0:
            privileged.default.set_client_mode(False)

    @functools.cached_property
    def _connector(self) -> Mapping[str, Any]:
        with brick('asked what it can connect'):
            found = connector.get_connector_properties(SUDO, self.my_ip, self.multipath, False, host=self.host)
        return dict(found)

    def connector(self) -> Mapping[str, Any]:
        return self._connector

    def connect(self, folder: GuestFolder, volume_id: str) -> Opening:
        note = note_of(folder, volume_id)
        # Asked outside of the lock, so that other work on the machine does not wait for the volume service.
        info = self.connection_info(folder.server_id, volume_id, read(note))
        with self.alone():
            write(note, json.dumps({'info': info, 'device': None}).encode())
            with brick(f'connected to volume {volume_id}'):
                device = self.driver(info).connect_volume(info['data'])
                path = Path(os.fsdecode(device['path']))
            write(note, json.dumps({'info': info, 'device': device}).encode())
        return opened(path)

    def connection_info(self, server_id: str, volume_id: str, noted: Mapping[str, Any] | None) -> dict[str, Any]:
        """The connection information of the volume; HypervisorError if guests cannot use such a volume.

        noted: the previous information. It is used if Cinder no longer knows the ID, because the volume was migrated.
        """
        try:
            found = self.service.connection(Context().elevated(), server_id, volume_id, self.host)
        except NotFound as error:
            if noted is not None:
                return dict(noted['info'])
            raise HypervisorError(str(error)) from None
        except Error as error:
            raise HypervisorError(
                f'The volume service did not return how volume {volume_id} is reached: {error}'
            ) from None
        data = {**found}
        kind = data.pop('driver_volume_type', None)
        if data.get('encrypted'):
            raise HypervisorError(f'Volume {volume_id} is encrypted, which this host does not support.')
        if data.get('format') not in (None, 'raw'):
            raise HypervisorError(
                f'Volume {volume_id} is a file in the format {data["format"]}, but this host requires raw.'
            )
        if data.get('access_mode') == 'ro':
            raise HypervisorError(f'Volume {volume_id} is read-only, which this host does not support.')
        return {'driver_volume_type': kind, 'data': data}

    def extend(self, folder: GuestFolder, volume_id: str) -> None:
        noted = read(note_of(folder, volume_id))
        # Only block devices must be rescanned; a file already has its new size.
        if noted and noted['device'] and Path(noted['device']['path']).is_block_device():
            with self.alone(), brick(f'told that volume {volume_id} is longer'):
                self.driver(noted['info']).extend_volume(noted['info']['data'])

    def disconnect(self, folder: GuestFolder, volume_id: str) -> None:
        with self.alone():
            note = note_of(folder, volume_id)
            noted = read(note)
            if noted is None:
                return
            if not self.others(note):
                with brick(f'disconnected from volume {volume_id}'):
                    self.driver(noted['info']).disconnect_volume(noted['info']['data'], noted['device'], force=True)
            note.unlink(missing_ok=True)

    def others(self, note: Path) -> bool:
        """Whether another guest of the machine uses the same volume connection."""
        return any(path != note for host in self.hosts for path in host.glob(f'guests/*/{note.name}'))

    def driver(self, info: Mapping[str, Any]) -> BaseLinuxConnector:
        """HypervisorError for a kind of storage that os-brick does not know."""
        kind = info['driver_volume_type']
        with failing(f'No host here reaches {kind} storage.', secrets=True):
            return connector.InitiatorConnector.factory(kind, SUDO, use_multipath=self.multipath, conn=info)

    def alone(self) -> AbstractContextManager[None]:
        """One at a time on the machine, across processes: whoever disconnects last must see a newcomer."""
        return alone(self.lock, math.inf, 'Volumes of the host are being connected.')


def brick(what: str) -> AbstractContextManager[None]:
    """Wraps calls of os-brick."""
    return failing(f'The host could not be {what}.', secrets=True)


def note_of(folder: GuestFolder, volume_id: str) -> Path:
    return folder / f'volume-{volume_id}.json'


def read(note: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(note.read_bytes())
    except FileNotFoundError:
        return None
    return found
