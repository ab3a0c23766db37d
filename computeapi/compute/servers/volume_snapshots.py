"""Assisted volume snapshots: the hypervisor that uses a volume takes them, at the request of the volume service, which
waits for the result."""

import logging
from collections.abc import Mapping
from typing import Any

from computeapi.backends.hypervisor import Capability, require
from computeapi.compute.platform import Platform
from computeapi.compute.servers import disks
from computeapi.compute.servers.changes import locked
from computeapi.compute.tasks.job import Job, abandon
from computeapi.compute.tasks.transition import Failure, Transition
from computeapi.context import Context
from computeapi.db import block_devices, servers
from computeapi.errors import Conflict, Forbidden, Invalid, NotFound, ServerNotFound

LOG = logging.getLogger(__name__)


def report(job: Job, status: str) -> None:
    """Tell the volume service, which may have given up or deleted the snapshot meanwhile."""
    snapshot_id = job.arguments.get('snapshot_id') or job.arguments['facts']['snapshot_id']
    try:
        job.platform.volumes.report_snapshot(job.elevated, snapshot_id, status)
    except (Conflict, Forbidden, Invalid, NotFound) as error:
        LOG.warning('Volume snapshot %s is not reported as %s: %s', snapshot_id, status, error)


def reporting(status: str) -> Failure:
    def give_up(job: Job, error: Exception) -> None:
        report(job, status)
        abandon(job, error)

    return give_up


CREATE = Transition('create_volume_snapshot', beside=True, lockable=False, failed=reporting('error'))
DELETE = Transition('delete_volume_snapshot', beside=True, lockable=False, failed=reporting('error_deleting'))


class AssistedSnapshots:
    """Errors: Invalid for a volume that is not attached to exactly one server, on a host and without a task_state."""

    def __init__(self, platform: Platform):
        self.store, self.tasks, self.hypervisor = platform.store, platform.tasks, platform.hypervisor

    def create(self, context: Context, volume_id: str, facts: Mapping[str, Any]) -> None:
        """Let the server with the volume write to a new file from now on; *facts* describe it."""
        self._queue(context, CREATE, volume_id, {'facts': dict(facts)})

    def delete(self, context: Context, volume_id: str, snapshot_id: str, facts: Mapping[str, Any]) -> None:
        """Let the server with the volume merge the files that *facts* describe."""
        arguments = {'snapshot_id': snapshot_id, 'facts': dict(facts)}
        self._queue(context, DELETE, volume_id, arguments)

    def _queue(self, context: Context, transition: Transition, volume_id: str, arguments: dict[str, Any]) -> None:
        with self.store.read() as connection:
            devices = block_devices.on_volume(connection, volume_id)
            server = servers.get(connection, devices[0].server_id) if len(devices) == 1 else None
        if not devices:
            raise Invalid(f'No volume Block Device Mapping with id {volume_id}.')
        if len(devices) > 1:
            raise Invalid(f'Volume {volume_id} is attached to several servers.')
        if server is None or server.host is None:
            raise Invalid(f'Instance {devices[0].server_id} is not ready')
        require(self.hypervisor, Capability.SNAPSHOT_VOLUME, server.host)
        try:
            with self.tasks.adding() as connection:
                locked(connection, context, server, transition)
                self.tasks.add(connection, transition, server.uuid, context, {'volume_id': volume_id, **arguments})
        except (Conflict, ServerNotFound) as error:
            raise Invalid(str(error)) from None


# ------------------------------------------------------------------ work


@CREATE.work
def create_volume_snapshot(job: Job) -> None:
    """Let the hypervisor take a snapshot of a volume for the volume service."""
    job.driver.snapshot_volume(job.server, disks.of_volume(job, job.arguments['volume_id']), job.arguments['facts'])
    report(job, 'creating')
    job.end()


@DELETE.work
def delete_volume_snapshot(job: Job) -> None:
    device = disks.of_volume(job, job.arguments['volume_id'])
    job.driver.delete_volume_snapshot(job.server, device, job.arguments['snapshot_id'], job.arguments['facts'])
    report(job, 'deleting')
    job.end()
