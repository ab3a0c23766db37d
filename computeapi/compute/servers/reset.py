"""Setting the state of a server manually, and cleaning up afterwards."""

from typing import Any

from computeapi.compute.servers import addresses, disks, moves, network_info, placement, shares
from computeapi.compute.servers.changes import Changes
from computeapi.compute.servers.leftovers import RESET
from computeapi.compute.tasks.job import Job
from computeapi.context import Context
from computeapi.db import block_devices, server_migrations, servers
from computeapi.db.servers import BlockDevice, Server
from computeapi.errors import ImageNotFound, ServerNotFound
from computeapi.states import GOING, VMState


class Resets:
    """Errors: ServerNotFound."""

    def __init__(self, changes: Changes):
        self.changes = changes

    def reset(self, context: Context, server: Server, vm_state: VMState) -> None:
        """Set the state. Work in progress is overtaken, except a deletion, and a worker cleans up after it."""
        now = self.changes.clock()
        with self.changes.tasks.adding() as connection:
            current = servers.get(connection, server.uuid, lock=True)
            if current is None:
                raise ServerNotFound(id=server.uuid)
            # A deletion in progress goes on.
            task_state = current.task_state if current.task_state in GOING else None
            values = {'vm_state': vm_state, 'task_state': task_state, 'updated_at': now}
            servers.update(connection, server.uuid, values | moves.sizes(current))
            if current.vm_state == VMState.RESIZED:
                server_migrations.settle(connection, server.uuid, now)
            self.changes.tasks.cancel(connection, server.uuid)
            self.changes.tasks.add(connection, RESET, server.uuid, context)
            self.changes.record(connection, context, server, 'resetState')
            self.changes.notify_of_states(connection, context, current, vm_state=vm_state, task_state=task_state)


# ------------------------------------------------------------------ work


@RESET.work
def reset(job: Job) -> None:
    """Clean up: work that was overtaken has ended by now, at whatever step. The server keeps what it has on its host
    and in other services; what it does not have, or no longer has, is removed from its records."""
    server = job.server
    placement.release_stray_hosts(job, set(job.arguments.get('stray', ())) - {server.host})
    if server.vm_state != VMState.RESIZED:
        placement.leave_others(job.platform, server)
    known = server.network_info
    server.network_info = network_info.described(job.platform.networks, job.elevated, server.uuid, known)
    settle_volumes(job)
    if server.host is None:
        placement.disconnect_all(job)
    else:
        placement.bind(job.platform, job.elevated, server, server.host)
        disks.connect(job.platform, job.elevated, server, server.host)
    found: dict[str, Any] = {'updated_at': job.clock()} | missing_image_values(job)
    if server.vm_state != VMState.SHELVED_OFFLOADED:
        found['power_state'] = job.power()
    with job.store.write() as connection:
        # Others may attach interfaces meanwhile.
        network_info.follow(connection, server.uuid, known, server.network_info)
        servers.update(connection, server.uuid, found)
    addresses.refresh(job)
    shares.settle(job)
    job.end()


def settle_volumes(job: Job) -> None:
    """A volume belongs to the server if it is reserved for it, by one attachment."""
    devices = [device for device in job.devices() if disks.is_volume(device)]
    if not devices:
        return
    held = job.platform.volumes.attachments(job.elevated, server_ids=[job.server.uuid])
    for device in devices:
        # A later disk is not overtaken: an attachment is in progress.
        if device.created_at <= job.task.created_at:
            own = [each.id for each in held if each.volume_id == device.volume_id]
            keep_or_forget(job, device, own)


def keep_or_forget(job: Job, device: BlockDevice, attachments: list[str]) -> None:
    """attachments: those with which the server holds the volume."""
    if not attachments:
        # Remove a volume that was created for the server but never attached; any other may contain data.
        if device.delete_on_termination and device.attachment_id is None and device.source_type != 'volume':
            disks.remove(job, disks.volume_of(device))
        job.store.change(block_devices.delete, device.uuid)
    else:
        disks.hold_once(job.platform, job.elevated, device, attachments)


def missing_image_values(job: Job) -> dict[str, Any]:
    """The change of the server if its shelved image is gone."""
    image_id = job.server.shelved_image_id
    try:
        if image_id is not None:
            job.platform.images.get(job.elevated, image_id)
    except ImageNotFound:
        return {'shelved_image_id': None}
    return {}
