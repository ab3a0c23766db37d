"""Volumes as disks of guests, attached and detached whether the guest runs or not."""

import contextlib
import logging
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from computeapi.backends.hypervisor import HypervisorError
from computeapi.backends.hypervisor.qemu import command_line, disks
from computeapi.backends.hypervisor.qemu.guest import Disk, QemuGuest
from computeapi.backends.hypervisor.qemu.monitor import Monitor, Refusal
from computeapi.backends.hypervisor.qemu.plugging import devices, objects
from computeapi.backends.hypervisor.qemu.volume_access import NBD
from computeapi.backends.hypervisor.qemu.work import COPY_SECONDS, LOOK_SECONDS, GuestWork, TooSlow
from computeapi.db.servers import BlockDevice

LOG = logging.getLogger(__name__)


def of(guest: QemuGuest, device: BlockDevice) -> Disk | None:
    return next((disk for disk in guest.disks if disk.uuid == device.uuid), None)


def attach(work: GuestWork, device: BlockDevice) -> None:
    guest = work.folder.existing()
    disk = of(guest, device)
    if disk is None:
        slot = guest.free_slot(command_line.FIRST_SLOT, command_line.LAST_SLOT)
        if slot is None:
            raise HypervisorError('The virtual machine has no room for one more disk.')
        disk = disks.volume(device, slot)
        # Recorded first, so that a repeated call finds the same slot.
        guest.disks.append(disk)
        work.folder.write(guest)
    work.reach(disk)
    work.folder.write(guest)
    if work.process.runs:
        with work.monitor() as monitor:
            connect(monitor, guest, disk)


def connect(monitor: Monitor, guest: QemuGuest, disk: Disk) -> None:
    there = monitor.nodes()
    show(monitor, disk)
    for node in command_line.nodes(disk):
        if node['node-name'] not in there:
            monitor.command('blockdev-add', node | {'file': monitor.lent(node['file'])})
    device = command_line.device(guest, disk)
    if device['id'] not in devices(monitor):
        monitor.command('device_add', device)


def show(monitor: Monitor, disk: Disk) -> None:
    """Add the credentials that QEMU needs to open the data."""
    if disk.credentials is not None and disk.credentials['id'] not in objects(monitor):
        monitor.command('object-add', monitor.lent(disk.credentials))


def detach(work: GuestWork, device: BlockDevice) -> None:
    """HypervisorError if the guest does not release the disk: its unwritten data would be lost."""
    guest = work.folder.read()
    disk = None if guest is None else of(guest, device)
    if guest is None or disk is None:
        return
    if work.process.runs:
        with work.monitor() as monitor:
            disconnect(work, monitor, guest, disk)
    work.host.volumes.disconnect(work.folder, disk.volume_id or '')
    guest.disks.remove(disk)
    work.folder.write(guest)


def disconnect(work: GuestWork, monitor: Monitor, guest: QemuGuest, disk: Disk) -> None:
    name = command_line.device(guest, disk)['id']
    if name in devices(monitor):
        # The request is repeated with each call, in case the guest has ignored it.
        monitor.execute('device_del', id=name)
        try:
            work.until(f'detach {name}', lambda: name not in devices(monitor), work.host.options.detach_seconds)
        except TooSlow:
            raise HypervisorError('The guest does not release the disk.') from None
    work.until(f'close {name}', lambda: forget(monitor, disk), work.host.options.detach_seconds)


def forget(monitor: Monitor, disk: Disk) -> bool:
    """Close the data of a removed device; returns whether that succeeded. QEMU's device backend may hold them for a
    moment longer than the guest itself."""
    there = monitor.nodes()
    try:
        for name in (disk.node, *files_of(disk)):
            if name in there:
                monitor.execute('blockdev-del', node_name=name)
        if disk.credentials is not None and disk.credentials['id'] in objects(monitor):
            monitor.execute('object-del', id=disk.credentials['id'])
    except Refusal:
        return False
    return True


def files_of(disk: Disk) -> tuple[str, str]:
    """The node names of the file itself, and of a second one that replaces it."""
    return f'{disk.node}-file', f'{disk.node}-again'


def extend(work: GuestWork, device: BlockDevice) -> None:
    """Pass on the new size; a guest that does not run sees it when it starts."""
    disk = of(work.folder.existing(), device)
    if disk is not None:
        work.host.volumes.extend(work.folder, disk.volume_id or '')
        if work.process.runs:
            with work.monitor() as monitor:
                size = reopen(monitor, disk) if disk.file['driver'] == NBD else size_of(disk)
                monitor.execute('block_resize', node_name=disk.node, size=size)


def size_of(disk: Disk) -> int:
    """The size of a file or device, in bytes."""
    with Path(disk.file['filename']).open('rb') as data:
        return data.seek(0, 2)


def reopen(monitor: Monitor, disk: Disk) -> int:
    """Replace an NBD connection, which keeps the size that it was opened with; returns the new size in bytes."""
    drop_unused(monitor, disk)
    name = next(name for name in files_of(disk) if name not in monitor.nodes())
    monitor.command('blockdev-add', disk.file | {'node-name': name})
    monitor.command('blockdev-reopen', {'options': [node_over(disk, name)]})
    drop_unused(monitor, disk)
    return length_of(monitor, name)


def drop_unused(monitor: Monitor, disk: Disk) -> None:
    for name in {*files_of(disk)} & monitor.nodes():
        with contextlib.suppress(Refusal):
            monitor.execute('blockdev-del', node_name=name)


# ------------------------------------------------------------------ swapping volumes


def swap(work: GuestWork, old: BlockDevice, new: BlockDevice) -> None:
    guest = work.folder.existing()
    disk = of(guest, old)
    if disk is None or new.volume_id is None:
        raise HypervisorError(f'Volume {old.volume_id} is not a disk of the virtual machine.')
    if disk.volume_id != new.volume_id:
        node = f'volume-{new.volume_id[:18]}'
        taken = replace(disk, serial=new.volume_id, volume_id=new.volume_id, node_name=node)
        work.reach(taken)
        with work.monitor() as monitor:
            try:
                mirror(work, monitor, disk, taken)
            except HypervisorError:
                with what_is_left_of(new):
                    give_up(work, monitor, disk, taken)
                raise
            # The guest has the new volume: problems with the former one must not undo that.
            with what_is_left_of(old):
                work.until(f'close {disk.node}', lambda: forget(monitor, disk), work.host.options.detach_seconds)
        guest.disks[guest.disks.index(disk)] = taken
        work.folder.write(guest)
    with what_is_left_of(old):
        work.host.volumes.disconnect(work.folder, old.volume_id or '')


@contextlib.contextmanager
def what_is_left_of(device: BlockDevice) -> Iterator[None]:
    """Whatever the host cannot release is logged for the operator."""
    try:
        yield
    except HypervisorError as error:
        LOG.warning('Volume %s could not be released: %s', device.volume_id, error)


def mirror(work: GuestWork, monitor: Monitor, disk: Disk, taken: Disk) -> None:
    """Copy the data, including current writes, until the guest is switched to the other volume."""
    if node_of(monitor, disk) == taken.node:
        return show_all(monitor, taken)
    job = job_of(disk)
    if monitor.status_of(job) is None:
        forget(monitor, taken)
        show(monitor, taken)
        monitor.command('blockdev-add', monitor.lent(taken.file) | {'node-name': files_of(taken)[0]})
        # Both must have the same size during the copy.
        monitor.command('blockdev-add', node_over(taken) | {'size': length_of(monitor, disk.node)})
        monitor.execute('blockdev-mirror', job_id=job, device=disk.node, target=taken.node, sync='full')
    work.until(job, lambda: monitor.status_of(job) in (None, 'ready'), COPY_SECONDS)
    if monitor.status_of(job) == 'ready':
        monitor.execute('job-complete', id=job)
    work.until(f'end of {job}', lambda: monitor.status_of(job) is None, COPY_SECONDS)
    if node_of(monitor, disk) != taken.node:
        raise HypervisorError('The volume could not be copied.')
    show_all(monitor, taken)


def give_up(work: GuestWork, monitor: Monitor, disk: Disk, taken: Disk) -> None:
    """Stop copying and disconnect the new volume, unless the guest uses it. It does not raise NotYet: the next call
    would start to copy again."""
    if node_of(monitor, disk) == taken.node:
        return
    if monitor.status_of(job_of(disk)) is not None:
        monitor.execute('block-job-cancel', device=job_of(disk), force=True)
    deadline = time.monotonic() + work.host.options.detach_seconds
    while not forget(monitor, taken):
        if time.monotonic() > deadline:
            raise TooSlow()
        time.sleep(LOOK_SECONDS)
    work.host.volumes.disconnect(work.folder, taken.volume_id or '')


def job_of(disk: Disk) -> str:
    return f'swap-{disk.name}'


def node_over(taken: Disk, file: str | None = None) -> dict[str, Any]:
    """The arguments of blockdev-add for the format layer above the file node."""
    [node] = command_line.nodes(taken)
    return node | {'file': file or files_of(taken)[0]}


def show_all(monitor: Monitor, taken: Disk) -> None:
    """Make the full size of the new volume visible to the guest."""
    size = length_of(monitor, files_of(taken)[0])
    if length_of(monitor, taken.node) != size:
        monitor.command('blockdev-reopen', {'options': [node_over(taken)]})
        monitor.execute('block_resize', node_name=taken.node, size=size)


def length_of(monitor: Monitor, node: str) -> int:
    found = monitor.execute('query-named-block-nodes', flat=True)
    return next(int(each['image']['virtual-size']) for each in found if each['node-name'] == node)


def node_of(monitor: Monitor, disk: Disk) -> str | None:
    """The name of the node that the guest's device currently uses."""
    ids = {f'disk-{disk.name}', f'/machine/peripheral/disk-{disk.name}/virtio-backend'}
    found = (each for each in monitor.execute('query-block') if each.get('qdev') in ids)
    return next((str(each['inserted']['node-name']) for each in found if 'inserted' in each), None)
