"""Addresses of servers that are there: one more on a port, one less, and what the servers know of them."""

from __future__ import annotations

from computeapi.backends.network import Port
from computeapi.compute.work.beside import close
from computeapi.compute.work.job import Job, aside
from computeapi.errors import FixedIPNotFound, NetworkNotFoundForServer


@aside('add_fixed_ip')
def add(job: Job) -> None:
    """One more address on the server's port there, but not two when the task is run again."""
    network_id = job.arguments['network_id']
    with job.event('compute_add_fixed_ip_to_instance'):
        held = [fixed['ip_address'] for fixed in port_on(job, network_id).fixed_ips]
        if 'held' not in job.arguments:
            job.cloud.tasks.note(job.task, {'held': held})
        if held == job.arguments['held']:
            job.cloud.networks.add_fixed_ip(job.elevated, job.server.uuid, network_id)
        job.cloud.addresses.refresh(job.elevated, [job.server.uuid])
    close(job)


@aside('remove_fixed_ip')
def remove(job: Job) -> None:
    with job.event('compute_remove_fixed_ip_from_instance'):
        try:
            job.cloud.networks.remove_fixed_ip(job.elevated, job.server.uuid, job.arguments['address'])
        except FixedIPNotFound:
            # A worker that died may have come further than it could say.
            if job.task.attempts == 1:
                raise
        job.cloud.addresses.refresh(job.elevated, [job.server.uuid])
    close(job)


@aside('refresh_addresses')
def refresh(job: Job) -> None:
    """Whoever changed what leads to the server did not come to the end of it."""
    job.cloud.addresses.refresh(job.elevated, [job.server.uuid])
    close(job)


def port_on(job: Job, network_id: str) -> Port:
    for port in job.cloud.networks.ports(job.elevated, server_ids=[job.server.uuid]):
        if port.network_id == network_id:
            return port
    raise NetworkNotFoundForServer(server_id=job.server.uuid)
