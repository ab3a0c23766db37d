"""Builds a new server: scheduling, networking, disks, spawning; on another host if one fails."""

import functools
import logging
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from computeapi.backends.hypervisor import HypervisorError, PowerState, Unfit
from computeapi.compute.platform import Platform
from computeapi.compute.scheduler import NoValidHost, Spec
from computeapi.compute.servers import (
    config_drive,
    disk_names,
    disks,
    placement,
    plugging,
    ports,
    provider_resources,
    signatures,
)
from computeapi.compute.servers.creation.devices import ROOT
from computeapi.compute.tasks.fence import Superseded
from computeapi.compute.tasks.job import Job, message_of
from computeapi.compute.tasks.queue import thawed
from computeapi.compute.tasks.transition import Transition
from computeapi.db import allocations, block_devices
from computeapi.db.servers import BlockDevice, Server
from computeapi.db.tasks import Task
from computeapi.errors import Error, Forbidden, PortBindingFailed
from computeapi.states import TaskState, VMState

LOG = logging.getLogger(__name__)
OF_HOSTS = (HypervisorError, PortBindingFailed)
"""Errors of a host, which may not occur on another one. Errors due to the request, a volume or an address would occur
everywhere."""
TRIED = 'tried'
"""The argument of a task: the reason for each host that failed."""


class BuildAborted(Error):
    text = 'Build of instance {server_id} aborted: {reason}'


class RetriesExceeded(Error):
    text = 'Exceeded maximum number of retries. {reason}'


def give_up(job: Job, error: Exception) -> None:
    """Release everything, and leave the server in ERROR with a fault."""
    placement.remove_machines(job.platform, job.server)
    ports.disconnect(job.platform.networks, job.elevated, job.server)
    disks.release_all(job)
    job.store.change(allocations.release, job.server.uuid)
    job.fail(error, vm_state=VMState.ERROR, power_state=PowerState.NOSTATE, network_info=[], **placement.HOSTLESS)


def release_volumes(platform: Platform, task: Task, server: Server | None) -> None:
    """Release what was reserved for a server that was never created."""
    if server is None and task.arguments.get('reserving'):
        disks.release(platform, thawed(task.context).elevated(), task.server_id)


BUILD = Transition(
    'create',
    kind='build',
    during=TaskState.SCHEDULING,
    steps=(TaskState.NETWORKING, TaskState.BLOCK_DEVICE_MAPPING, TaskState.SPAWNING),
    failed=give_up,
    undo=release_volumes,
)


@BUILD.work
def build(job: Job) -> None:
    """Go from `building` to `active`, on the first host that does not fail."""
    while True:
        devices = job.first_devices
        if job.server.host in tried(job):
            retreat(job)
            schedule(job, devices)
            devices = job.devices()
        try:
            with job.event('compute__do_build_and_run_instance', soon=True):
                check_disks(job, devices)
                schedule(job, devices)
                network(job)
                attach(job, devices)
                spawn(job, devices)
            return
        except Unfit as error:
            raise BuildAborted(server_id=job.server.uuid, reason=error) from error
        except OF_HOSTS as error:
            note_failure(job, error)


def check_disks(job: Job, devices: list[BlockDevice]) -> None:
    """BuildAborted if there are too many."""
    try:
        disk_names.check_count(job.platform, len(devices))
    except Forbidden as error:
        raise BuildAborted(server_id=job.server.uuid, reason=error) from error


def tried(job: Job) -> dict[str, str]:
    """The reason for each host that failed, the last one last."""
    found: dict[str, str] = job.arguments.get(TRIED, {})
    return found


def note_failure(job: Job, error: Error) -> None:
    """Record that the server's host failed, so that it is left. RetriesExceeded if it was one too many; the error
    itself if there must be no other host."""
    most, server = job.platform.conf.scheduler.max_attempts, job.server
    if server.host is None or most == 1 or job.arguments.get('forced_host'):
        raise error
    LOG.warning('Server %s failed on host %s: %s', server.uuid, server.host, error)
    failed = {**tried(job), server.host: message_of(error)}
    if len(failed) >= most:
        raise RetriesExceeded(
            reason=f'Exceeded max scheduling attempts {most} for instance {server.uuid}. Last exception: {error}'
        ) from error
    if not job.platform.tasks.note(job.task, {TRIED: failed}):
        raise Superseded()


def retreat(job: Job) -> None:
    """Leave the host. The server keeps the ports and volumes that were created for it, for the next host."""
    try:
        placement.remove_machines(job.platform, job.server)
    except HypervisorError as error:
        LOG.warning('Host %s may still have the virtual machine of %s: %s', job.server.host, job.server.uuid, error)
    placement.disconnect_all(job)
    with job.store.write() as connection:
        allocations.release(connection, job.server.uuid)
        job.write(connection, task_state=TaskState.SCHEDULING, **placement.HOSTLESS)


def schedule(job: Job, devices: list[BlockDevice]) -> None:
    """Find a host that has not failed, and claim an allocation there."""
    if job.server.task_state != TaskState.SCHEDULING:
        return
    failed = tried(job)
    # The server has a cell now, and does not leave it.
    left: dict[str, Any] = {'ignored_hosts': frozenset(failed), 'current_host': [*failed][-1]} if failed else {}
    spec = spec_of(job.server, job.arguments, on_volume=job.on_volume, **left)
    try:
        provider_resources.find(
            job, spec, lambda: provider_resources.requested_ports(job), next_steps(job, spec, devices)
        )
    except NoValidHost as error:
        if not failed:
            raise
        raise RetriesExceeded(
            reason=f'Exhausted all hosts available for retrying build failures for instance {job.server.uuid}.'
        ) from error


def spec_of(server: Server, arguments: Mapping[str, Any], *, on_volume: bool, **more: Any) -> Spec:
    """The requirements of a new server for its host. arguments: those of its task."""
    requested = {name: arguments.get(name) for name in ('host', 'node')}
    return Spec.of(server, on_volume=on_volume, **requested, forced=bool(arguments.get('forced_host')), **more)


def next_steps(job: Job, spec: Spec, devices: list[BlockDevice]) -> provider_resources.NextSteps | None:
    """The steps after the choice of a host that are written together with it, because they call no other service."""
    if is_alone(job, devices) and (job.platform.mirror is None or not spec.groups):
        return functools.partial(skip_connecting, job, devices)
    # Placement is asked to agree in the previous step.
    if ports.asks_to_plan(job) or job.platform.mirror is not None:
        return None
    return lambda connection: job.write(connection, **planned(job))


def is_alone(job: Job, devices: list[BlockDevice]) -> bool:
    """Whether the server was requested without ports and volumes, so that no other service takes part."""
    return job.arguments.get('networks') in (None, [], 'none') and not any(map(disks.is_volume, devices))


def skip_connecting(job: Job, devices: list[BlockDevice], connection: sa.Connection) -> None:
    """Skip the steps in which ports and volumes are connected, for a server that has none."""
    job.later(task_state=TaskState.NETWORKING)
    job.later(task_state=TaskState.BLOCK_DEVICE_MAPPING)
    root = root_device(job)
    block_devices.set_names(connection, disks.name_local(devices, disk_names.names_for(devices, root)))
    job.write(connection, task_state=TaskState.SPAWNING, root_device_name=root)


def root_device(job: Job) -> str:
    return job.server.root_device_name or f'/dev/{ROOT}'


def network(job: Job) -> None:
    """Create or bind the ports. The given ports are recorded before they are touched; all ports can be found again if
    they were not recorded."""
    if job.server.task_state == TaskState.SCHEDULING:
        job.later(**planned(job))
    if job.server.task_state == TaskState.NETWORKING:
        connected = ports.connect(job, job.server.network_info)
        job.later(**interfaces(job, connected), task_state=TaskState.BLOCK_DEVICE_MAPPING)


def planned(job: Job) -> dict[str, Any]:
    """The changes of the server's row, once its ports are known."""
    return {**interfaces(job, ports.plan(job)), 'task_state': TaskState.NETWORKING}


def interfaces(job: Job, entries: list[dict[str, Any]]) -> dict[str, Any]:
    return {'network_info': entries} if entries != job.server.network_info else {}


def attach(job: Job, devices: list[BlockDevice]) -> None:
    """Name the disks, and create and attach the volumes among them."""
    if job.server.task_state == TaskState.BLOCK_DEVICE_MAPPING:
        disks.attach_all(job, devices, task_state=TaskState.SPAWNING, root_device_name=root_device(job))


def spawn(job: Job, devices: list[BlockDevice]) -> None:
    signatures.check_own(job)
    job.driver.spawn(job.server, devices, config_drive.of(job, job.server))
    plugging.wait(job)
    now = job.clock()
    job.finish(vm_state=VMState.ACTIVE, power_state=PowerState.RUNNING, launched_at=now)
