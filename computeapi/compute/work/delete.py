"""Deleting a server, and everything that goes with it."""

from __future__ import annotations

from datetime import timedelta

from computeapi.compute import states
from computeapi.compute.work import disks, interfaces, places
from computeapi.compute.work.job import Job, Superseded, work
from computeapi.compute.work.snapshot import discard
from computeapi.db import allocations, server_migrations
from computeapi.db import servers as rows


@work('soft_delete', 'soft-deleting')
def soft_delete(job: Job) -> None:
    """Switch it off, and delete it when the time is over, unless it is restored."""
    with job.event('compute_soft_delete_instance'):
        places.leave_others(job.cloud, job.server)
        if job.server.host is not None:
            job.driver.power_off(job.server)
    now, flavor = job.clock(), job.server.flavor
    with job.store.write() as connection:
        server_migrations.settle(connection, job.server.uuid, now)
        job.cloud.tasks.cancel(connection, job.server.uuid)
        due = now + timedelta(seconds=job.cloud.conf.reclaim_instance_interval)
        job.cloud.tasks.add(connection, 'reclaim', job.server.uuid, job.context, not_before=due)
        job.conclude(
            connection,
            vm_state=states.SOFT_DELETED,
            power_state=states.SHUTDOWN,
            terminated_at=now,
            vcpus=flavor['vcpus'],
            memory_mb=flavor['memory_mb'],
        )


@work('reclaim', None, 'deleting')
def reclaim(job: Job) -> None:
    """The time of a soft-deleted server is over."""
    if job.server.vm_state != states.SOFT_DELETED:
        raise Superseded()
    if job.server.task_state is None:
        job.save(task_state='deleting')
    delete(job)


@work('restore', 'restoring')
def restore(job: Job) -> None:
    """Run again; what was shelved is not so any more."""
    server = job.server
    with job.event('compute_restore_instance'):
        job.driver.power_on(server)
    if server.shelved_image_id is not None:
        discard(job.cloud.images, job.elevated, server.shelved_image_id)
    with job.store.write() as connection:
        job.cloud.tasks.cancel(connection, server.uuid)
        job.conclude(
            connection,
            vm_state=states.ACTIVE,
            power_state=states.RUNNING,
            terminated_at=None,
            shelved_image_id=None,
        )


@work('delete', 'deleting')
def delete(job: Job) -> None:
    """The machine, its ports and volumes, its claims, and the row's life."""
    server = job.server
    with job.event('compute_terminate_instance'):
        places.remove_machines(job.cloud, server)
        if server.shelved_image_id is not None:
            discard(job.cloud.images, job.elevated, server.shelved_image_id)
        interfaces.disconnect(job.cloud.networks, job.elevated, server.uuid, server.network_info)
        disks.release_all(job)
    now = job.clock()
    with job.store.write() as connection:
        allocations.release(connection, server.uuid)
        rows.delete_belongings(connection, server.uuid)
        server_migrations.settle(connection, server.uuid, now)
        job.cloud.tasks.cancel(connection, server.uuid)
        job.conclude(
            connection,
            vm_state=states.DELETED,
            power_state=states.NOSTATE,
            terminated_at=now,
            deleted_at=now,
            network_info=[],
        )
