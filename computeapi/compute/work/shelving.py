"""Shelving, offloading and unshelving servers."""

from __future__ import annotations

from computeapi.compute import states
from computeapi.compute.scheduler import Spec
from computeapi.compute.work import disks, places
from computeapi.compute.work.job import Job, Superseded, unchanged, work
from computeapi.compute.work.snapshot import discard, discard_image, fill
from computeapi.db import allocations


def not_shelved(job: Job, error: Exception) -> None:
    """There is no image; a server that was switched off for it is so now."""
    discard_image(job.cloud, job.task, job.server)
    power = job.power()
    stopped = power == states.SHUTDOWN and job.server.vm_state != states.SUSPENDED
    job.fail(error, power_state=power, vm_state=states.STOPPED if stopped else job.server.vm_state)


@work('shelve', 'shelving', 'shelving_image_uploading', failed=not_shelved, undo=discard_image)
def shelve(job: Job) -> None:
    """Keep an image, switch off, and give the host up when that is due at once."""
    image_id, former = job.arguments.get('image_id'), job.server.shelved_image_id
    with job.event('compute_shelve_instance'):
        job.driver.power_off(job.server)
        if image_id is not None:
            fill(job, image_id, 'shelving_image_uploading')
    if former is not None:
        # An administrator said that the server is not shelved any more.
        discard(job.cloud.images, job.elevated, former)
    delay = job.cloud.shelves.offload_after
    now = job.clock()
    with job.store.write() as connection:
        if delay is not None:
            job.cloud.tasks.add(connection, 'offload', job.server.uuid, job.context, not_before=now + delay)
        next_state = None if delay is None or delay else 'shelving_offloading'
        job.conclude(
            connection,
            task_state=next_state,
            vm_state=states.SHELVED,
            power_state=states.SHUTDOWN,
            shelved_image_id=image_id,
        )


@work('offload', 'shelving_offloading', None, failed=unchanged)
def offload(job: Job) -> None:
    """Give the host up."""
    server = job.server
    if server.vm_state != states.SHELVED:
        raise Superseded()
    if server.task_state is None:
        job.save(task_state='shelving_offloading')
    with job.event('compute_shelve_offload_instance'):
        places.leave(job)
    with job.store.write() as connection:
        allocations.release(connection, server.uuid)
        job.cloud.tasks.cancel(connection, server.uuid)
        job.conclude(connection, vm_state=states.SHELVED_OFFLOADED, power_state=states.SHUTDOWN, **places.NOWHERE)


def still_shelved(job: Job, error: Exception) -> None:
    """What had left its host has none again."""
    if job.server.vm_state == states.SHELVED:
        unchanged(job, error)
        return
    places.leave(job)
    with job.store.write() as connection:
        allocations.release(connection, job.server.uuid)
    job.fail(error, power_state=states.SHUTDOWN, **places.NOWHERE)


@work('unshelve', 'unshelving', 'spawning', failed=still_shelved)
def unshelve(job: Job) -> None:
    """Run again, where the server still is or on a host that is found."""
    server = job.server
    with job.event('compute_unshelve_instance'):
        if server.vm_state == states.SHELVED_OFFLOADED:
            place(job)
            disks.attach_all(job)
            places.connect(job)
            job.driver.spawn(server, job.devices())
        else:
            job.driver.power_on(server)
    if server.shelved_image_id is not None:
        discard(job.cloud.images, job.elevated, server.shelved_image_id)
    now = job.clock()
    with job.store.write() as connection:
        job.cloud.tasks.cancel(connection, server.uuid)
        job.conclude(
            connection,
            vm_state=states.ACTIVE,
            power_state=states.RUNNING,
            launched_at=now,
            shelved_image_id=None,
        )


def place(job: Job) -> None:
    if job.server.host is None:
        spec = Spec.of(job.server, on_volume=job.on_volume, host=job.arguments.get('host'))
        places.find(job, spec, task_state='spawning')
