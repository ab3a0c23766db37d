"""What changes whether and how a server runs."""

from __future__ import annotations

from computeapi.compute import states
from computeapi.compute.work.job import Job, Superseded, into_error, unchanged, work

SOFT = ('rebooting', 'reboot_started')
HARD = ('rebooting_hard', 'reboot_started_hard')


@work('start', 'powering-on', failed=unchanged)
def start(job: Job) -> None:
    with job.event('compute_start_instance'):
        job.driver.power_on(job.server)
    job.finish(vm_state=states.ACTIVE, power_state=states.RUNNING)


@work('stop', 'powering-off', failed=unchanged)
def stop(job: Job) -> None:
    with job.event('compute_stop_instance'):
        job.driver.power_off(job.server)
    job.finish(vm_state=states.STOPPED, power_state=states.SHUTDOWN)


def down(job: Job, error: Exception) -> None:
    """A server that still runs is none the worse."""
    (unchanged if job.power() == states.RUNNING else into_error)(job, error)


@work('reboot', *SOFT, *HARD, failed=down)
def reboot(job: Job) -> None:
    hard = bool(job.arguments.get('hard'))
    if job.server.task_state not in (HARD if hard else SOFT):
        raise Superseded()
    with job.event('compute_reboot_instance'):
        job.save(task_state=HARD[1] if hard else SOFT[1])
        job.driver.reboot(job.server, hard=hard)
    job.finish(vm_state=states.ACTIVE, power_state=states.RUNNING)


@work('pause', 'pausing', failed=unchanged)
def pause(job: Job) -> None:
    with job.event('compute_pause_instance'):
        job.driver.pause(job.server)
    job.finish(vm_state=states.PAUSED, power_state=states.POWER_PAUSED)


@work('unpause', 'unpausing', failed=unchanged)
def unpause(job: Job) -> None:
    with job.event('compute_unpause_instance'):
        job.driver.unpause(job.server)
    job.finish(vm_state=states.ACTIVE, power_state=states.RUNNING)


@work('suspend', 'suspending')
def suspend(job: Job) -> None:
    with job.event('compute_suspend_instance'):
        job.driver.suspend(job.server)
    job.finish(vm_state=states.SUSPENDED, power_state=states.SHUTDOWN)


@work('resume', 'resuming')
def resume(job: Job) -> None:
    with job.event('compute_resume_instance'):
        job.driver.resume(job.server)
    job.finish(vm_state=states.ACTIVE, power_state=states.RUNNING)


@work('crash_dump', None, failed=unchanged)
def crash_dump(job: Job) -> None:
    with job.event('compute_trigger_crash_dump'):
        job.driver.crash_dump(job.server)
    job.finish()


@work('rescue', 'rescuing')
def rescue(job: Job) -> None:
    with job.event('compute_rescue_instance'):
        job.driver.rescue(job.server, job.arguments.get('image_id'))
    job.finish(vm_state=states.RESCUED, power_state=states.RUNNING, launched_at=job.clock())


@work('unrescue', 'unrescuing')
def unrescue(job: Job) -> None:
    with job.event('compute_unrescue_instance'):
        job.driver.unrescue(job.server)
    job.finish(vm_state=states.ACTIVE, power_state=states.RUNNING)
