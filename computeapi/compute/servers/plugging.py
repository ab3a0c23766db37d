"""Waits until the network service reports that the ports of a server are connected."""

import logging
from collections.abc import Callable, Collection, Sequence

from computeapi.backends.hypervisor import NotYet
from computeapi.compute.servers import moves
from computeapi.compute.tasks.job import Job
from computeapi.errors import PortBindingFailed, PortNotPlugged

LOG = logging.getLogger(__name__)
ACTIVE = 'ACTIVE'
FAILED = 'failed'
STEP, STEP_THERE = 'plugging', 'plugging there'
LOOK_AGAIN_SECONDS = 15
"""How often the network service is polled, in case its event is lost."""


def wait(job: Job) -> None:
    """Return when all ports of the server are connected: NotYet, until an event hastens the task or the time is over.

    Then PortNotPlugged, or nothing if that is not fatal."""
    if not all(entry.get('status') == ACTIVE for entry in job.server.network_info):
        wait_while(job, STEP, lambda: unplugged(job))


def wait_at_destination(job: Job, port_ids: Collection[str]) -> None:
    """The same for ports that are to be connected on the host that the server is moving to, before it moves. Only an
    event reports that: the status of a port is the one on the host where it is in use."""
    if not job.platform.conf.compute.live_migration_wait_for_vif_plug:
        return

    def waiting() -> list[str]:
        migration = moves.migration_of(job)
        plugged = migration.plugged or {}
        for port_id in port_ids:
            if plugged.get(port_id) == FAILED and job.platform.conf.vif_plugging_is_fatal:
                raise PortBindingFailed(id=port_id, host=migration.dest_host)
        return [port_id for port_id in port_ids if port_id not in plugged]

    wait_while(job, STEP_THERE, waiting)


def wait_while(job: Job, step: str, waiting: Callable[[], Sequence[str]]) -> None:
    """Raise NotYet while there are ports that wait, until the time limit."""
    timeout = job.platform.conf.vif_plugging_timeout
    down = waiting() if timeout else ()
    if not down:
        return
    passed = job.fence.passed(step)
    if passed < timeout:
        raise NotYet(min(LOOK_AGAIN_SECONDS, timeout - passed))
    if job.platform.conf.vif_plugging_is_fatal:
        raise PortNotPlugged(seconds=timeout, ids=', '.join(down))
    LOG.warning('Server %s continues without ports %s', job.server.uuid, ', '.join(down))


def unplugged(job: Job) -> list[str]:
    """The ports of the server that wait to be connected, without those that are administratively down."""
    known = {entry['port_id'] for entry in job.server.network_info}
    found = job.platform.networks.ports(job.elevated, server_ids=[job.server.uuid])
    waiting = (port for port in found if port.id in known and port.admin_state_up and port.status != ACTIVE)
    return [port.id for port in waiting]
