"""Booting a new server: scheduling, networking, disks, spawning."""

from computeapi.backends.hypervisor import PowerState
from computeapi.compute.platform import Platform
from computeapi.compute.scheduler import Spec
from computeapi.compute.servers import bandwidth, disks, placement, plugging, ports
from computeapi.compute.tasks.job import Job
from computeapi.compute.tasks.queue import thawed
from computeapi.compute.tasks.transition import Transition
from computeapi.db import allocations
from computeapi.db.servers import Server
from computeapi.db.tasks import Task
from computeapi.states import TaskState, VMState

ROOT_DEVICE = '/dev/vda'


def give_up(job: Job, error: Exception) -> None:
    """What fails half way gives back what it took and leaves an ERROR with a fault."""
    placement.remove_machines(job.platform, job.server)
    ports.disconnect(job.platform.networks, job.elevated, job.server)
    disks.release_all(job)
    job.store.tell(allocations.release, job.server.uuid)
    job.fail(error, vm_state=VMState.ERROR, power_state=PowerState.NOSTATE, network_info=[], **placement.NOWHERE)


def release_volumes(platform: Platform, task: Task, server: Server | None) -> None:
    """Let go of what was reserved for a server that never came to be."""
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
    """From `building` to `active`."""
    with job.event('compute__do_build_and_run_instance'):
        schedule(job)
        network(job)
        attach(job)
        spawn(job)


def schedule(job: Job) -> None:
    """Find a host and claim an allocation there."""
    if job.server.task_state != TaskState.SCHEDULING:
        return
    asked = {name: job.arguments.get(name) for name in ('host', 'node')}
    forced = bool(job.arguments.get('forced_host'))
    spec = Spec.of(job.server, on_volume=job.on_volume, **asked, forced=forced)
    bandwidth.find(job, spec)


def network(job: Job) -> None:
    """Make or bind the ports. Which ports were given is written down before they are touched."""
    if job.server.task_state == TaskState.SCHEDULING:
        job.save(task_state=TaskState.NETWORKING, network_info=ports.plan(job))
    if job.server.task_state == TaskState.NETWORKING:
        connected = ports.connect(job, job.server.network_info)
        ports.describe(job, connected, task_state=TaskState.BLOCK_DEVICE_MAPPING)


def attach(job: Job) -> None:
    if job.server.task_state == TaskState.BLOCK_DEVICE_MAPPING:
        disks.attach_all(job)
        root = job.server.root_device_name or ROOT_DEVICE
        job.save(task_state=TaskState.SPAWNING, root_device_name=root)


def spawn(job: Job) -> None:
    job.driver.spawn(job.server, job.devices())
    plugging.wait(job)
    now = job.clock()
    job.finish(vm_state=VMState.ACTIVE, power_state=PowerState.RUNNING, launched_at=now)
