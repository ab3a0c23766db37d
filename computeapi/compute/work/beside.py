"""What happens beside the life of a server: what it stands on changed, and its machine is told."""

from __future__ import annotations

from computeapi.compute.work import disks
from computeapi.compute.work.job import Job, Superseded, aside
from computeapi.db.servers import BlockDevice


@aside('unplug')
def unplug(job: Job) -> None:
    """Interfaces whose ports are gone leave the machine."""
    if job.server.host is not None:
        job.driver.unplug(job.server, job.arguments['interfaces'])
    close(job)


@aside('extend_volume')
def extend_volume(job: Job) -> None:
    """A volume has another size."""
    with job.event('compute_extend_volume'):
        device = device_of(job, job.arguments['volume_id'])
        disks.keep(job, device, volume_size=job.cloud.volumes.get(job.elevated, job.arguments['volume_id']).size)
        if job.server.host is not None:
            job.driver.extend(job.server, device)
    close(job)


@aside('create_volume_snapshot')
def create_volume_snapshot(job: Job) -> None:
    """The machine takes a snapshot of a volume for the volume service."""
    job.driver.snapshot_volume(job.server, device_of(job, job.arguments['volume_id']), job.arguments['facts'])
    close(job)


@aside('delete_volume_snapshot')
def delete_volume_snapshot(job: Job) -> None:
    device = device_of(job, job.arguments['volume_id'])
    job.driver.delete_volume_snapshot(job.server, device, job.arguments['snapshot_id'], job.arguments['facts'])
    close(job)


def device_of(job: Job, volume_id: str) -> BlockDevice:
    """The disk that is this volume; Superseded when it was detached meanwhile."""
    for device in job.devices():
        if device.volume_id == volume_id:
            return device
    raise Superseded()


def close(job: Job) -> None:
    with job.store.write() as connection:
        job.close(connection)
