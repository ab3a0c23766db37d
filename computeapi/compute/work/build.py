"""Booting a new server: scheduling, networking, disks, spawning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from computeapi.compute import states
from computeapi.compute.scheduler import Spec
from computeapi.compute.tasks import Task, thawed
from computeapi.compute.work import disks, interfaces, places
from computeapi.compute.work.job import Job, work
from computeapi.db import allocations
from computeapi.db.servers import Server

if TYPE_CHECKING:
    from computeapi.compute.cloud import Cloud

ROOT_DEVICE = '/dev/vda'
STEPS = ('scheduling', 'networking', 'block_device_mapping', 'spawning')


def give_up(job: Job, error: Exception) -> None:
    """What fails half way gives back what it took and leaves an ERROR with a fault."""
    places.remove_machines(job.cloud, job.server)
    interfaces.disconnect(job.cloud.networks, job.elevated, job.server.uuid, job.server.network_info)
    disks.release_all(job)
    with job.store.write() as connection:
        allocations.release(connection, job.server.uuid)
    job.fail(error, vm_state=states.ERROR, power_state=states.NOSTATE, network_info=[], **places.NOWHERE)


def release_volumes(cloud: Cloud, task: Task, server: Server | None) -> None:
    """Let go of what was reserved for a server that never came to be."""
    for attachment_id in task.arguments.get('attachments', ()) if server is None else ():
        cloud.volumes.release(thawed(task.context).elevated(), attachment_id)


@work('build', *STEPS, failed=give_up, undo=release_volumes)
def build(job: Job) -> None:
    """From `building` to `active`."""
    with job.event('compute__do_build_and_run_instance'):
        place(job)
        network(job)
        attach(job)
        spawn(job)


def place(job: Job) -> None:
    """Find a host and claim the place."""
    if job.server.host is not None:
        return
    asked = {name: job.arguments.get(name) for name in ('host', 'node')}
    forced = bool(job.arguments.get('forced_host'))
    spec = Spec.of(job.server, on_volume=job.on_volume, **asked, forced=forced)
    places.find(job, spec)


def network(job: Job) -> None:
    """Make or bind the ports. Which ports were given is written down before they are touched."""
    if job.server.task_state == 'scheduling':
        job.save(task_state='networking', network_info=interfaces.plan(job))
    if job.server.task_state == 'networking':
        connected = interfaces.connect(job, job.server.network_info)
        interfaces.describe(job, connected, task_state='block_device_mapping')


def attach(job: Job) -> None:
    if job.server.task_state == 'block_device_mapping':
        disks.attach_all(job)
        root = job.server.root_device_name or ROOT_DEVICE
        job.save(task_state='spawning', root_device_name=root)


def spawn(job: Job) -> None:
    job.driver.spawn(job.server, job.devices())
    now = job.clock()
    job.finish(vm_state=states.ACTIVE, power_state=states.RUNNING, launched_at=now)
