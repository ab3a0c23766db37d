"""The description of a guest: all that its QEMU is started from, kept as guest.json in its folder."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

import orjson


@dataclass
class Disk:
    """A disk of a guest.

    name: unique in the guest; its name in QEMU.  uuid: of the BlockDevice, if it is one.  slot: on the bus.
    file: what QEMU opens, in the form of blockdev-add: {"driver": "file", "filename": ...}.  format: of the data in it.
    volume_id: of its volume, whose data are not in the guest's folder.
    credentials: what QEMU needs to open the file, in the form of object-add, if anything.
    backing: the read-only file that it is laid over: {"file": ..., "format": ...}.
    """

    name: str
    slot: int
    format: str
    file: dict[str, Any]
    backing: dict[str, Any] | None = None
    uuid: str | None = None
    device_name: str | None = None
    serial: str | None = None
    read_only: bool = False
    volume_id: str | None = None
    node_name: str | None = None
    credentials: dict[str, Any] | None = None

    @property
    def node(self) -> str:
        """QEMU's name of the block node with the data; `name` is that of the device in which the guest finds them."""
        return self.node_name or self.name


@dataclass
class Card:
    """A network card. interface: its entry of network_info.  model: QEMU's.

    again: QEMU may still have an earlier card for that port, which the guest has not released.
    """

    port_id: str
    mac_address: str
    slot: int
    interface: dict[str, Any]
    model: str = 'virtio-net-pci'
    again: bool = False


@dataclass
class QemuGuest:
    """memory_mb: in MiB.  machine: pc or q35.  kernel, ramdisk: files that it boots from, instead of its first disk.

    started: it has run before, and its files are not created again.  suspended: its memory is in a file, from which it
    resumes.
    rescue: the disk that it boots from; its own disks come after it.
    landing: it is to arrive from another host, and has not yet: the facts that were returned to that host.
    departed: it runs on another host by now, and its remains here are to be deleted.
    agent_slot: the slot of the channel to the guest agent, if it is to have one.
    frozen: its file systems are frozen while its disks are being copied.
    ghosts: slots of devices that it was asked to release and has not; they stay taken as long as it runs.
    """

    server_id: str
    vcpus: int
    memory_mb: int
    machine: str
    disks: list[Disk] = field(default_factory=list)
    cards: list[Card] = field(default_factory=list)
    kernel: str | None = None
    ramdisk: str | None = None
    command_line: str = ''
    started: bool = False
    suspended: bool = False
    rescue: Disk | None = None
    landing: dict[str, Any] | None = None
    departed: bool = False
    ghosts: list[int] = field(default_factory=list)
    agent_slot: int | None = None
    frozen: bool = False

    @classmethod
    def of(cls, text: bytes) -> Self:
        found = known_fields(cls, orjson.loads(text))
        rescue = found.get('rescue')
        found |= {
            'disks': [Disk(**known_fields(Disk, each)) for each in found['disks']],
            'cards': [Card(**known_fields(Card, each)) for each in found['cards']],
            'rescue': rescue and Disk(**known_fields(Disk, rescue)),
        }
        return cls(**found)

    def text(self) -> bytes:
        return orjson.dumps(self, option=orjson.OPT_INDENT_2)

    @property
    def own_disks(self) -> list[Disk]:
        """The writable disks in its folder."""
        return [disk for disk in self.disks if not disk.read_only and disk.volume_id is None]

    @property
    def volumes(self) -> list[Disk]:
        return [disk for disk in self.disks if disk.volume_id is not None]

    def disk(self, name: str) -> Disk | None:
        return next((disk for disk in self.disks if disk.name == name), None)

    def laid_over(self) -> set[str]:
        """The files that it reads and that are not its own."""
        disks = [*self.disks, *([self.rescue] if self.rescue else [])]
        backing = {disk.backing['file'].get('filename') for disk in disks if disk.backing}
        return {path for path in (*backing, self.kernel, self.ramdisk) if path}

    def free_slot(self, first: int, last: int) -> int | None:
        """The first free slot on its bus."""
        disks = [*self.disks, *([self.rescue] if self.rescue else [])]
        taken = {disk.slot for disk in disks} | {card.slot for card in self.cards} | {*self.ghosts, self.agent_slot}
        return next((slot for slot in range(first, last + 1) if slot not in taken), None)


def known_fields(kind: type[Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """The recorded fields that this version knows: a later version may have written more."""
    return {each.name: found[each.name] for each in fields(kind) if each.name in found}
