"""Taps: network cards whose other end is a link of the host, one for each port."""

import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from computeapi.backends.hypervisor import HypervisorError
from computeapi.backends.hypervisor.qemu.bridges import links
from computeapi.backends.hypervisor.qemu.folder import alone

Interface = Mapping[str, Any]
PORT_ID = re.compile(r'[0-9a-f-]{11,36}')
LOCK_TIMEOUT_SECONDS = 30
COUNTED = {'octets': 'bytes', 'packets': 'packets', 'drop': 'dropped', 'errors': 'errors'}


class Taps:
    """The common part of all networks that connect guests by taps; see GuestNetworks."""

    def netdev(self, server_id: str, interface: Interface) -> dict[str, Any]:
        return {'type': 'tap', 'ifname': tap_of(port_of(interface)), 'script': 'no', 'downscript': 'no'}

    def card(self, server_id: str, interface: Interface) -> dict[str, Any]:
        return {}

    def counters(self, server_id: str, interface: Interface) -> Mapping[str, int]:
        """What the host receives is what the guest sends, so rx and tx are exchanged."""
        stats = links.counters(tap_of(port_of(interface)))
        return {
            f'{theirs}_{name}': stats[ours][word]
            for theirs, ours in (('rx', 'tx'), ('tx', 'rx'))
            for name, word in COUNTED.items()
            if word in stats.get(ours, ())
        }


def changing(folder: Path) -> AbstractContextManager[None]:
    """The lock on the host's networks that are recorded in the folder; HypervisorError."""
    return alone(folder / 'lock', LOCK_TIMEOUT_SECONDS, 'The networks of the host are being changed for too long.')


def tap_of(port_id: str) -> str:
    return f'tap{port_id[:11]}'


def port_of(interface: Interface) -> str:
    port_id = str(interface.get('port_id'))
    if not PORT_ID.fullmatch(port_id):
        raise HypervisorError(f'{port_id} is not a port.')
    return port_id
