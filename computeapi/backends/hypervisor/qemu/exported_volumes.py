"""Volumes of the built-in service as an agent accesses them: by NBD, from the machine that stores them."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from computeapi.backends.atomic_files import write
from computeapi.backends.hypervisor import HypervisorError
from computeapi.backends.hypervisor.qemu.folder import GuestFolder
from computeapi.backends.hypervisor.qemu.volume_access import KEYS, NBD, Opening, VolumeConnections, key_line
from computeapi.context import Context
from computeapi.errors import Error

RECONNECT_SECONDS = 120
"""The time for which guests wait for an unreachable volume before their reads and writes fail."""


class ExportedVolumes:
    """host: the name of this host.  my_ip: its address."""

    def __init__(self, service: VolumeConnections, host: str, my_ip: str):
        self.service, self.host, self.my_ip = service, host, my_ip

    def connector(self) -> Mapping[str, Any]:
        return {'ip': self.my_ip, 'initiator': '', 'multipath': False}

    def connect(self, folder: GuestFolder, volume_id: str) -> Opening:
        try:
            found = self.service.connection(Context().elevated(), folder.server_id, volume_id, self.host)
        except Error as error:
            raise HypervisorError(
                f'The volume service did not return how volume {volume_id} is reached: {error}'
            ) from None
        if found.get('driver_volume_type') != NBD:
            raise HypervisorError(f'Volume {volume_id} is not exported to other hosts.')
        keys = keys_of(folder, volume_id)
        keys.mkdir(mode=0o700, parents=True, exist_ok=True)
        write(keys / KEYS, key_line(found['key']))
        credentials = {'qom-type': 'tls-creds-psk', 'id': f'key-{volume_id}', 'endpoint': 'client', 'dir': str(keys)}
        return Opening(
            {
                'driver': 'nbd',
                'server': {'type': 'inet', 'host': found['address'], 'port': str(found['port'])},
                'export': found['export'],
                'tls-creds': credentials['id'],
                'reconnect-delay': RECONNECT_SECONDS,
            },
            credentials,
        )

    def extend(self, folder: GuestFolder, volume_id: str) -> None:
        """Asking for the connection again makes the service export the new size."""
        self.connect(folder, volume_id)

    def disconnect(self, folder: GuestFolder, volume_id: str) -> None:
        shutil.rmtree(keys_of(folder, volume_id), ignore_errors=True)


def keys_of(folder: GuestFolder, volume_id: str) -> Path:
    """The folder with the key that QEMU presents to the exporter."""
    return folder / f'keys-{volume_id}'
