"""Work on one guest, while nobody else changes it."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from computeapi.backends.hypervisor import HypervisorError, NotYet
from computeapi.backends.hypervisor.behaviour import at_once
from computeapi.backends.hypervisor.qemu import command_line, disks
from computeapi.backends.hypervisor.qemu.base_images import BaseImage
from computeapi.backends.hypervisor.qemu.folder import GuestFolder
from computeapi.backends.hypervisor.qemu.guest import Card, Disk, QemuGuest
from computeapi.backends.hypervisor.qemu.host import QemuHost
from computeapi.backends.hypervisor.qemu.monitor import Monitor
from computeapi.backends.hypervisor.qemu.process import QMP, FolderProcess, GuestProcess, exporter_of
from computeapi.context import Context
from computeapi.db.servers import Server

# How long a call blocks for something that may finish soon, before the caller must call again.
MOMENT_SECONDS, LOOK_SECONDS, AGAIN_SECONDS = 0.5, 0.02, 1.0
# The longest time for copying a disk.
COPY_SECONDS = 6 * 3600


class TooSlow(HypervisorError):
    text = 'The operation did not finish in time.'


@dataclass
class GuestWork:
    """passed: returns how many seconds ago this work first reached a step."""

    host: QemuHost
    folder: GuestFolder
    server: Server
    passed: Callable[[str], float]

    @property
    def process(self) -> GuestProcess:
        return GuestProcess(self.folder)

    @property
    def exporter(self) -> FolderProcess:
        return exporter_of(self.folder)

    @property
    def waits(self) -> bool:
        """Whether the caller can call again."""
        return self.passed is not at_once

    @property
    def context(self) -> Context:
        return Context(user_id=self.server.user_id, project_id=self.server.project_id).elevated()

    def monitor(self) -> Monitor:
        """HypervisorError if the guest does not run."""
        if not self.process.runs:
            raise HypervisorError(f'The virtual machine of {self.server.uuid} is not running.')
        return Monitor(self.folder / QMP)

    def image(self, image_id: str) -> BaseImage:
        return self.host.images.get(self.context, image_id, waits=self.waits)

    def named_image(self, image_id: str) -> BaseImage:
        """An image that another image refers to: nobody has checked yet that the server's owner may see it."""
        self.host.images.check_owner(self.context, image_id, self.server.project_id)
        return self.image(image_id)

    def since(self, step: str) -> float:
        return self.passed(f'{step} on {self.host.name}')

    def until(self, step: str, is_over: Callable[[], bool], timeout: float) -> None:
        """Block briefly, then raise NotYet; TooSlow if the step began more than `timeout` seconds ago."""
        deadline = time.monotonic() + (MOMENT_SECONDS if self.waits else timeout)
        while not is_over():
            if time.monotonic() > deadline:
                left = timeout - self.since(step)
                if left <= 0:
                    raise TooSlow()
                raise NotYet(min(AGAIN_SECONDS, left))
            time.sleep(LOOK_SECONDS)

    def disconnect_volumes(self, guest: QemuGuest) -> None:
        """Disconnect the volumes of a guest that does not run here, and will not until it is started again."""
        for disk in guest.volumes:
            self.host.volumes.disconnect(self.folder, disk.volume_id or '')

    def reach(self, disk: Disk) -> None:
        """Connect the host to the disk's volume, and record how QEMU opens it."""
        disk.file, disk.credentials = self.host.volumes.connect(self.folder, disk.volume_id or '')
        if disk.credentials is not None:
            folder = Path(disk.credentials['dir'])
            for path in (folder, *folder.iterdir()):
                self.host.user.give(path)

    def start(self, guest: QemuGuest, *more: str, files: Sequence[int] = ()) -> None:
        """Start the guest, after setting up its networks and volumes; more: further arguments of its QEMU."""
        networks = self.host.networks
        for card in guest.cards:
            networks.set_up(guest.server_id, card.interface)
        for disk in guest.volumes:
            self.reach(disk)
        self.folder.write(guest)

        def netdev(card: Card) -> tuple[dict[str, Any], Mapping[str, Any]]:
            there = (guest.server_id, card.interface)
            return networks.netdev(*there), networks.card(*there)

        arguments = command_line.arguments(
            self.host.options, guest, self.host.accelerator, netdev, spice=self.host.spice
        )
        for disk in command_line.disks_of(guest):
            disks.check(disk)
        self.process.start([*arguments, *self.host.user.arguments, *more], files)
