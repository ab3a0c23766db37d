"""Connecting volumes to servers that are there already, and disconnecting them."""

from __future__ import annotations

import logging
from dataclasses import replace

from computeapi.compute.work.beside import close
from computeapi.compute.work.disks import free_name, keep
from computeapi.compute.work.job import Job, aside
from computeapi.db import servers as rows
from computeapi.db.servers import BlockDevice
from computeapi.errors import Error

LOG = logging.getLogger(__name__)


@aside('attach_volume')
def attach(job: Job) -> None:
    """Connect the volume that was reserved at the request; what fails is taken back."""
    device = wanted(job)
    if device is None:
        return close(job)
    try:
        reserve(job, device)
        with job.event('compute_attach_volume'):
            connect(job, device)
    except Exception:
        take_back(job, device)
        raise
    close(job)


def reserve(job: Job, device: BlockDevice) -> None:
    """Once more, in case the request did not come that far."""
    assert device.volume_id is not None
    wanted = device.attachment_id
    held = job.cloud.volumes.reserve(job.elevated, device.volume_id, device.server_id, attachment_id=wanted)
    if held != wanted:
        keep(job, device, attachment_id=held)


def connect(job: Job, device: BlockDevice) -> None:
    """A server without a host gets the volume when it is given one; it is in use all the same, by no host."""
    if job.server.host is None:
        job.cloud.volumes.complete(job.elevated, device.attachment_id or '')
        return
    name_it(job, device)
    job.driver.attach(job.server, device)
    job.cloud.volumes.complete(
        job.elevated, device.attachment_id or '', host=job.server.host, device=device.device_name or ''
    )


def name_it(job: Job, device: BlockDevice) -> None:
    if device.device_name is None:
        with job.store.write() as connection:
            rows.get(connection, job.server.uuid, lock=True)
            devices = rows.block_devices_of(connection, [job.server.uuid])
            device.device_name = free_name(job.server, devices, job.arguments.get('name'))
            rows.update_block_device(connection, device.uuid, {'device_name': device.device_name})


def take_back(job: Job, device: BlockDevice) -> None:
    if job.server.host is not None:
        try:
            job.driver.detach(job.server, device)
        except Error:
            LOG.warning('Volume %s may still be connected to server %s', device.volume_id, job.server.uuid)
    job.cloud.volumes.release(job.elevated, device.attachment_id or '')
    forget(job, device)


@aside('detach_volume')
def detach(job: Job) -> None:
    """Disconnect the volume; the server keeps it if that fails."""
    device = wanted(job)
    if device is None:
        return close(job)
    with job.event('compute_detach_volume'):
        if job.server.host is not None:
            job.driver.detach(job.server, device)
        job.cloud.volumes.release(job.elevated, device.attachment_id or '')
    forget(job, device)
    close(job)


@aside('swap_volume')
def swap(job: Job) -> None:
    """Copy one volume to another that takes its place; the server keeps the old one if that fails."""
    device = wanted(job)
    if device is None:
        job.cloud.volumes.release(job.elevated, job.arguments['attachment_id'])
        return close(job)
    try:
        with job.event('compute_swap_volume'):
            exchange(job, device)
    except Exception:
        job.cloud.volumes.release(job.elevated, job.arguments['attachment_id'])
        raise
    job.cloud.volumes.release(job.elevated, job.arguments['old_attachment_id'])
    close(job)


def exchange(job: Job, device: BlockDevice) -> None:
    new_volume, attachment_id = job.arguments['volume_id'], job.arguments['attachment_id']
    if device.attachment_id == attachment_id or device.volume_id is None:
        return
    volumes, new = job.cloud.volumes, replace(device, volume_id=new_volume, attachment_id=attachment_id)
    new.attachment_id = volumes.reserve(job.elevated, new_volume, device.server_id, attachment_id=attachment_id)
    job.driver.swap(job.server, device, new)
    volumes.complete(job.elevated, new.attachment_id, host=job.server.host or '', device=new.device_name or '')
    known_as = volumes.swap(job.elevated, device.volume_id, new_volume)
    keep(job, device, volume_id=known_as, attachment_id=new.attachment_id)


def wanted(job: Job) -> BlockDevice | None:
    """The disk that the task is about; None when it is gone."""
    return next((device for device in job.devices() if device.uuid == job.arguments['device_id']), None)


def forget(job: Job, device: BlockDevice) -> None:
    with job.store.write() as connection:
        rows.delete_block_device(connection, device.uuid)
