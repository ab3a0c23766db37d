"""Volumes as disks of guests, which come and go while a guest runs, or before it does."""

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from computeapi.backends.hypervisor import HypervisorError
from computeapi.backends.hypervisor.qemu import disks, machine
from computeapi.backends.hypervisor.qemu.guest import Disk, QemuGuest
from computeapi.backends.hypervisor.qemu.monitor import Monitor, Refusal
from computeapi.backends.hypervisor.qemu.plugging import devices, objects
from computeapi.backends.hypervisor.qemu.volume_access import NBD
from computeapi.backends.hypervisor.qemu.work import COPY_SECONDS, GuestWork, TooSlow
from computeapi.db.servers import BlockDevice

LOG = logging.getLogger(__name__)


def of(guest: QemuGuest, device: BlockDevice) -> Disk | None:
    return next((disk for disk in guest.disks if disk.uuid == device.uuid), None)


def attach(work: GuestWork, device: BlockDevice) -> None:
    guest = work.folder.existing()
    disk = of(guest, device)
    if disk is None:
        slot = guest.free_slot(machine.FIRST_SLOT, machine.LAST_SLOT)
        if slot is None:
            raise HypervisorError('The virtual machine has no room for one more disk.')
        disk = disks.volume(device, slot)
        # It is noted first, so that whoever is told again finds the same place.
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
    for node in machine.nodes(disk):
        if node['node-name'] not in there:
            monitor.tell('blockdev-add', node | {'file': monitor.lent(node['file'])})
    device = machine.device(guest, disk)
    if device['id'] not in devices(monitor):
        monitor.tell('device_add', device)


def show(monitor: Monitor, disk: Disk) -> None:
    """Let QEMU know what it needs to open the data."""
    if disk.credentials is not None and disk.credentials['id'] not in objects(monitor):
        monitor.tell('object-add', monitor.lent(disk.credentials))


def detach(work: GuestWork, device: BlockDevice) -> None:
    """HypervisorError when the guest does not let go of it: what it has not written yet would be lost."""
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
    name = machine.device(guest, disk)['id']
    if name in devices(monitor):
        # A guest that does not heed it may be asked again.
        monitor.execute('device_del', id=name)
        try:
            work.until(f'detach {name}', lambda: name not in devices(monitor), work.host.options.detach_seconds)
        except TooSlow:
            raise HypervisorError('The guest does not let go of the disk.') from None
    work.until(f'close {name}', lambda: forget(monitor, disk), work.host.options.detach_seconds)


def forget(monitor: Monitor, disk: Disk) -> bool:
    """Close the data, which the guest does not see any more; whether that was done. What served the guest may have
    them for a moment longer than the guest itself."""
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
    """What QEMU calls the file where it was opened for itself, and another one that takes its place."""
    return f'{disk.node}-file', f'{disk.node}-again'


def extend(work: GuestWork, device: BlockDevice) -> None:
    """It is longer now; a guest that does not run sees that when it starts."""
    disk = of(work.folder.existing(), device)
    if disk is not None:
        work.host.volumes.extend(work.folder, disk.volume_id or '')
        if work.process.runs:
            with work.monitor() as monitor:
                size = reopen(monitor, disk) if disk.file['driver'] == NBD else size_of(disk)
                monitor.execute('block_resize', node_name=disk.node, size=size)


def size_of(disk: Disk) -> int:
    """In bytes, of a file or device."""
    with Path(disk.file['filename']).open('rb') as data:
        return data.seek(0, 2)


def reopen(monitor: Monitor, disk: Disk) -> int:
    """A connection knows the size that was when it was made, in bytes: let another one take its place, which knows
    the size of now."""
    drop_unused(monitor, disk)
    name = next(name for name in files_of(disk) if name not in monitor.nodes())
    monitor.tell('blockdev-add', disk.file | {'node-name': name})
    monitor.tell('blockdev-reopen', {'options': [node_over(disk, name)]})
    drop_unused(monitor, disk)
    return length_of(monitor, name)


def drop_unused(monitor: Monitor, disk: Disk) -> None:
    for name in {*files_of(disk)} & monitor.nodes():
        with contextlib.suppress(Refusal):
            monitor.execute('blockdev-del', node_name=name)


# ------------------------------------------------------------------ one in place of another


def swap(work: GuestWork, old: BlockDevice, new: BlockDevice) -> None:
    guest = work.folder.existing()
    disk = of(guest, old)
    if disk is None or new.volume_id is None:
        raise HypervisorError(f'Volume {old.volume_id} is no disk of the virtual machine.')
    if disk.volume_id != new.volume_id:
        node = f'volume-{new.volume_id[:18]}'
        taken = replace(disk, serial=new.volume_id, volume_id=new.volume_id, node_name=node)
        work.reach(taken)
        with work.monitor() as monitor:
            mirror(work, monitor, disk, taken)
            # The guest has the new one: what goes wrong with the former one takes it from nobody.
            with what_is_left_of(old):
                work.until(f'close {disk.node}', lambda: forget(monitor, disk), work.host.options.detach_seconds)
        guest.disks[guest.disks.index(disk)] = taken
        work.folder.write(guest)
    with what_is_left_of(old):
        work.host.volumes.disconnect(work.folder, old.volume_id or '')


@contextlib.contextmanager
def what_is_left_of(device: BlockDevice) -> Iterator[None]:
    """What the host does not let go of is for its operator."""
    try:
        yield
    except HypervisorError as error:
        LOG.warning('Volume %s could not be released: %s', device.volume_id, error)


def mirror(work: GuestWork, monitor: Monitor, disk: Disk, taken: Disk) -> None:
    """Copy what is there and what is written meanwhile, until the guest has the other one."""
    if node_of(monitor, disk) == taken.node:
        return show_all(monitor, taken)
    job = f'swap-{disk.name}'
    if monitor.status_of(job) is None:
        forget(monitor, taken)
        show(monitor, taken)
        monitor.tell('blockdev-add', monitor.lent(taken.file) | {'node-name': files_of(taken)[0]})
        # Both must be of one length meanwhile.
        monitor.tell('blockdev-add', node_over(taken) | {'size': length_of(monitor, disk.node)})
        monitor.execute('blockdev-mirror', job_id=job, device=disk.node, target=taken.node, sync='full')
    work.until(job, lambda: monitor.status_of(job) in (None, 'ready'), COPY_SECONDS)
    if monitor.status_of(job) == 'ready':
        monitor.execute('job-complete', id=job)
    work.until(f'end of {job}', lambda: monitor.status_of(job) is None, COPY_SECONDS)
    if node_of(monitor, disk) != taken.node:
        forget(monitor, taken)
        raise HypervisorError('The volume could not be copied.')
    show_all(monitor, taken)


def node_over(taken: Disk, file: str | None = None) -> dict[str, Any]:
    """The arguments of blockdev-add, upon the file that was opened for itself."""
    [node] = machine.nodes(taken)
    return node | {'file': file or files_of(taken)[0]}


def show_all(monitor: Monitor, taken: Disk) -> None:
    """Let the guest see as much as the new volume has."""
    size = length_of(monitor, files_of(taken)[0])
    if length_of(monitor, taken.node) != size:
        monitor.tell('blockdev-reopen', {'options': [node_over(taken)]})
        monitor.execute('block_resize', node_name=taken.node, size=size)


def length_of(monitor: Monitor, node: str) -> int:
    found = monitor.execute('query-named-block-nodes', flat=True)
    return next(int(each['image']['virtual-size']) for each in found if each['node-name'] == node)


def node_of(monitor: Monitor, disk: Disk) -> str | None:
    """What the guest has under the disk's name."""
    ids = {f'disk-{disk.name}', f'/machine/peripheral/disk-{disk.name}/virtio-backend'}
    found = (each for each in monitor.execute('query-block') if each.get('qdev') in ids)
    return next((str(each['inserted']['node-name']) for each in found if 'inserted' in each), None)
