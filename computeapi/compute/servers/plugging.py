"""Waiting until the network service says that what a server was plugged into is there."""

import logging

from computeapi.backends.hypervisor import NotYet
from computeapi.compute.tasks.job import Job
from computeapi.errors import PortNotPlugged

LOG = logging.getLogger(__name__)
ACTIVE = 'ACTIVE'
STEP = 'plugging'
LOOK_AGAIN_SECONDS = 15
"""After which the network service is asked again, should its event be lost."""


def wait(job: Job) -> None:
    """Go on when all ports of the server are connected: NotYet, until an event hastens the task or the time is over.

    PortNotPlugged then, or nothing where that is not fatal."""
    timeout = job.platform.conf.vif_plugging_timeout
    if not timeout or all(entry.get('status') == ACTIVE for entry in job.server.network_info):
        return
    down = unplugged(job)
    if not down:
        return
    passed = job.fence.passed(STEP)
    if passed < timeout:
        raise NotYet(min(LOOK_AGAIN_SECONDS, timeout - passed))
    if job.platform.conf.vif_plugging_is_fatal:
        raise PortNotPlugged(seconds=timeout, ids=', '.join(down))
    LOG.warning('Server %s goes on without ports %s', job.server.uuid, ', '.join(down))


def unplugged(job: Job) -> list[str]:
    """The ports of the server that wait to be connected: not those that somebody switched off."""
    known = {entry['port_id'] for entry in job.server.network_info}
    found = job.platform.networks.ports(job.elevated, server_ids=[job.server.uuid])
    waiting = (port for port in found if port.id in known and port.admin_state_up and port.status != ACTIVE)
    return [port.id for port in waiting]
