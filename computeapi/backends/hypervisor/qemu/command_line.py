"""Turns a guest into the arguments of its QEMU. Socket paths are relative to the folder in which QEMU is started."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import orjson
from oslo_config import cfg

from computeapi.backends.hypervisor import BusAddress
from computeapi.backends.hypervisor.qemu.guest import Card, Disk, QemuGuest
from computeapi.backends.hypervisor.qemu.process import QMP, name_of

SERIAL, VNC, SPICE, AGENT, CONSOLE_LOG = 'serial', 'vnc', 'spice', 'agent', 'console.log'
# Screen, keyboard and mouse, with uncompressed pixels that every client can decode. Sharing files and the clipboard
# with the client needs a device that guests do not have, and is disabled as well.
SPICE_OPTIONS = (
    f'unix=on,addr={SPICE},disable-ticketing=on,image-compression=off,jpeg-wan-compression=never,'
    'zlib-glz-wan-compression=never,streaming-video=off,playback-compression=off,seamless-migration=off,'
    'agent-mouse=off,disable-copy-paste=on,disable-agent-file-xfer=on'
)
CARD = 'card-'
# The slots of devices that can be hot-plugged; those before belong to the board.
FIRST_SLOT, LAST_SLOT = 4, 31
# On a q35 each slot is a root port of its own; eight ports share one slot of the board.
PORTS_PER_PLACE, FIRST_PLACE = 8, 4


def arguments(
    options: cfg.ConfigOpts.GroupAttr, guest: QemuGuest, accelerator: str, netdev: 'Netdev', *, spice: bool
) -> list[str]:
    """options: the group [qemu].  netdev: returns the backend of a card, and more of the card's properties.
    spice: whether its screen is also served by SPICE."""
    return [
        options.binary,
        *('-name', f'{name_of(guest.server_id)},debug-threads=on', '-uuid', guest.server_id),
        *('-machine', f'{guest.machine},accel={accelerator},usb=off', '-cpu', processor(accelerator)),
        *('-smp', str(guest.vcpus), '-m', f'{guest.memory_mb}M', '-rtc', 'base=utc'),
        *('-nodefaults', '-no-user-config', '-display', 'none', '-msg', 'timestamp=on', '-boot', 'strict=on'),
        *('-chardev', f'socket,id=qmp,path={QMP},server=on,wait=off', '-mon', 'chardev=qmp,mode=control'),
        *('-chardev', f'socket,id=serial,path={SERIAL},server=on,wait=off,logfile={CONSOLE_LOG},logappend=on'),
        *('-serial', 'chardev:serial', '-vga', 'std', '-vnc', f'unix:{VNC}'),
        *(('-spice', SPICE_OPTIONS) if spice else ()),
        *_ports(guest),
        *('-device', 'virtio-balloon-pci,' + _place(guest, FIRST_SLOT - 1)),
        *(part for disk in guest.volumes if disk.credentials for part in ('-object', text(disk.credentials))),
        *(part for disk in disks_of(guest) for node in nodes(disk) for part in ('-blockdev', text(node))),
        *(
            part
            for at, disk in enumerate(disks_of(guest))
            for each in _disk(guest, disk, at)
            for part in ('-device', each)
        ),
        *(part for card in guest.cards for part in _card(guest, card, netdev)),
        *_agent(guest),
        *_kernel(guest),
    ]


Netdev = Callable[[Card], tuple[dict[str, Any], Mapping[str, Any]]]


def processor(accelerator: str) -> str:
    return 'host' if accelerator == 'kvm' else 'max'


def disks_of(guest: QemuGuest) -> list[Disk]:
    """In boot order."""
    return [*([guest.rescue] if guest.rescue else []), *guest.disks]


def nodes(disk: Disk) -> Iterator[dict[str, Any]]:
    """The arguments of blockdev-add calls, in order. Formats are explicit: guests' data are never probed."""
    if disk.backing is not None:
        base = {'driver': disk.backing['format'], 'file': disk.backing['file'], 'read-only': True}
        yield base | {'node-name': f'{disk.name}-base'}
    node = {'driver': disk.format, 'node-name': disk.node, 'file': disk.file, 'read-only': disk.read_only}
    if disk.format == 'qcow2':
        # Without an explicit node, QEMU would open the backing file that the qcow2 header names.
        node['backing'] = None if disk.backing is None else f'{disk.name}-base'
    yield node | {'discard': 'unmap'}


def device(guest: QemuGuest, disk: Disk, number: int | None = None) -> dict[str, Any]:
    """The arguments of device_add; number: its place in the boot order, if any."""
    found: dict[str, Any] = {
        'driver': 'virtio-blk-pci',
        'id': f'disk-{disk.name}',
        'drive': disk.node,
        **place(guest, disk.slot),
    }
    if number is not None:
        found['bootindex'] = number
    if disk.volume_id:
        # The volume service decides who may use it: some volumes are shared by several servers.
        found['share-rw'] = True
    if disk.serial:
        # The device has room for 20 characters.
        found['serial'] = disk.serial[:20]
    return found


def _disk(guest: QemuGuest, disk: Disk, number: int) -> Iterator[str]:
    """Read-only disks are CDs, which do not use up disk names: on the board's IDE bus or, on a q35, on virtio-scsi,
    because kernels for clouds lack the driver of its SATA controller."""
    if not disk.read_only:
        yield text(device(guest, disk, number))
    elif guest.machine == 'q35':
        yield text({'driver': 'virtio-scsi-pci', 'id': 'cd', **place(guest, disk.slot)})
        yield text({'driver': 'scsi-cd', 'id': f'disk-{disk.name}', 'drive': disk.node, 'bus': 'cd.0'})
    else:
        yield text({'driver': 'ide-cd', 'id': f'disk-{disk.name}', 'drive': disk.node, 'bus': 'ide.0'})


def card_device(guest: QemuGuest, card: Card, more: Mapping[str, Any]) -> dict[str, Any]:
    # No network boot: the option ROM is a separate package on many systems.
    facts = {'driver': card.model, 'id': card_id(card), 'netdev': netdev_of(card), 'romfile': ''}
    return {**facts, 'mac': card.mac_address, **place(guest, card.slot), **more}


def card_id(card: Card) -> str:
    return f'{CARD}{card.port_id}' + (f'-{card.slot}' if card.again else '')


def netdev_of(card: Card) -> str:
    return f'net-{card.port_id}'


def _card(guest: QemuGuest, card: Card, netdev: Netdev) -> Iterator[str]:
    behind, more = netdev(card)
    yield from ('-netdev', text(behind | {'id': netdev_of(card)}))
    yield from ('-device', text(card_device(guest, card, more)))


def _agent(guest: QemuGuest) -> Iterator[str]:
    """A serial port that the guest finds by its name."""
    if guest.agent_slot is not None:
        yield from ('-device', text({'driver': 'virtio-serial-pci', 'id': 'ports', **place(guest, guest.agent_slot)}))
        yield from ('-chardev', f'socket,id=agent,path={AGENT},server=on,wait=off')
        yield from ('-device', text({'driver': 'virtserialport', 'chardev': 'agent', 'name': 'org.qemu.guest_agent.0'}))


def _kernel(guest: QemuGuest) -> Iterator[str]:
    if guest.kernel is not None:
        yield from ('-kernel', guest.kernel, '-append', guest.command_line)
        yield from ('-initrd', guest.ramdisk) if guest.ramdisk else ()


# ------------------------------------------------------------------ slots


def place(guest: QemuGuest, slot: int) -> dict[str, str]:
    """The device properties for a slot."""
    if guest.machine == 'q35':
        return {'bus': f'port{slot}', 'addr': '0'}
    return {'bus': 'pci.0', 'addr': hex(slot)}


def address(guest: QemuGuest, slot: int) -> BusAddress:
    """The same slot as the guest's kernel addresses it. The firmware of a q35 numbers the root ports in order."""
    if guest.machine == 'q35':
        return BusAddress('pci', f'0000:{slot - FIRST_SLOT + 2:02x}:00.0')
    return BusAddress('pci', f'0000:00:{slot:02x}.0')


def _place(guest: QemuGuest, slot: int) -> str:
    return ','.join(f'{name}={value}' for name, value in place(guest, slot).items())


def _ports(guest: QemuGuest) -> Iterator[str]:
    """The root ports of a q35, one for each hot-plug slot."""
    for number, slot in enumerate(range(FIRST_SLOT - 1, LAST_SLOT + 1) if guest.machine == 'q35' else ()):
        where, function = divmod(number, PORTS_PER_PLACE)
        many = ',multifunction=on' if function == 0 else ''
        at = f'bus=pcie.0,addr={FIRST_PLACE + where:x}.{function:x}{many}'
        yield from ('-device', f'pcie-root-port,id=port{slot},chassis={number + 1},{at}')


def text(facts: Mapping[str, Any]) -> str:
    return orjson.dumps(facts).decode()
