"""A server's volumes: made, attached, released."""

import logging
import uuid
from collections.abc import Sequence
from typing import Any

from computeapi.compute.tasks.fence import Superseded
from computeapi.compute.tasks.job import Job
from computeapi.db import servers as rows
from computeapi.db.servers import BlockDevice, Server
from computeapi.errors import DeviceInUse, Error, Forbidden, VolumeNotFound

LOG = logging.getLogger(__name__)
# As with ports: what compute makes can be found again by its id.
VOLUMES = uuid.UUID('f3a2a3a0-6a36-4e0b-a2f0-0d6c6b1f8f55')
LETTERS = 'abcdefghijklmnopqrstuvwxyz'


def attach_all(job: Job) -> list[BlockDevice]:
    """Make the volumes that the server was asked for and attach all; the disks with their device names."""
    devices = job.devices()
    for device, name in zip(devices, names_for(devices, job.server.root_device_name), strict=True):
        if device.destination_type == 'volume':
            make(job, device)
            attach(job, device, name)
        elif device.device_name is None and name:
            keep(job, device, device_name=name)
    return job.devices()


def of_volume(job: Job, volume_id: str) -> BlockDevice:
    """The disk that is this volume; Superseded when it was detached meanwhile."""
    for device in job.devices():
        if device.volume_id == volume_id:
            return device
    raise Superseded()


def volume_of(device: BlockDevice) -> str:
    """The volume of the disk: also one that may have been made, though nobody came to say so."""
    return device.volume_id or str(uuid.uuid5(VOLUMES, device.uuid))


def attachment_of(device: BlockDevice) -> str:
    """Likewise, what reserves it for the server."""
    return device.attachment_id or str(uuid.uuid5(VOLUMES, device.uuid + '/1'))


def make(job: Job, device: BlockDevice) -> None:
    """The volume of a disk whose source is an image, a snapshot or nothing."""
    if device.volume_id is not None:
        return
    volume = job.platform.volumes.create(
        job.context,
        device.volume_size or 1,
        volume_id=volume_of(device),
        image_id=device.image_id if device.source_type == 'image' else None,
        snapshot_id=device.snapshot_id,
        volume_type=device.volume_type,
    )
    keep(job, device, volume_id=volume.id, volume_size=volume.size)


def attach(job: Job, device: BlockDevice, name: str | None) -> None:
    """Reserve the volume if that was not done at the request, and connect it to the server's host."""
    assert device.volume_id is not None
    if device.attachment_id is None:
        reserved = job.platform.volumes.reserve(
            job.elevated, device.volume_id, job.server.uuid, attachment_id=attachment_of(device)
        )
        keep(job, device, attachment_id=reserved)
    if device.device_name is None:
        keep(job, device, device_name=name)
    job.platform.volumes.complete(
        job.elevated, device.attachment_id or '', host=job.server.host or '', device=device.device_name or ''
    )


def keep(job: Job, device: BlockDevice, **values: Any) -> None:
    """Remember what became of a disk."""
    job.store.tell(rows.update_block_device, device.uuid, values)
    for name, value in values.items():
        setattr(device, name, value)


def release_all(job: Job) -> None:
    """Detach every volume, and delete those that go with the server."""
    for device in job.devices():
        if device.destination_type == 'volume':
            job.platform.volumes.release(job.elevated, attachment_of(device))
            if device.delete_on_termination:
                remove(job, volume_of(device))


def remove(job: Job, volume_id: str) -> None:
    """Delete a volume. One that is used elsewhere, or has snapshots, is none of the server's business."""
    try:
        job.platform.volumes.delete(job.elevated, volume_id)
    except VolumeNotFound:
        return
    except Error as error:
        LOG.warning('Volume %s of server %s could not be deleted: %s', volume_id, job.server.uuid, error)


def names_for(devices: Sequence[BlockDevice], root: str | None) -> list[str | None]:
    """A device name for each disk: its own, the root's, or the next letter that is free."""
    taken = {device.device_name for device in devices if device.device_name}
    free = (f'/dev/vd{letter}' for letter in LETTERS)
    names: list[str | None] = []
    for device in devices:
        name = device.device_name or (root if device.boot_index == 0 and root not in taken else None)
        if name is None:
            name = next((each for each in free if each not in taken), None)
        if name is not None:
            taken.add(name)
        names.append(name)
    return names


def free_name(server: Server, devices: Sequence[BlockDevice], wanted: str | None = None) -> str:
    """A device name for one more disk; DeviceInUse if the wanted one is taken, Forbidden if there is none left."""
    taken = {server.root_device_name, *(device.device_name for device in devices)}
    if wanted is not None and wanted in taken:
        raise DeviceInUse(path=wanted)
    free = (f'/dev/vd{letter}' for letter in LETTERS if f'/dev/vd{letter}' not in taken)
    name = wanted or next(free, None)
    if name is None or len(devices) >= len(LETTERS):
        raise Forbidden(
            f'The maximum allowed number of disk devices ({len(LETTERS)}) to attach to a single instance '
            'has been exceeded.'
        )
    return name
