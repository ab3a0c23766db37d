"""What a guest is made of: all that its QEMU is started from, which its folder keeps as guest.json."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

import orjson


@dataclass
class Disk:
    """A disk of a guest.

    name: unique in the guest, and what QEMU calls it.  uuid: of the BlockDevice, if it is one.  slot: on the bus.
    file: what QEMU opens, as its blockdev-add takes it: {"driver": "file", "filename": ...}.  format: of what is in it.
    volume_id: of the volume that it is, which is not in the guest's folder.
    credentials: what QEMU shows to open the file, as its object-add takes it, if anything.
    backing: the same of what it is laid over, which is only read: {"file": ..., "format": ...}.
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
        """What QEMU calls the data, as the name is that of the place where the guest finds them."""
        return self.node_name or self.name


@dataclass
class Card:
    """A network card. interface: the entry of network_info that it is for.  model: of QEMU's.

    again: whether QEMU may have another one of that port, which the guest has not let go of.
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

    started: it ran once, and is not made again.  suspended: its memory is in a file, which it goes on from.
    rescue: the disk that it boots from instead of its own, which come after that.
    landing: it is to come from another host, and none yet: what that host was told.
    departed: it runs on another host by now, and what is left of it here is to go.
    agent_slot: where the agent in the guest is spoken to, if there is to be one.
    frozen: it may not write to its disks, for they are being copied.
    ghosts: places of devices that it was asked to let go of and did not, as long as it runs.
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
        found = known(cls, orjson.loads(text))
        rescue = found.get('rescue')
        found |= {
            'disks': [Disk(**known(Disk, each)) for each in found['disks']],
            'cards': [Card(**known(Card, each)) for each in found['cards']],
            'rescue': rescue and Disk(**known(Disk, rescue)),
        }
        return cls(**found)

    def text(self) -> bytes:
        return orjson.dumps(self, option=orjson.OPT_INDENT_2)

    @property
    def own_disks(self) -> list[Disk]:
        """Those in its folder that it writes to."""
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
        """The first place on its bus where nothing is."""
        disks = [*self.disks, *([self.rescue] if self.rescue else [])]
        taken = {disk.slot for disk in disks} | {card.slot for card in self.cards} | {*self.ghosts, self.agent_slot}
        return next((slot for slot in range(first, last + 1) if slot not in taken), None)


def known(kind: type[Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """What was noted of a guest, a disk or a card, as far as it is known here: a later version may have noted more."""
    return {each.name: found[each.name] for each in fields(kind) if each.name in found}
