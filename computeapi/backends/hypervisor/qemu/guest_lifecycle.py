"""Creates and deletes guests, and updates them to the current state of their servers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from computeapi.backends.hypervisor import BusAddress, HypervisorError, Unfit
from computeapi.backends.hypervisor.qemu import command_line, disks
from computeapi.backends.hypervisor.qemu.child import end_those_of
from computeapi.backends.hypervisor.qemu.guest import Card, Disk, QemuGuest
from computeapi.backends.hypervisor.qemu.work import GuestWork
from computeapi.booleans import is_true
from computeapi.db.servers import BlockDevice, Server
from computeapi.states import VMState

CARDS = {'virtio': 'virtio-net-pci', 'e1000': 'e1000', 'e1000e': 'e1000e', 'rtl8139': 'rtl8139'}
MACHINES = ('q35', 'pc')
SHELVED = frozenset({VMState.SHELVED, VMState.SHELVED_OFFLOADED})


def spawn(
    work: GuestWork, devices: Sequence[BlockDevice], documents: Mapping[str, bytes], left: Mapping[str | None, Disk]
) -> None:
    """Create and start the guest, unless that was done already. left: its existing disks, by device UUID."""
    guest = work.folder.read() or new(work.server, work.host.options.machine)
    if guest.started:
        return
    work.folder.write(guest)
    make(work, guest, devices, documents, left)
    work.start(guest)
    guest.started = True
    work.folder.write(guest)


def new(server: Server, default: str) -> QemuGuest:
    wanted = str(server.image_properties.get('hw_machine_type') or default)
    # Versioned names stand for the machine of the installed QEMU.
    board = next((name for name in MACHINES if wanted == name or wanted.startswith((f'pc-{name}-', f'{name}-'))), None)
    if board is None:
        raise Unfit(f'Machine type {wanted} is not supported here; supported are {" and ".join(MACHINES)}.')
    return QemuGuest(server.uuid, server.flavor['vcpus'], server.flavor['memory_mb'], board)


def make(
    work: GuestWork,
    guest: QemuGuest,
    devices: Sequence[BlockDevice],
    documents: Mapping[str, bytes],
    left: Mapping[str | None, Disk],
) -> None:
    server, kernel_id, ramdisk_id = work.server, work.server.kernel_id, work.server.ramdisk_id
    if kernel_id:
        guest.kernel = str(work.named_image(kernel_id).path)
        guest.ramdisk = str(work.named_image(ramdisk_id).path) if ramdisk_id else None
        guest.command_line = str(server.image_properties.get('os_command_line') or 'console=ttyS0 root=/dev/vda')
        if not guest.command_line.isprintable():
            raise Unfit('os_command_line contains characters that cannot be passed to a kernel.')
    slots = Slots()
    guest.disks = [disk_of(work, device, slots.next(), left) for device in in_order(server, devices)]
    guest.cards = [card_of(server, entry, slots.next()) for entry in server.network_info]
    if documents:
        guest.disks.append(disks.drive(work.folder, slots.next(), documents))
    if has_agent(server):
        guest.agent_slot = slots.next()


def has_agent(server: Server) -> bool:
    """Whether its image declares that it contains the QEMU guest agent."""
    return is_true(server.image_properties.get('hw_qemu_guest_agent'))


class Slots:
    """Hands out the slots on the bus of a new guest in order."""

    def __init__(self) -> None:
        self.slot = command_line.FIRST_SLOT - 1

    def next(self) -> int:
        self.slot += 1
        if self.slot > command_line.LAST_SLOT:
            raise Unfit('The virtual machine has no room for so many devices.')
        return self.slot


def in_order(server: Server, devices: Sequence[BlockDevice]) -> list[BlockDevice | None]:
    """The boot disk first, then the others; None: the image's disk, which has no block device of its own."""
    found = sorted(devices, key=lambda device: 0 if device.boot_index == 0 else 1)
    implied = server.image_id and not any(device.boot_index == 0 for device in found)
    return [None, *found] if implied else [*found]


def disk_of(work: GuestWork, device: BlockDevice | None, slot: int, left: Mapping[str | None, Disk]) -> Disk:
    uuid = None if device is None else device.uuid
    if uuid in left:
        return replace(left[uuid], slot=slot)
    if device is None or (device.destination_type == 'local' and device.source_type == 'image'):
        is_root = device is None or device.boot_index == 0
        size = disks.root_size(work.server) if device is None or is_root else (device.volume_size or 0) * disks.GIB
        name = disks.ROOT if is_root or device is None else name_of('image', device)
        base, max_bytes = work.image(image_of(work.server, device)), work.host.images.max_bytes
        return disks.overlay(work.folder, name, slot, base, size, device, max_bytes=max_bytes)
    if device.destination_type == 'local':
        return disks.blank(work.folder, name_of('blank', device), slot, device)
    return disks.volume(device, slot)


def name_of(kind: str, device: BlockDevice) -> str:
    """QEMU limits node names to 31 characters."""
    return f'{kind}-{device.uuid[:8]}'


def image_of(server: Server, device: BlockDevice | None) -> str:
    """The image that a disk is built from; the root disk of a shelved server comes from its shelved image."""
    is_root = device is None or device.boot_index == 0
    if is_root and server.vm_state in SHELVED and server.shelved_image_id:
        return server.shelved_image_id
    found = (None if device is None else device.image_id) or server.image_id
    if not found:
        raise Unfit('There is no image for the disk of the server.')
    return found


def card_of(server: Server, entry: Mapping[str, Any], slot: int) -> Card:
    wanted = str(server.image_properties.get('hw_vif_model') or 'virtio')
    if wanted not in CARDS:
        raise Unfit(f'Network card {wanted} is not supported here; supported are {", ".join(CARDS)}.')
    port_id = entry.get('port_id') or entry['mac_address'].replace(':', '')
    return Card(port_id, entry['mac_address'], slot, dict(entry), CARDS[wanted])


def renew(work: GuestWork, guest: QemuGuest) -> None:
    """Update the guest to the current state of its server, before it starts again."""
    server = work.server
    # During a resize the server's own columns hold the larger of both sizes, so the flavor counts.
    guest.vcpus, guest.memory_mb = server.flavor['vcpus'], server.flavor['memory_mb']
    disks.grow_root(guest, server)
    gone = {card.port_id: card for card in guest.cards}
    guest.cards, guest.ghosts = [], []
    for entry in server.network_info:
        former = gone.pop(entry.get('port_id') or '', None)
        slot = former.slot if former else guest.free_slot(command_line.FIRST_SLOT, command_line.LAST_SLOT)
        if slot is None:
            raise HypervisorError('The virtual machine has no room for so many devices.')
        guest.cards.append(card_of(server, entry, slot))
    unplugged(work, guest, gone.values())
    # A process that still reads a disk would keep the guest from starting.
    end_those_of(work.folder)
    for path in work.folder.path.glob('sent-*'):
        # Copies sent to another host are outdated from now on.
        path.unlink(missing_ok=True)
    work.folder.write(guest)


def unplugged(work: GuestWork, guest: QemuGuest, cards: Iterable[Card]) -> None:
    for card in cards:
        work.host.networks.tear_down(guest.server_id, card.interface)


def destroy(work: GuestWork) -> None:
    guest = work.folder.read()
    for process in (work.process, work.exporter):
        process.end()
    end_those_of(work.folder)
    if guest is not None:
        # Before anything is written: a server may be deleted because the disk is full.
        for disk in guest.own_disks:
            Path(disk.file['filename']).unlink(missing_ok=True)
        unplugged(work, guest, guest.cards)
        work.disconnect_volumes(guest)
    work.folder.remove()


def places(
    guest: QemuGuest | None, server: Server, devices: Sequence[BlockDevice], default: str
) -> dict[str, BusAddress]:
    """The locations of interfaces (by port ID) and disks (by UUID), now or once the guest is created."""
    if guest is not None and guest.started:
        found: dict[str | None, int] = {disk.uuid: disk.slot for disk in guest.disks}
        found |= {card.port_id: card.slot for card in guest.cards}
    else:
        guest, slots = new(server, default), Slots()
        found = {None if device is None else device.uuid: slots.next() for device in in_order(server, devices)}
        found |= {entry['port_id']: slots.next() for entry in server.network_info}
    return {name: command_line.address(guest, slot) for name, slot in found.items() if name}
