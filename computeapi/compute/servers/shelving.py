"""Shelving: an image of the server is stored and its host is released, until it is unshelved."""

import functools
from datetime import timedelta

import sqlalchemy as sa

from computeapi.backends.hypervisor import PowerState
from computeapi.compute.names import shortened
from computeapi.compute.platform import Platform
from computeapi.compute.scheduler import Spec
from computeapi.compute.servers import (
    config_drive,
    disk_names,
    disks,
    placement,
    plugging,
    provider_resources,
    signatures,
)
from computeapi.compute.servers.changes import Changes, check
from computeapi.compute.servers.moves import check_host
from computeapi.compute.servers.snapshots import (
    ServerSnapshots,
    described,
    discard,
    discard_image,
    discard_shelved,
    fill,
)
from computeapi.compute.tasks.fence import Superseded
from computeapi.compute.tasks.job import Job, unchanged
from computeapi.compute.tasks.transition import Transition
from computeapi.compute.zones import Zones
from computeapi.context import Context
from computeapi.db import allocations
from computeapi.db.servers import Server
from computeapi.errors import Conflict, ImageNotFound
from computeapi.states import TaskState, VMState


def offload_after(platform: Platform) -> timedelta | None:
    """How long a shelved server keeps its host; None: forever."""
    seconds = platform.conf.shelved_offload_time
    return None if seconds < 0 else timedelta(seconds=seconds)


def schedule_offload(job: Job, connection: sa.Connection, delay: timedelta | None) -> None:
    """Release the host of a shelved server after the delay; None: never."""
    if delay is not None:
        job.platform.tasks.add(connection, OFFLOAD, job.server.uuid, job.context, not_before=job.clock() + delay)


def not_shelved(job: Job, error: Exception) -> None:
    """Discard the image; a server that was powered off for it is stopped now."""
    discard_image(job.platform, job.task, job.server)
    power = job.power()
    stopped = power == PowerState.SHUTDOWN and job.server.vm_state != VMState.SUSPENDED
    job.fail(error, power_state=power, vm_state=VMState.STOPPED if stopped else job.server.vm_state)


def still_shelved(job: Job, error: Exception) -> None:
    """A server that had been offloaded has no host again; without its image it can never run again, and is in ERROR."""
    if job.server.vm_state == VMState.SHELVED:
        # A scheduled release of the host that came due meanwhile was dropped.
        with job.store.write() as connection:
            job.platform.tasks.cancel(connection, job.server.uuid)
            schedule_offload(job, connection, offload_after(job.platform))
        unchanged(job, error)
        return
    placement.leave(job)
    job.store.change(allocations.release, job.server.uuid)
    lost = {'vm_state': VMState.ERROR, 'shelved_image_id': None} if isinstance(error, ImageNotFound) else {}
    job.fail(error, power_state=PowerState.SHUTDOWN, **placement.NOWHERE, **lost)


SHELVE = Transition(
    'shelve',
    during=TaskState.SHELVING,
    steps=(TaskState.SHELVING_IMAGE_UPLOADING,),
    allowed={VMState.ACTIVE, VMState.STOPPED, VMState.PAUSED, VMState.SUSPENDED},
    shares=False,
    failed=not_shelved,
    harmless=True,
    undo=discard_image,
)
# It also runs some time after a server was shelved; the server is idle until then.
OFFLOAD = Transition(
    'shelveOffload',
    during=TaskState.SHELVING_OFFLOADING,
    steps=(None,),
    allowed={VMState.SHELVED},
    failed=unchanged,
    patient=True,
)
UNSHELVE = Transition(
    'unshelve',
    during=TaskState.UNSHELVING,
    steps=(TaskState.SPAWNING,),
    allowed={VMState.SHELVED, VMState.SHELVED_OFFLOADED},
    failed=still_shelved,
)


class Shelves:
    """Errors: those of Changes; Invalid for a zone or a host that does not exist."""

    def __init__(self, changes: Changes, zones: Zones, snapshots: ServerSnapshots):
        self.changes, self.zones, self.snapshots = changes, zones, snapshots

    def shelve(self, context: Context, server: Server) -> None:
        """Store an image of the server, and release its host at once or after a while."""
        if disks.is_root_on_volume(self.changes.platform, server):
            self.changes.begin(context, server, SHELVE)
            return
        name = shortened(server.name, after='-shelved')
        self.snapshots.begin(context, server, SHELVE, name, described(context, server), {})

    def unshelve(
        self,
        context: Context,
        server: Server,
        *,
        zone: str | None = None,
        unpin: bool = False,
        host: str | None = None,
    ) -> None:
        """Run again, on the current host or on a new one; zone: the server is pinned to it from then on."""
        check(context, server, UNSHELVE)
        if (zone or unpin or host) and server.vm_state != VMState.SHELVED_OFFLOADED:
            raise Conflict(
                f'Specifying an availability zone or a host when unshelving server "{server.uuid}" with status '
                f'"{server.vm_state}" is not supported. The server status must be SHELVED_OFFLOADED.'
            )
        if zone is not None:
            self.zones.check(zone)
            disks.check_zones(self.changes.platform, context, server, zone)
        if host is not None:
            check_host(self.changes.platform, host)
        requested = zone or (None if unpin else server.pinned_availability_zone)
        if host is not None and requested is not None and self.zones.of_host(host) != requested:
            raise Conflict(f'Host "{host}" is not in the availability zone "{requested}".')
        pinned = {'pinned_availability_zone': zone} if zone or unpin else {}
        self.changes.begin(context, server, UNSHELVE, {'host': host}, **pinned)


# ------------------------------------------------------------------ work


@SHELVE.work
def shelve(job: Job) -> None:
    """Store an image, power off, and release the host if that is due at once."""
    image_id, former = job.arguments.get('image_id'), job.server.shelved_image_id
    with job.event('compute_shelve_instance' if image_id else 'compute_shelve_offload_instance'):
        job.driver.power_off(job.server)
        if image_id is not None:
            fill(job, image_id, TaskState.SHELVING_IMAGE_UPLOADING)
    if former is not None:
        # An administrator reset the state of a shelved server.
        discard(job.platform.images, job.elevated, former)
    # A server on volumes gains nothing from keeping its host.
    delay = offload_after(job.platform) if image_id else timedelta(0)
    with job.store.write() as connection:
        schedule_offload(job, connection, delay)
        next_state = None if delay is None or delay else TaskState.SHELVING_OFFLOADING
        job.conclude(
            connection,
            task_state=next_state,
            vm_state=VMState.SHELVED,
            power_state=PowerState.SHUTDOWN,
            shelved_image_id=image_id,
        )


@OFFLOAD.work
def offload(job: Job) -> None:
    """Release the host."""
    server = job.server
    if server.vm_state != VMState.SHELVED:
        raise Superseded()
    if server.task_state is None:
        job.save(task_state=TaskState.SHELVING_OFFLOADING)
    with job.event('compute_shelve_offload_instance'):
        placement.leave(job)
    with job.store.write() as connection:
        allocations.release(connection, server.uuid)
        job.platform.tasks.cancel(connection, server.uuid)
        off = PowerState.SHUTDOWN
        job.conclude(connection, vm_state=VMState.SHELVED_OFFLOADED, power_state=off, **placement.NOWHERE)


@UNSHELVE.work
def unshelve(job: Job) -> None:
    """Run again, on the current host or on a new one."""
    if job.server.vm_state == VMState.SHELVED:
        with job.event('compute_start_instance'):
            job.driver.power_on(job.server)
    else:
        schedule(job)
        with job.event('compute_unshelve_instance'):
            if job.server.task_state == TaskState.UNSHELVING:
                placement.clear(job, job.server.host)
                job.later(task_state=TaskState.SPAWNING)
            devices = job.devices()
            disk_names.check_count(job.platform, len(devices))
            disks.attach_all(job, devices)
            placement.connect(job)
            job.driver.spawn(job.server, job.devices(), config_drive.of(job, job.server))
            plugging.wait(job)
    discard_shelved(job)
    now = job.clock()
    with job.store.write() as connection:
        job.platform.tasks.cancel(connection, job.server.uuid)
        job.conclude(
            connection,
            vm_state=VMState.ACTIVE,
            power_state=PowerState.RUNNING,
            launched_at=now,
            shelved_image_id=None,
        )


def schedule(job: Job) -> None:
    """Find a host, unless that is done; the image must still exist."""
    if job.server.host is None and job.server.shelved_image_id is not None:
        with job.event('get_image_info', job.platform.conf.host):
            job.platform.images.get(job.elevated, job.server.shelved_image_id)
            signatures.check(job, job.server.shelved_image_id, job.server.kernel_id, job.server.ramdisk_id)
    with job.event('schedule_instances', job.platform.conf.host):
        spec = Spec.of(job.server, on_volume=job.on_volume, host=job.arguments.get('host'))
        find_ports = functools.partial(provider_resources.requesting_ports, job.platform, job.elevated, job.server)
        provider_resources.find(job, spec, find_ports)
