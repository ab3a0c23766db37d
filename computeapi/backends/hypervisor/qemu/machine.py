"""From a guest to the arguments of its QEMU. Paths of sockets are told without the folder, in which it is started."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import orjson
from oslo_config import cfg

from computeapi.backends.hypervisor import BusAddress
from computeapi.backends.hypervisor.qemu.guest import Card, Disk, QemuGuest
from computeapi.backends.hypervisor.qemu.process import QMP, name_of

SERIAL, VNC, SPICE, AGENT, CONSOLE_LOG = 'serial', 'vnc', 'spice', 'agent', 'console.log'
# What is on the screen and from the keyboard and the mouse, as pixels that any client can read. That the guest and the
# client share files and what they copy takes a device that there is none of, and is forbidden besides.
SPICE_OPTIONS = (
    f'unix=on,addr={SPICE},disable-ticketing=on,image-compression=off,jpeg-wan-compression=never,'
    'zlib-glz-wan-compression=never,streaming-video=off,playback-compression=off,seamless-migration=off,'
    'agent-mouse=off,disable-copy-paste=on,disable-agent-file-xfer=on'
)
CARD = 'card-'
# The places for devices that can come and go; those before belong to the board.
FIRST_SLOT, LAST_SLOT = 4, 31
# On a q35 each of them is a port of its own, of which eight are on one place of the board.
PORTS_PER_PLACE, FIRST_PLACE = 8, 4


def arguments(
    options: cfg.ConfigOpts.GroupAttr, guest: QemuGuest, accelerator: str, netdev: 'Netdev', *, spice: bool
) -> list[str]:
    """options: the group [qemu].  netdev: what is behind a card, and more of the card's properties.
    spice: whether its screen is shown by SPICE, too."""
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
    """In the order in which they are booted from."""
    return [*([guest.rescue] if guest.rescue else []), *guest.disks]


def nodes(disk: Disk) -> Iterator[dict[str, Any]]:
    """What blockdev-add takes, in this order. Formats are always said: nothing is guessed from what guests write."""
    if disk.backing is not None:
        base = {'driver': disk.backing['format'], 'file': disk.backing['file'], 'read-only': True}
        yield base | {'node-name': f'{disk.name}-base'}
    node = {'driver': disk.format, 'node-name': disk.node, 'file': disk.file, 'read-only': disk.read_only}
    if disk.format == 'qcow2':
        # Without the name of a node, QEMU would open what the file itself says that it is laid over.
        node['backing'] = None if disk.backing is None else f'{disk.name}-base'
    yield node | {'discard': 'unmap'}


def device(guest: QemuGuest, disk: Disk, number: int | None = None) -> dict[str, Any]:
    """What device_add takes; number: when it is booted from, if ever."""
    found: dict[str, Any] = {
        'driver': 'virtio-blk-pci',
        'id': f'disk-{disk.name}',
        'drive': disk.node,
        **place(guest, disk.slot),
    }
    if number is not None:
        found['bootindex'] = number
    if disk.volume_id:
        # Who may use it is the volume service's to say: there are volumes that several servers share.
        found['share-rw'] = True
    if disk.serial:
        # As much as the device has room for.
        found['serial'] = disk.serial[:20]
    return found


def _disk(guest: QemuGuest, disk: Disk, number: int) -> Iterator[str]:
    """What is only read is a CD, which leaves the names of disks to the others: on the board or, for no kernel for
    clouds knows what a q35 has there, on virtio."""
    if not disk.read_only:
        yield text(device(guest, disk, number))
    elif guest.machine == 'q35':
        yield text({'driver': 'virtio-scsi-pci', 'id': 'cd', **place(guest, disk.slot)})
        yield text({'driver': 'scsi-cd', 'id': f'disk-{disk.name}', 'drive': disk.node, 'bus': 'cd.0'})
    else:
        yield text({'driver': 'ide-cd', 'id': f'disk-{disk.name}', 'drive': disk.node, 'bus': 'ide.0'})


def card_device(guest: QemuGuest, card: Card, more: Mapping[str, Any]) -> dict[str, Any]:
    # Nothing is booted over the network, and what would do it is another package on many systems.
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
    """A serial port that the guest knows by its name."""
    if guest.agent_slot is not None:
        yield from ('-device', text({'driver': 'virtio-serial-pci', 'id': 'ports', **place(guest, guest.agent_slot)}))
        yield from ('-chardev', f'socket,id=agent,path={AGENT},server=on,wait=off')
        yield from ('-device', text({'driver': 'virtserialport', 'chardev': 'agent', 'name': 'org.qemu.guest_agent.0'}))


def _kernel(guest: QemuGuest) -> Iterator[str]:
    if guest.kernel is not None:
        yield from ('-kernel', guest.kernel, '-append', guest.command_line)
        yield from ('-initrd', guest.ramdisk) if guest.ramdisk else ()


# ------------------------------------------------------------------ places


def place(guest: QemuGuest, slot: int) -> dict[str, str]:
    """Where a device is, as properties of it."""
    if guest.machine == 'q35':
        return {'bus': f'port{slot}', 'addr': '0'}
    return {'bus': 'pci.0', 'addr': hex(slot)}


def address(guest: QemuGuest, slot: int) -> BusAddress:
    """The same as the guest's kernel calls it. The ports of a q35 are numbered as its firmware finds them."""
    if guest.machine == 'q35':
        return BusAddress('pci', f'0000:{slot - FIRST_SLOT + 2:02x}:00.0')
    return BusAddress('pci', f'0000:00:{slot:02x}.0')


def _place(guest: QemuGuest, slot: int) -> str:
    return ','.join(f'{name}={value}' for name, value in place(guest, slot).items())


def _ports(guest: QemuGuest) -> Iterator[str]:
    """Of a q35: what is to come and go is plugged into a port of its own there."""
    for number, slot in enumerate(range(FIRST_SLOT - 1, LAST_SLOT + 1) if guest.machine == 'q35' else ()):
        where, function = divmod(number, PORTS_PER_PLACE)
        many = ',multifunction=on' if function == 0 else ''
        at = f'bus=pcie.0,addr={FIRST_PLACE + where:x}.{function:x}{many}'
        yield from ('-device', f'pcie-root-port,id=port{slot},chassis={number + 1},{at}')


def text(facts: Mapping[str, Any]) -> str:
    return orjson.dumps(facts).decode()
