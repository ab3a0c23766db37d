"""Deleting servers, at once or after a period in which they can be restored, and everything that goes with them."""

from dataclasses import replace
from datetime import timedelta

from computeapi.backends.hypervisor import PowerState
from computeapi.compute.hosts import is_host_up
from computeapi.compute.quotas import Quotas
from computeapi.compute.servers import disks, moves, placement, ports, shares
from computeapi.compute.servers.changes import Changes, check
from computeapi.compute.servers.snapshots import discard_shelved
from computeapi.compute.tasks.fence import Superseded
from computeapi.compute.tasks.job import Job
from computeapi.compute.tasks.transition import Transition
from computeapi.context import Context
from computeapi.db import allocations, server_migrations, servers
from computeapi.db.servers import Server
from computeapi.states import GOING, TaskState, VMState

DELETE = Transition('delete', during=TaskState.DELETING, while_doing=None, launched=False)
FORCE_DELETE = replace(DELETE, kind='forceDelete', api_name='forceDelete')
SOFT_DELETE = Transition('delete', kind='soft_delete', during=TaskState.SOFT_DELETING, while_doing=None)
RECLAIM = Transition('reclaim', steps=(TaskState.DELETING,))
RESTORE = Transition('restore', during=TaskState.RESTORING, allowed={VMState.SOFT_DELETED}, tells_lock=False)


class Deletion:
    """Errors: those of Changes; OverQuota."""

    def __init__(self, changes: Changes, quotas: Quotas):
        self.changes, self.quotas = changes, quotas
        self.conf = changes.platform.conf

    def delete(self, context: Context, server: Server) -> None:
        """Delete the server, whatever it is doing; if a reclaim interval is configured, it is kept for that time.

        Repeating the request is not an error."""
        if server.task_state not in GOING:
            self.changes.begin(context, server, SOFT_DELETE if self.is_kept(server) else DELETE, progress=0)

    def is_kept(self, server: Server) -> bool:
        """Whether it is kept. Not if its host is down and cannot power it off, nor if it never ran."""
        if not self.conf.reclaim_instance_interval or server.host is None or server.launched_at is None:
            return False
        return is_host_up(self.changes.platform, server.host)

    def force_delete(self, context: Context, server: Server) -> None:
        """Delete the server now, even if it is soft-deleted."""
        if server.task_state != TaskState.DELETING:
            self.changes.begin(context, server, FORCE_DELETE, progress=0)

    def restore(self, context: Context, server: Server) -> None:
        """Restore a soft-deleted server; it counts again, so the quota must have room for it."""
        check(context, server, RESTORE)
        wanted = {'instances': 1, 'cores': server.vcpus, 'ram': server.memory_mb}
        with self.changes.tasks.adding() as connection:
            self.quotas.reserve(connection, server.project_id, server.user_id, **wanted)
            self.changes.begin_in(connection, context, server, RESTORE)


# ------------------------------------------------------------------ work


@SOFT_DELETE.work
def soft_delete(job: Job) -> None:
    """Power the server off, and delete it at the end of the reclaim interval, unless it is restored."""
    with job.event('compute_soft_delete_instance'):
        placement.leave_others(job.platform, job.server)
        if job.server.host is not None:
            job.driver.power_off(job.server)
            shares.unmount(job)
    now = job.clock()
    with job.store.write() as connection:
        server_migrations.settle(connection, job.server.uuid, now)
        job.platform.tasks.cancel(connection, job.server.uuid)
        due = now + timedelta(seconds=job.platform.conf.reclaim_instance_interval)
        job.platform.tasks.add(connection, RECLAIM, job.server.uuid, job.context, not_before=due)
        job.conclude(
            connection,
            vm_state=VMState.SOFT_DELETED,
            power_state=PowerState.SHUTDOWN,
            **moves.sizes(job.server),
        )


@RECLAIM.work
def reclaim(job: Job) -> None:
    """Delete a soft-deleted server whose time is over."""
    if job.server.vm_state != VMState.SOFT_DELETED:
        raise Superseded()
    if job.server.task_state is None:
        job.save(task_state=TaskState.DELETING)
    delete(job)


@RESTORE.work
def restore(job: Job) -> None:
    """Run again; a shelved server is no longer shelved afterwards."""
    server = job.server
    with job.event('compute_restore_instance'):
        shares.mount(job)
        job.driver.power_on(server)
        shares.activate(job)
    discard_shelved(job)
    with job.store.write() as connection:
        job.platform.tasks.cancel(connection, server.uuid)
        job.conclude(
            connection,
            vm_state=VMState.ACTIVE,
            power_state=PowerState.RUNNING,
            shelved_image_id=None,
            # Earlier releases set it for soft-deleted servers.
            terminated_at=None,
        )


@DELETE.work
@FORCE_DELETE.work
def delete(job: Job) -> None:
    """Remove the machine, its ports and volumes, and its claims; then mark the row as deleted."""
    server = job.server
    # Without a host that is up, nothing happens on one that an event could tell about.
    listed = server.host is not None and is_host_up(job.platform, server.host)
    with job.event('compute_terminate_instance', listed=listed):
        placement.remove_machines(job.platform, server)
        discard_shelved(job)
        ports.disconnect(job.platform.networks, job.elevated, server)
        disks.release_all(job)
        shares.release_all(job)
    now = job.clock()
    with job.store.write() as connection:
        allocations.release(connection, server.uuid)
        servers.delete_belongings(connection, server.uuid)
        server_migrations.settle(connection, server.uuid, now)
        job.platform.tasks.cancel(connection, server.uuid)
        job.conclude(
            connection,
            vm_state=VMState.DELETED,
            power_state=PowerState.NOSTATE,
            terminated_at=now,
            deleted_at=now,
            network_info=[],
        )
