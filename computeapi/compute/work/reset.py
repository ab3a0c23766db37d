"""After the state of a server was set by hand."""

from __future__ import annotations

from typing import Any

from computeapi.compute.work import disks, interfaces, places
from computeapi.compute.work.job import Job, aside
from computeapi.db import servers as rows
from computeapi.db.servers import BlockDevice
from computeapi.errors import AttachmentNotFound, ImageNotFound


@aside('reset')
def reset(job: Job) -> None:
    """What was overtaken is over by now, however far it came. The server keeps what it has of its host and of other
    services; what it has not got, or not any more, is not said to be its own."""
    server = job.server
    places.leave_others(job.cloud, server)
    known = server.network_info
    server.network_info = interfaces.described(job.cloud.networks, job.elevated, server.uuid, known)
    for device in job.devices():
        if device.destination_type == 'volume':
            keep_or_forget(job, device)
    if server.host is not None:
        places.bind(job.cloud, job.elevated, server, server.host)
    found: dict[str, Any] = {'power_state': job.power(), 'updated_at': job.clock()} | lost_image(job)
    with job.store.write() as connection:
        # Others may attach interfaces meanwhile.
        interfaces.follow(connection, server.uuid, known, server.network_info)
        rows.update(connection, server.uuid, found)
    job.cloud.addresses.refresh(job.elevated, [server.uuid])
    with job.store.write() as connection:
        job.close(connection)


def keep_or_forget(job: Job, device: BlockDevice) -> None:
    """The volume is the server's if it is reserved for it."""
    attachment_id = disks.attachment_of(device)
    try:
        held = job.cloud.volumes.attachment(job.elevated, attachment_id)
    except AttachmentNotFound:
        # One that was made for the server and that it never got; what was its own, or is another's, may hold data.
        if device.delete_on_termination and device.attachment_id is None and device.source_type != 'volume':
            disks.remove(job, disks.volume_of(device))
        with job.store.write() as connection:
            rows.delete_block_device(connection, device.uuid)
    else:
        disks.keep(job, device, attachment_id=attachment_id, volume_id=held.volume_id)


def lost_image(job: Job) -> dict[str, Any]:
    """What becomes of the image that was made when the server was shelved."""
    image_id = job.server.shelved_image_id
    try:
        if image_id is not None:
            job.cloud.images.get(job.elevated, image_id)
    except ImageNotFound:
        return {'shelved_image_id': None}
    return {}
