"""The disks of a guest: how they are created, and how they are described to QEMU."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from computeapi import randomness
from computeapi.backends.hypervisor import HypervisorError, Unfit
from computeapi.backends.hypervisor.qemu import config_drive, qemu_img
from computeapi.backends.hypervisor.qemu.base_images import BaseImage
from computeapi.backends.hypervisor.qemu.command_line import text
from computeapi.backends.hypervisor.qemu.folder import GuestFolder
from computeapi.backends.hypervisor.qemu.guest import Disk, QemuGuest
from computeapi.db.servers import BlockDevice, Server

MIB, GIB = 2**20, 2**30
ROOT, RESCUE, CONFIG = 'root', 'rescue', 'config'


def overlay(
    folder: GuestFolder, name: str, slot: int, base: BaseImage, size: int, device: BlockDevice | None, *, max_bytes: int
) -> Disk:
    """A disk that starts as the image. size: 0 is the image's own, up to `max_bytes`. Unfit if the image is larger."""
    if base.size > (size or max_bytes):
        raise Unfit(f'The disk of the image has {base.size} bytes, and can have at most {size or max_bytes}.')
    path = folder / f'{name}.qcow2'
    qemu_img.create(path, size or None, backing=base.backing)
    backing = {'file': file(base.path), 'format': base.format}
    return Disk(name, slot, 'qcow2', file(path), backing, **named(device))


def blank(folder: GuestFolder, name: str, slot: int, device: BlockDevice) -> Disk:
    """An empty disk, formatted if the host has the tool for it."""
    path = folder / f'{name}.raw'
    is_swap = device.guest_format == 'swap'
    if not path.exists():
        part = path.with_name(f'{path.name}.{randomness.new_hex_id()}.part')
        size = (device.volume_size or 0) * (MIB if is_swap else GIB)
        qemu_img.create(part, size, disk_format='raw')
        format_blank(part, 'swap' if is_swap else device.guest_format or 'ext4')
        part.replace(path)
    return Disk(name, slot, 'raw', file(path), **named(device))


FORMATTERS: Mapping[str, Sequence[str]] = {
    'swap': ('mkswap',),
    'ext4': ('mkfs.ext4', '-q', '-F', '-L', 'ephemeral0'),
    'vfat': ('mkfs.vfat', '-n', 'ephemeral0'),
    'xfs': ('mkfs.xfs', '-q', '-L', 'ephemeral0'),
}


def format_blank(path: Path, wanted: str) -> None:
    """Write a file system or swap if the host has the program for it; otherwise the guest can do it itself."""
    command = FORMATTERS.get(wanted, ('',))
    program = shutil.which(command[0], path='/usr/sbin:/sbin:/usr/bin:/bin')
    if program is not None:
        arguments: list[str] = [program, *command[1:], str(path)]
        done = subprocess.run(arguments, stdin=subprocess.DEVNULL, capture_output=True, timeout=qemu_img.SECONDS)
        if done.returncode:
            raise HypervisorError(f'A disk could not be formatted as {wanted}.')


def drive(folder: GuestFolder, slot: int, documents: Mapping[str, bytes]) -> Disk:
    """A CD with the documents."""
    path = folder / 'config.iso'
    if not path.exists():
        config_drive.write(path, documents)
    return Disk(CONFIG, slot, 'raw', file(path), read_only=True)


def check(disk: Disk) -> None:
    """HypervisorError for a disk whose own header refers to files other than its backing file."""
    if disk.format == 'qcow2' and not disk.read_only:
        qemu_img.check_whole(Path(disk.file['filename']))


def source(disk: Disk) -> str:
    """The disk as qemu-img opens it; its backing file is the one recorded here, whatever its header says."""
    check(disk)
    found: dict[str, Any] = {'driver': disk.format, 'file': disk.file}
    if disk.format == 'qcow2':
        found['backing'] = disk.backing and {'driver': disk.backing['format'], 'file': disk.backing['file']}
    return f'json:{text(found)}'


def volume(device: BlockDevice, slot: int) -> Disk:
    """The disk of a raw volume; what QEMU opens is filled in when the host connects to it."""
    assert device.volume_id is not None
    facts = named(device) | {'serial': device.volume_id, 'volume_id': device.volume_id}
    return Disk(f'volume-{device.uuid[:8]}', slot, 'raw', {}, **facts)


def named(device: BlockDevice | None) -> dict[str, Any]:
    return {} if device is None else {'uuid': device.uuid, 'device_name': device.device_name}


def file(path: Path) -> dict[str, str]:
    return {'driver': 'file', 'filename': str(path)}


def root_size(server: Server) -> int:
    return server.root_gb * GIB


def grow_root(guest: QemuGuest, server: Server) -> None:
    """Grow the root disk to the size in the flavor; a disk never shrinks."""
    disk = guest.disk(ROOT)
    if disk is not None:
        qemu_img.grow(Path(disk.file['filename']), root_size(server), disk.format)
