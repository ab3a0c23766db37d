"""Rebuilding a server on its host."""

from __future__ import annotations

from computeapi.backends.hypervisor import Capability, require
from computeapi.compute import states
from computeapi.compute.scheduler import Spec
from computeapi.compute.work import disks
from computeapi.compute.work.job import Job, work


def not_rebuilt(job: Job, error: Exception) -> None:
    """The server is in ERROR; as long as its machine was not touched, it is of the image that the machine is of."""
    former = job.arguments['former'] if job.server.task_state == 'rebuilding' else {}
    job.fail(error, vm_state=states.ERROR, power_state=job.power(), **former)


@work('rebuild', 'rebuilding', 'rebuild_block_device_mapping', 'rebuild_spawning', failed=not_rebuilt)
def rebuild(job: Job) -> None:
    """Another machine under the same name, with a new root disk. One that was switched off is so in the end."""
    stopped = job.server.vm_state == states.STOPPED
    with job.event('compute_rebuild_instance'):
        remove(job)
        renew_disk(job)
        job.driver.spawn(job.server, job.devices())
        if stopped:
            job.driver.power_off(job.server)
    vm_state, power_state = (states.STOPPED, states.SHUTDOWN) if stopped else (states.ACTIVE, states.RUNNING)
    job.finish(vm_state=vm_state, power_state=power_state, launched_at=job.clock())


def remove(job: Job) -> None:
    if job.server.task_state == 'rebuilding':
        check(job)
        job.driver.destroy(job.server)
        job.save(task_state='rebuild_block_device_mapping')


def check(job: Job) -> None:
    """Whether it can be done, while nothing is lost yet."""
    server = job.server
    if job.arguments['preserve_ephemeral']:
        require(job.driver, Capability.PRESERVE_EPHEMERAL)
    if job.arguments['former']:
        spec = Spec.of(server, on_volume=job.on_volume, host=server.host, node=server.node)
        job.cloud.scheduler.check(spec, 'ImagePropertiesFilter')


def renew_disk(job: Job) -> None:
    """A root disk of the host is made from the image when the machine is; a volume has it written over it."""
    if job.server.task_state != 'rebuild_block_device_mapping':
        return
    image_id = job.arguments['image_id']
    root = next((device for device in job.devices() if device.boot_index == 0), None)
    if root is not None and root.destination_type != 'volume':
        disks.keep(job, root, image_id=image_id)
    elif root is not None and job.arguments['reimage']:
        job.cloud.volumes.reimage(job.elevated, root.volume_id or '', image_id)
    job.save(task_state='rebuild_spawning')
