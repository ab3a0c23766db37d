"""Diagnostics of a guest, from the counters of its QEMU and of the host's kernel."""

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from computeapi.backends.hypervisor import DISK_COUNTERS, HypervisorError
from computeapi.backends.hypervisor.qemu.guest import QemuGuest
from computeapi.backends.hypervisor.qemu.work import GuestWork
from computeapi.db.servers import BlockDevice

TICKS = os.sysconf('SC_CLK_TCK')
PAGE = os.sysconf('SC_PAGE_SIZE')
# The counters of QEMU that add up to each of DISK_COUNTERS.
COUNTED = dict(
    zip(
        DISK_COUNTERS,
        (
            ('rd_bytes',),
            ('rd_operations',),
            ('wr_bytes',),
            ('wr_operations',),
            ('failed_rd_operations', 'failed_wr_operations'),
        ),
        strict=True,
    )
)


def diagnose(work: GuestWork, devices: Sequence[BlockDevice]) -> Mapping[str, Any]:
    guest, pid = work.folder.existing(), work.process.pid
    with work.monitor() as monitor:
        threads = [each['thread-id'] for each in monitor.execute('query-cpus-fast')]
        blocks = monitor.execute('query-blockstats')
    try:
        uptime = seconds_since(Path(f'/proc/{pid}/stat'))
        memory = int(Path(f'/proc/{pid}/statm').read_text().split()[1]) * PAGE
        used = [seconds_used(Path(f'/proc/{pid}/task/{thread}/stat')) for thread in threads]
    except OSError:
        raise HypervisorError(f'The virtual machine of {guest.server_id} has just stopped.') from None
    return {
        # The API has a fixed list of drivers, and clients accept no other.
        'driver': 'libvirt',
        'hypervisor': 'kvm' if work.host.accelerator == 'kvm' else 'qemu',
        'hypervisor_os': 'linux',
        'uptime': int(uptime),
        'memory_used': memory // 2**20,
        'cpus': [{'time': int(each * 10**9), 'utilisation': int(100 * each / max(uptime, 1))} for each in used],
        'disks': disks(guest, devices, blocks),
        'interfaces': [
            {'mac_address': card.mac_address} | {**work.host.networks.counters(guest.server_id, card.interface)}
            for card in guest.cards
        ],
    }


def disks(
    guest: QemuGuest, devices: Sequence[BlockDevice], blocks: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """The disks that the server knows of."""
    names = {device.uuid: device.device_name for device in devices}
    stats = {block.get('node-name'): block['stats'] for block in blocks}
    return [
        {'device_name': names[disk.uuid]}
        | {counter: sum(stats[disk.node][each] for each in parts) for counter, parts in COUNTED.items()}
        for disk in guest.disks
        if disk.uuid in names and disk.node in stats
    ]


def fields(stat: Path) -> list[str]:
    """The fields of a process or a thread from the third on; the second, its name, may contain anything."""
    return stat.read_text().rpartition(')')[2].split()


def seconds_used(stat: Path) -> float:
    user, system = fields(stat)[11:13]
    return (int(user) + int(system)) / TICKS


def seconds_since(stat: Path) -> float:
    """The seconds since it was started."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields(stat)[19]) / TICKS
