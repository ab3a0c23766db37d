"""Volume swaps: block storage moves a volume of a server to another volume, which replaces it."""

from contextlib import suppress
from dataclasses import replace

from computeapi.backends.hypervisor import Capability
from computeapi.backends.volume import Volume
from computeapi.compute.platform import Platform
from computeapi.compute.servers import disks
from computeapi.compute.servers.changes import Changes, locked
from computeapi.compute.servers.volumes import device_of_task, find
from computeapi.compute.tasks.job import Job, abandon
from computeapi.compute.tasks.queue import thawed
from computeapi.compute.tasks.transition import Transition
from computeapi.context import Context
from computeapi.db.servers import BlockDevice, Server
from computeapi.db.tasks import Task
from computeapi.errors import Conflict, Invalid, NotFound, VolumeNotFound
from computeapi.states import VMState

REFUSALS = (Conflict, Invalid, NotFound)


def release_volume(platform: Platform, task: Task, server: Server | None) -> None:
    """Release the new volume, which the server does not get."""
    disks.release(platform, thawed(task.context).elevated(), task.server_id, task.arguments['volume_id'])


def keep_volume(job: Job, error: Exception) -> None:
    """Keep the old volume attached and discard the new one; the other way round if the server already has the new
    volume, whatever block storage answers."""
    volumes, device = job.platform.volumes, device_of_task(job)
    if device is not None and device.volume_id == job.arguments['volume_id']:
        insist(job, device)
        return abandon(job, error)
    release_volume(job.platform, job.task, job.server)
    if device is not None and device.volume_id is not None:
        volumes.stop_detaching(job.elevated, device.volume_id)
        with suppress(Invalid, NotFound):
            volumes.swap(job.elevated, device.volume_id, job.arguments['volume_id'], failed=True)
    abandon(job, error)


def insist(job: Job, device: BlockDevice) -> None:
    """Repeat the remaining calls to block storage. It is not told that the swap failed, because it would then delete
    the new volume, which has all later writes. If it refuses again, its operator has to act."""
    volumes, new_volume = job.platform.volumes, job.arguments['volume_id']
    with suppress(*REFUSALS):
        volumes.complete(job.elevated, device.attachment_id or '')
    with suppress(*REFUSALS):
        volumes.release(job.elevated, job.arguments['old_attachment_id'])
    with suppress(*REFUSALS):
        disks.note(job.platform, device, volume_id=volumes.swap(job.elevated, former_of(job, device), new_volume))


SWAP = Transition(
    'swap_volume',
    beside=True,
    allowed={VMState.ACTIVE, VMState.PAUSED, VMState.RESIZED},
    capability=Capability.SWAP_VOLUME,
    failed=keep_volume,
    undo=release_volume,
)


class VolumeSwaps:
    """Errors: VolumeNotFound, VolumeNotAttached, Invalid, and those of Changes."""

    def __init__(self, changes: Changes):
        self.changes, self.volumes = changes, changes.platform.volumes
        self.store, self.tasks = changes.store, changes.tasks

    def begin(self, context: Context, server: Server, volume_id: str, new_volume_id: str) -> None:
        """Replace a volume that block storage is moving by another one; Conflict if it is not being moved.

        Errors of the volumes take precedence over those of the server's state.
        """
        old = self.volumes.get(context, volume_id)
        if not old.migration_status:
            raise Conflict(f'volume {volume_id} is not migrating; this API should only be called by Cinder')
        new = self._new_volume(context, new_volume_id)
        self.changes.check(context, server, SWAP)
        device = self.store.query(find, server, volume_id)
        check_exchange(old, new)
        arguments = {
            'device_id': device.uuid,
            'volume_id': new.id,
            'old_volume_id': volume_id,
            'old_attachment_id': device.attachment_id,
        }
        with self.store.write() as connection:
            locked(connection, context, server, SWAP)
            task = self.tasks.add(connection, SWAP, server.uuid, context, arguments, leased=True)
        with self.changes.accepting(context, server, SWAP, task):
            self.volumes.begin_detaching(context, volume_id)
            try:
                self.volumes.reserve(context, new.id, server.uuid)
            except Exception:
                self.volumes.stop_detaching(context, volume_id)
                raise

    def _new_volume(self, context: Context, volume_id: str) -> Volume:
        """A volume in the body of a request that does not exist makes the request invalid."""
        try:
            return self.volumes.get(context, volume_id)
        except VolumeNotFound as error:
            raise Invalid(str(error)) from None


def check_exchange(old: Volume, new: Volume) -> None:
    """Whether one volume can replace the other; Invalid."""
    if old.multiattach and len(old.attachments) > 1:
        raise Invalid('Swapping multi-attach volumes with more than one read/write attachment is not supported.')
    if new.attachments:
        raise Invalid('Invalid volume: New volume must be detached in order to swap.')
    if new.size < old.size:
        raise Invalid('Invalid volume: New volume must be the same size or larger.')


# ------------------------------------------------------------------ work


@SWAP.work
def swap(job: Job) -> None:
    """Copy a volume to another one that replaces it."""
    device = device_of_task(job)
    if device is None:
        release_volume(job.platform, job.task, job.server)
        return job.end()
    with job.event('compute_swap_volume'):
        exchange(job, device)
    job.end()


def exchange(job: Job, device: BlockDevice) -> None:
    """The steps that block storage expects; at the end it may give the new volume the ID of the old one."""
    volumes, former, new_volume = job.platform.volumes, former_of(job, device), job.arguments['volume_id']
    if device.attachment_id == job.arguments['old_attachment_id']:
        take(job, device, new_volume)
    if device.volume_id != new_volume:
        return
    volumes.complete(job.elevated, device.attachment_id or '')
    volumes.release(job.elevated, job.arguments['old_attachment_id'])
    disks.note(job.platform, device, volume_id=volumes.swap(job.elevated, former, new_volume))


def take(job: Job, device: BlockDevice, new_volume: str) -> None:
    """Attach the new volume; from then on the server has it, whatever the result of later steps."""
    held = job.platform.volumes.reserve(job.elevated, new_volume, device.server_id)
    new = replace(device, volume_id=new_volume, attachment_id=held)
    disks.reach(job.platform, job.elevated, new, job.server.host or '')
    job.driver.swap(job.server, device, new)
    disks.note(job.platform, device, volume_id=new_volume, attachment_id=held)


def former_of(job: Job, device: BlockDevice) -> str:
    """The volume that the server gives back. Requests of an older release did not record it."""
    return str(job.arguments.get('old_volume_id') or device.volume_id)
