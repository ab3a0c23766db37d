"""Resources of ports, such as bandwidth, and the resources and traits that flavors and images require. With Placement,
only it knows which provider has them, so it takes part in the choice of the host, and the server waits for it. Without,
resources of ports are not considered, and the scheduler looks for the others.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import sqlalchemy as sa

from computeapi.backends.network import Port
from computeapi.backends.placement import Candidate, Chosen, PlacementRefused, ResourceRequest
from computeapi.compute.mirror import Mirror
from computeapi.compute.platform import Platform
from computeapi.compute.scheduler import HostState, Spec
from computeapi.compute.scheduler.requirements import ISOLATE, RequestGroup, are_valid, special
from computeapi.compute.servers import network_info, placement
from computeapi.compute.tasks.job import Job
from computeapi.context import Context
from computeapi.db import allocations, servers
from computeapi.db.allocations import Held
from computeapi.db.servers import Server
from computeapi.errors import Invalid
from computeapi.resource_classes import SIZES

FindPorts = Callable[[], Sequence[Port]]
"""Returns the ports with resource requests; called only if there is something to decide."""
NextSteps = Callable[[sa.Connection], None]


class ExtraResources(NamedTuple):
    """What a server would hold of a host's providers in addition to its sizes: for each port, and for its flavor."""

    ports: Mapping[str, Any]
    flavor: Held


def find(job: Job, spec: Spec, find_ports: FindPorts, next_steps: NextSteps | None = None, **values: Any) -> None:
    """Choose a host for a server without one, and claim its allocation and the resources of its ports there.

    values: further columns of its row.  next_steps: performs the next steps in the same transaction. NoValidHost."""

    def record(connection: sa.Connection, host: HostState) -> None:
        values.update(host=host.name, node=host.node, availability_zone=host.zone)
        if next_steps is None:
            job.write(connection, **values)
        else:
            job.later(**values)
            next_steps(connection)

    refusing: set[str] = set()
    while True:
        if job.server.host is None:
            others = replace(spec, ignored_hosts=spec.ignored_hosts | refusing)
            allocate(job.platform, job.server, others, record, find_ports())
        host = job.server.host or ''
        if is_accepted(job.platform, job.server, host):
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
    requesting: Sequence[Port],
    check: Callable[[HostState], None] | None = None,
) -> HostState:
    """Like the scheduler's `allocate`, for a server whose ports may request resources, which they hold from then on."""
    if platform.mirror is None or not (requesting or spec.groups):
        return platform.scheduler.allocate(spec, record, check)
    there = extra_resources(platform.mirror, requesting, spec)
    here = server.host or ''
    held = platform.store.query(allocations.held_for_ports, server.uuid, here)
    if held and (here in there or not spec.groups):
        # The host that the server is already on needs no more resources for its ports.
        there[here] = ExtraResources(held, there[here].flavor if here in there else {})

    def keep_both(connection: sa.Connection, host: HostState) -> None:
        record(connection, host)
        if requesting:
            allocations.hold_for_ports(connection, server.uuid, host.name, there[host.name].ports)

    among = {host: each.flavor for host, each in there.items()}
    return platform.scheduler.allocate(replace(spec, among=among), keep_both, check)


def is_accepted(platform: Platform, server: Server, host: str) -> bool:
    """Report the claims of the server to Placement now, if its flavor or ports hold special resources on that host;
    returns whether Placement accepts them, because another consumer may have been faster."""
    if platform.mirror is None or not platform.store.query(allocations.holds_more, server.uuid, host):
        return True
    try:
        platform.mirror.publish_server(server.uuid)
    except PlacementRefused:
        return False
    return True


def hold(job: Job, port_id: str) -> None:
    """Let one more port of the server hold its resources on the server's host; Invalid if they are not available."""
    server, mirror = job.server, job.platform.mirror
    requesting = [port for port in job.platform.networks.ports(job.elevated, ids=[port_id]) if port.resource_request]
    if mirror is None or not requesting:
        return
    if port_id not in job.store.query(allocations.held_for_ports, server.uuid, server.host):
        there = extra_resources(mirror, requesting).get(server.host or '')
        if there is None:
            raise too_little(server)
        with job.store.write() as connection:
            servers.get(connection, server.uuid, lock=True)
            held = allocations.held_for_ports(connection, server.uuid, server.host)
            allocations.hold_for_ports(connection, server.uuid, server.host or '', {**held, **there.ports})
    if not is_accepted(job.platform, server, server.host or ''):
        job.store.change(allocations.leave_ports, server.uuid, [port_id])
        raise too_little(server)


def too_little(server: Server) -> Invalid:
    return Invalid(f'Failed to allocate additional resources to {server.uuid} during interface attach')


def requesting_ports(platform: Platform, context: Context, server: Server) -> list[Port]:
    """The ports of the server with resource requests."""
    if platform.mirror is None or not server.network_info:
        return []
    return [port for port in network_info.held(platform.networks, context.elevated(), server) if port.resource_request]


def requested_ports(job: Job) -> list[Port]:
    """The requested ports with resource requests."""
    wanted = job.arguments.get('networks')
    ids = [each['port_id'] for each in wanted if each['port_id']] if isinstance(wanted, list) else []
    if job.platform.mirror is None or not ids:
        return []
    return [port for port in job.platform.networks.ports(job.elevated, ids=ids) if port.resource_request]


def extra_resources(mirror: Mirror, requesting: Sequence[Port], spec: Spec | None = None) -> dict[str, ExtraResources]:
    """By host that has the requested resources and traits, what the server would hold there. spec: of a server that
    looks for a host."""
    own = [] if spec is None else flavor_requests(spec)
    # Placement searches providers only for resources, which the unnumbered group may lack as well.
    if spec is not None and not (are_valid(spec.groups, spec.group_policy) and all(each.resources for each in own)):
        return {}
    requests = [*own, *(each for port in requesting for each in requests_of(port))]
    together = [group for port in requesting for group in [(port.resource_request or {}).get('same_subtree')] if group]
    hosts = mirror.hosts_for(requests, together, isolated=spec is not None and spec.group_policy == ISOLATE)
    return {host: _extra_of(found, requesting) for host, found in hosts.items()}


def _extra_of(found: Candidate, requesting: Sequence[Port]) -> ExtraResources:
    of_ports = {port.id: held(port, found.chosen) for port in requesting}
    rest = {provider: Counter(resources) for provider, resources in found.resources.items()}
    for each in of_ports.values():
        for provider, resources in each['resources'].items():
            rest[provider].subtract(resources)
    mine = {provider: special(resources) for provider, resources in rest.items()}
    return ExtraResources(of_ports, {provider: resources for provider, resources in mine.items() if resources})


def flavor_requests(spec: Spec) -> list[ResourceRequest]:
    """The groups of requirements of the flavor and the image, with the sizes that are in no other group, if there are
    any groups."""
    if not spec.groups:
        return []
    groups = dict(spec.groups)
    elsewhere = {resource for name, group in groups.items() if name for resource in group.resources}
    sizes = {name: getattr(spec.needs, size) for name, size in SIZES.items() if name not in elsewhere}
    common = groups.get('', RequestGroup())
    groups[''] = common._replace(resources={**common.resources, **sizes}).stripped
    return [
        ResourceRequest(name, group.resources, sorted(group.required), sorted(group.forbidden))
        for name, group in sorted(groups.items())
        if any(group)
    ]


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
