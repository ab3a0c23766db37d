"""The buses of a simulated machine. Each interface and each virtio disk has a PCI bus of its own."""

from collections.abc import Mapping, Sequence
from typing import Any

from computeapi.backends.hypervisor import BusAddress
from computeapi.db.servers import BlockDevice

FIRST_INTERFACE, FIRST_DISK = 0x01, 0x80


def places(interfaces: Sequence[Mapping[str, Any]], disks: Sequence[BlockDevice]) -> dict[str, BusAddress]:
    """By port ID, and by UUID for disks with a device name."""
    found = {entry['port_id']: pci(FIRST_INTERFACE + at) for at, entry in enumerate(interfaces) if entry['port_id']}
    return found | {disk.uuid: place(disk) for disk in disks if disk.device_name}


def place(disk: BlockDevice) -> BusAddress:
    """Derived from the letter of its device name, which stays the same while the disk is attached."""
    at = max(0, ord((disk.device_name or 'a').rstrip('0123456789')[-1]) - ord('a'))
    if disk.disk_bus == 'scsi':
        return BusAddress('scsi', f'0:0:0:{at}')
    if disk.disk_bus == 'ide':
        return BusAddress('ide', f'{at // 2}:{at % 2}')
    if disk.disk_bus == 'usb':
        return BusAddress('usb', f'0:{at + 1}')
    return pci(FIRST_DISK + at)


def pci(bus: int) -> BusAddress:
    return BusAddress('pci', f'0000:{bus:02x}:00.0')
