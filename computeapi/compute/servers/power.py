"""Power and run states of a server: start, stop, reboot, pause, suspend, crash dumps."""

from dataclasses import replace

from computeapi.backends.hypervisor import Capability, PowerState
from computeapi.compute.servers import shares
from computeapi.compute.tasks.job import Job, into_error, unchanged
from computeapi.compute.tasks.transition import Transition
from computeapi.states import SOFT_REBOOT_STEPS, TaskState, VMState


def not_switched(job: Job, error: Exception) -> None:
    """A server with shares in error is in error, too, so that they can be detached; any other keeps its state."""
    (into_error if shares.are_broken(job) else unchanged)(job, error)


START = Transition('start', during=TaskState.POWERING_ON, allowed={VMState.STOPPED}, hosted=True, failed=not_switched)
STOP = Transition(
    'stop', during=TaskState.POWERING_OFF, allowed={VMState.ACTIVE, VMState.ERROR}, hosted=True, failed=not_switched
)
# The transitions after the power of a machine changed from outside; a lock does not prevent them.
POWERED_ON = Transition(
    'start',
    kind='powered_on',
    during=TaskState.POWERING_ON,
    allowed={VMState.STOPPED},
    lockable=False,
    hosted=True,
    failed=not_switched,
)
POWERED_OFF = Transition(
    'stop',
    kind='powered_off',
    during=TaskState.POWERING_OFF,
    allowed={VMState.ACTIVE},
    lockable=False,
    hosted=True,
    failed=not_switched,
)
# The transitions after a machine is found in another power state than its server.
PAUSED_IS_OFF = replace(POWERED_OFF, kind='paused_is_off', allowed={VMState.PAUSED})
STOPPED_IS_ON = replace(POWERED_OFF, kind='stopped_is_on', allowed={VMState.STOPPED})


@START.work
@POWERED_ON.work
def start(job: Job) -> None:
    with job.event('compute_start_instance'):
        shares.mount(job)
        job.driver.power_on(job.server)
        shares.activate(job)
    job.finish(vm_state=VMState.ACTIVE, power_state=PowerState.RUNNING)


@STOP.work
@POWERED_OFF.work
@PAUSED_IS_OFF.work
@STOPPED_IS_ON.work
def stop(job: Job) -> None:
    with job.event('compute_stop_instance'):
        job.driver.power_off(job.server)
        shares.unmount(job)
    job.finish(vm_state=VMState.STOPPED, power_state=PowerState.SHUTDOWN)


# ------------------------------------------------------------------ reboot


def down(job: Job, error: Exception) -> None:
    """A server that still runs keeps its state."""
    (unchanged if job.power() == PowerState.RUNNING else into_error)(job, error)


SOFT_REBOOT = Transition(
    'reboot',
    during=TaskState.REBOOTING,
    steps=(TaskState.REBOOT_STARTED,),
    allowed={VMState.ACTIVE},
    failed=down,
)
HARD_REBOOT = Transition(
    'reboot',
    kind='hard_reboot',
    during=TaskState.REBOOTING_HARD,
    steps=(TaskState.REBOOT_STARTED_HARD,),
    allowed={VMState.ACTIVE, VMState.STOPPED, VMState.PAUSED, VMState.SUSPENDED, VMState.ERROR},
    # Work that hangs because of the guest can be overtaken; a hard reboot that has begun is completed.
    while_doing={
        None,
        *SOFT_REBOOT_STEPS,
        TaskState.REBOOTING_HARD,
        TaskState.PAUSING,
        TaskState.UNPAUSING,
        TaskState.SUSPENDING,
        TaskState.RESUMING,
    },
    failed=down,
)


@SOFT_REBOOT.work
def soft_reboot(job: Job) -> None:
    reboot(job, TaskState.REBOOT_STARTED, hard=False)


@HARD_REBOOT.work
def hard_reboot(job: Job) -> None:
    reboot(job, TaskState.REBOOT_STARTED_HARD, hard=True)


def reboot(job: Job, started: TaskState, *, hard: bool) -> None:
    with job.event('compute_reboot_instance'):
        job.save(task_state=started)
        if hard:
            shares.mount(job)
        job.driver.reboot(job.server, hard=hard)
        shares.activate(job)
    job.finish(vm_state=VMState.ACTIVE, power_state=PowerState.RUNNING)


# ------------------------------------------------------------------ pause

PAUSE = Transition(
    'pause', during=TaskState.PAUSING, allowed={VMState.ACTIVE}, capability=Capability.PAUSE, failed=unchanged
)
UNPAUSE = Transition(
    'unpause', during=TaskState.UNPAUSING, allowed={VMState.PAUSED}, capability=Capability.PAUSE, failed=unchanged
)


@PAUSE.work
def pause(job: Job) -> None:
    with job.event('compute_pause_instance'):
        job.driver.pause(job.server)
    job.finish(vm_state=VMState.PAUSED, power_state=PowerState.PAUSED)


@UNPAUSE.work
def unpause(job: Job) -> None:
    with job.event('compute_unpause_instance'):
        job.driver.unpause(job.server)
    job.finish(vm_state=VMState.ACTIVE, power_state=PowerState.RUNNING)


# ------------------------------------------------------------------ suspend

SUSPEND = Transition(
    'suspend', during=TaskState.SUSPENDING, allowed={VMState.ACTIVE}, capability=Capability.SUSPEND, shares=False
)
RESUME = Transition('resume', during=TaskState.RESUMING, allowed={VMState.SUSPENDED}, capability=Capability.SUSPEND)


@SUSPEND.work
def suspend(job: Job) -> None:
    with job.event('compute_suspend_instance'):
        job.driver.suspend(job.server)
    job.finish(vm_state=VMState.SUSPENDED, power_state=PowerState.SHUTDOWN)


@RESUME.work
def resume(job: Job) -> None:
    with job.event('compute_resume_instance'):
        job.driver.resume(job.server)
    job.finish(vm_state=VMState.ACTIVE, power_state=PowerState.RUNNING)


# ------------------------------------------------------------------ crash dumps

CRASH_DUMP = Transition(
    'trigger_crash_dump',
    allowed={VMState.ACTIVE, VMState.PAUSED, VMState.RESCUED, VMState.RESIZED, VMState.ERROR},
    hosted=True,
    capability=Capability.CRASH_DUMP,
    failed=unchanged,
)


@CRASH_DUMP.work
def crash_dump(job: Job) -> None:
    with job.event('compute_trigger_crash_dump'):
        job.driver.crash_dump(job.server)
    job.finish()
