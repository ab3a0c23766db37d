"""Hosts with shared storage: a file system that all of them mount at the same path.

A guest's disk gets a second hard link, in the guest's folder on the other host. Each host then removes its own link,
and the data are freed with the last one.
"""

import contextlib
import os
import secrets
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from computeapi.backends.atomic_files import write
from computeapi.backends.hypervisor import HypervisorError
from computeapi.backends.hypervisor.qemu import disks
from computeapi.backends.hypervisor.qemu.folder import GuestFolder, HostFolder
from computeapi.backends.hypervisor.qemu.guest import Disk
from computeapi.backends.hypervisor.qemu.work import GuestWork

MARK = 'mark'
FORMATS = {'raw', 'qcow2'}
"""The formats of disks here. Other formats could refer to further files."""


def mark(folder: GuestFolder) -> str:
    """A random mark in the guest's folder: a host that reads the same mark has the same folder."""
    if not (folder / MARK).exists():
        write(folder / MARK, secrets.token_hex(16).encode())
    return (folder / MARK).read_text()


def accessible_folder(
    host: HostFolder, source: str | None, server_id: str, machine: Mapping[str, Any]
) -> GuestFolder | None:
    """The folder of a guest that another host described, if its files can be linked here."""
    if source is None or Path(source).name != source:
        return None
    folder = HostFolder(host.path.parent / source).of(server_id)
    try:
        same = (folder / MARK).read_text() == machine.get('mark')
    except OSError:
        return None
    return folder if same and can_link(host, folder / MARK) else None


def can_link(host: HostFolder, path: Path) -> bool:
    """Whether a file of another host can be linked here."""
    here = host.path / f'{path.parent.name}.{MARK}'
    try:
        here.unlink(missing_ok=True)
        os.link(path, here, follow_symlinks=False)
        here.unlink()
    except OSError:
        return False
    return True


def left(work: GuestWork, source: str | None) -> dict[str | None, Disk]:
    """The guest's own disks on a host that is down, as far as they are accessible, by the UUIDs of their devices. If
    the guest still runs there, its QEMU locks the files, and a second one does not start."""
    if source is None or Path(source).name != source:
        return {}
    folder = HostFolder(work.host.folder.path.parent / source).of(work.server.uuid)
    guest = folder.read()
    if guest is None or not guest.started or not can_link(work.host.folder, folder / 'guest.json'):
        return {}
    work.folder.path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return {disk.uuid: taken(work, disk, folder) for disk in guest.own_disks}


def taken(work: GuestWork, disk: Disk, source: GuestFolder) -> Disk:
    """The disk, linked into the folder here."""
    name = Path(disk.file['filename']).name
    images = work.host.images.folder
    if disk.backing is not None and Path(disk.backing['file']['filename']).parent != images:
        raise HypervisorError('The backing file of a disk is not an image.')
    if not {disk.format, (disk.backing or {}).get('format', 'raw')} <= FORMATS:
        raise HypervisorError('A disk is in an unsupported format.')
    try:
        with contextlib.suppress(FileExistsError):
            os.link(source / name, work.folder / name, follow_symlinks=False)
    except OSError:
        raise HypervisorError('A disk could not be taken over from the other host.') from None
    return replace(disk, file=disks.file(work.folder / name))
