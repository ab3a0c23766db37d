"""Resources of ports, such as bandwidth. Only Placement knows which provider has them, so it takes part in the choice
of the host, and the server waits for it. Without Placement, resources of ports are not considered.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from computeapi.backends.network import Port
from computeapi.backends.placement import Chosen, PlacementRefused, ResourceRequest
from computeapi.compute.mirror import Mirror
from computeapi.compute.platform import Platform
from computeapi.compute.scheduler import HostState, Spec
from computeapi.compute.servers import placement, ports
from computeapi.compute.tasks.job import Job
from computeapi.context import Context
from computeapi.db import allocations
from computeapi.db import servers as rows
from computeapi.db.servers import Server
from computeapi.errors import Invalid

Asking = Callable[[], Sequence[Port]]
"""Returns the ports with resource requests; called only if there is something to decide."""
GoingOn = Callable[[sa.Connection], None]
Besides = Mapping[str, Mapping[str, Any]]
"""By acceptable host, what each port would hold of its providers."""


def find(job: Job, spec: Spec, asking: Asking, go_on: GoingOn | None = None, **values: Any) -> None:
    """Choose a host for a server without one, and claim its allocation and the resources of its ports there.

    values: further columns of its row.  go_on: performs the next steps in the same transaction. NoValidHost."""

    def record(connection: sa.Connection, host: HostState) -> None:
        values.update(host=host.name, node=host.node, availability_zone=host.zone)
        if go_on is None:
            job.write(connection, **values)
        else:
            job.later(**values)
            go_on(connection)

    refusing: set[str] = set()
    while True:
        if job.server.host is None:
            others = replace(spec, ignored_hosts=spec.ignored_hosts | refusing)
            allocate(job.platform, job.server, others, record, asking())
        host = job.server.host or ''
        if is_told(job.platform, job.server, host):
            return
        refusing.add(host)
        with job.store.write() as connection:
            allocations.release(connection, job.server.uuid)
            job.write(connection, **placement.HOSTLESS)


def allocate(
    platform: Platform,
    server: Server,
    spec: Spec,
    record: Callable[[sa.Connection, HostState], None],
    asking: Sequence[Port],
    check: Callable[[HostState], None] | None = None,
) -> HostState:
    """Like the scheduler's `allocate`, for a server whose ports may request resources, which they hold from then on."""
    if platform.mirror is None or not asking:
        return platform.scheduler.allocate(spec, record, check)
    there = dict(besides(platform.mirror, asking))
    if held := platform.store.query(allocations.held_for_ports, server.uuid, server.host):
        # The host that the server is already on needs no more resources.
        there[server.host or ''] = held

    def keep_both(connection: sa.Connection, host: HostState) -> None:
        record(connection, host)
        allocations.hold_for_ports(connection, server.uuid, host.name, there[host.name])

    return platform.scheduler.allocate(spec, keep_both, check, fits=lambda host: host.name in there)


def is_told(platform: Platform, server: Server, host: str) -> bool:
    """Report the claims of the server to Placement now, if its ports hold resources on that host; returns whether
    Placement accepts them, because another consumer may have been faster."""
    if platform.mirror is None or not platform.store.query(allocations.held_for_ports, server.uuid, host):
        return True
    try:
        platform.mirror.publish_server(server.uuid)
    except PlacementRefused:
        return False
    return True


def hold(job: Job, port_id: str) -> None:
    """Let one more port of the server hold its resources on the server's host; Invalid if they are not available."""
    server, mirror = job.server, job.platform.mirror
    asking = [port for port in job.platform.networks.ports(job.elevated, ids=[port_id]) if port.resource_request]
    if mirror is None or not asking:
        return
    if port_id not in job.store.query(allocations.held_for_ports, server.uuid, server.host):
        there = besides(mirror, asking).get(server.host or '')
        if there is None:
            raise too_little(server)
        with job.store.write() as connection:
            rows.get(connection, server.uuid, lock=True)
            held = allocations.held_for_ports(connection, server.uuid, server.host)
            allocations.hold_for_ports(connection, server.uuid, server.host or '', {**held, **there})
    if not is_told(job.platform, server, server.host or ''):
        job.store.change(allocations.leave_ports, server.uuid, [port_id])
        raise too_little(server)


def too_little(server: Server) -> Invalid:
    return Invalid(f'Failed to allocate additional resources to {server.uuid} during interface attach')


def asked_by(platform: Platform, context: Context, server: Server) -> list[Port]:
    """The ports of the server with resource requests."""
    if platform.mirror is None or not server.network_info:
        return []
    return [port for port in ports.held(platform.networks, context.elevated(), server) if port.resource_request]


def asked_for(job: Job) -> list[Port]:
    """The requested ports with resource requests."""
    wanted = job.arguments.get('networks')
    ids = [each['port_id'] for each in wanted if each['port_id']] if isinstance(wanted, list) else []
    if job.platform.mirror is None or not ids:
        return []
    return [port for port in job.platform.networks.ports(job.elevated, ids=ids) if port.resource_request]


def besides(mirror: Mirror, asking: Sequence[Port]) -> Besides:
    """By host that has the requested resources, what each port would hold."""
    requests = [each for port in asking for each in requests_of(port)]
    together = [group for port in asking for group in [(port.resource_request or {}).get('same_subtree')] if group]
    hosts = mirror.hosts_for(requests, together)
    return {host: {port.id: held(port, chosen) for port in asking} for host, chosen in hosts.items()}


def requests_of(port: Port) -> list[ResourceRequest]:
    """The resource requests of a port. Older Neutron has a single request per port, without an ID."""
    requested = port.resource_request or {}
    groups = requested.get('request_groups', [{'id': port.id, **requested}])
    return [ResourceRequest(each['id'], each['resources'], each.get('required') or ()) for each in groups]


def held(port: Port, chosen: Chosen) -> dict[str, Any]:
    """What the port holds of which provider, and the allocation in Neutron's format."""
    requests = requests_of(port)
    resources: dict[str, dict[str, int]] = {}
    for each in requests:
        of = resources.setdefault(chosen[each.id], {})
        for name, amount in each.resources.items():
            of[name] = of.get(name, 0) + amount
    grouped = 'request_groups' in (port.resource_request or {})
    allocation = {each.id: chosen[each.id] for each in requests} if grouped else chosen[port.id]
    return {'resources': resources, 'allocation': allocation}
