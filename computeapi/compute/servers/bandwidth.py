"""What ports ask of a host besides, such as bandwidth: only Placement knows who has it, and so it has a say in where
their server goes, which waits for it. Without a Placement nobody is asked.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from computeapi.backends.network import Port
from computeapi.backends.placement import Chosen, PlacementRefused, ResourceRequest
from computeapi.compute.mirror import Mirror
from computeapi.compute.scheduler import Spec
from computeapi.compute.servers import placement
from computeapi.compute.tasks.job import Job
from computeapi.db import allocations


def find(job: Job, spec: Spec) -> None:
    """As placement.find, for a server that is to be on the ports that its request names; NoValidHost."""
    mirror, asking = job.platform.mirror, ports_asking(job)
    if mirror is None or not asking:
        if job.server.host is None:
            placement.find(job, spec)
        return
    refusing: set[str] = set()
    while True:
        if job.server.host is None:
            others = replace(spec, ignored_hosts=spec.ignored_hosts | refusing)
            placement.find(job, others, besides(mirror, asking))
        try:
            return mirror.tell_of_server(job.server.uuid)
        except PlacementRefused:
            # Somebody else was quicker.
            refusing.add(job.server.host or '')
            with job.store.write() as connection:
                allocations.release(connection, job.server.uuid)
                job.write(connection, **placement.NOWHERE)


def ports_asking(job: Job) -> list[Port]:
    """The ports that the request names and that ask for something."""
    wanted = job.arguments.get('networks')
    ids = [each['port_id'] for each in wanted if each['port_id']] if isinstance(wanted, list) else []
    if job.platform.mirror is None or not ids:
        return []
    return [port for port in job.platform.networks.ports(job.elevated, ids=ids) if port.resource_request]


def besides(mirror: Mirror, asking: Sequence[Port]) -> placement.Besides:
    """By host that has what the ports ask for, what each would hold."""
    requests = [each for port in asking for each in requests_of(port)]
    together = [group for port in asking for group in [(port.resource_request or {}).get('same_subtree')] if group]
    hosts = mirror.hosts_for(requests, together)
    return {host: {port.id: held(port, chosen) for port in asking} for host, chosen in hosts.items()}


def requests_of(port: Port) -> list[ResourceRequest]:
    """An older Neutron has one request for each port, which has no id."""
    asked = port.resource_request or {}
    groups = asked.get('request_groups', [{'id': port.id, **asked}])
    return [ResourceRequest(each['id'], each['resources'], each.get('required') or ()) for each in groups]


def held(port: Port, chosen: Chosen) -> dict[str, Any]:
    """What the port holds of whom, and how Neutron is told."""
    requests = requests_of(port)
    resources: dict[str, dict[str, int]] = {}
    for each in requests:
        of = resources.setdefault(chosen[each.id], {})
        for name, amount in each.resources.items():
            of[name] = of.get(name, 0) + amount
    grouped = 'request_groups' in (port.resource_request or {})
    allocation = {each.id: chosen[each.id] for each in requests} if grouped else chosen[port.id]
    return {'resources': resources, 'allocation': allocation}
