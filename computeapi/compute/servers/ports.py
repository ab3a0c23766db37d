"""The ports of servers: selection, creation, binding and release."""

import contextlib
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from computeapi.backends.network import Allocation, Network, Networks, Port
from computeapi.compute.platform import Platform
from computeapi.compute.servers import addresses, network_info
from computeapi.compute.servers.network_info import Entry
from computeapi.compute.tasks.job import Job
from computeapi.context import Context
from computeapi.db import allocations, servers
from computeapi.db.servers import Server
from computeapi.errors import AddressInUse, FixedIPInUse, Forbidden, NotFound, PortNotUsable


def plan(job: Job) -> list[dict[str, Any]]:
    """The requested interfaces of the server, as entries of network_info without addresses."""
    wanted = job.arguments.get('networks')
    if wanted == 'none':
        return []
    if wanted == 'auto':
        wanted = [{'network_id': automatic(job).id}]
    if network_ids := outside(job):
        refuse_outside(job.platform.networks.networks(job.elevated, network_ids))
    return [network_info.planned(item, str(index)) for index, item in enumerate(wanted or ())]


def asks_to_plan(job: Job) -> bool:
    """Whether `plan` calls the network service."""
    return job.arguments.get('networks') == 'auto' or bool(outside(job))


def outside(job: Job) -> list[str]:
    """The external networks in the request for the server, if the caller may not use such networks."""
    wanted = job.arguments.get('networks')
    if job.arguments.get('external_networks', True) or isinstance(wanted, str):
        return []
    # A task of an older release does not have this fact, and not the network of a port.
    return [item['network_id'] for item in wanted or () if item.get('is_outside', not item.get('port_id'))]


def refuse_outside(networks: Iterable[Network]) -> None:
    """Forbidden for an external network that is not shared: its owner allows routing to it, not servers on it."""
    for network in networks:
        if network.is_outside:
            raise Forbidden(f'It is not allowed to create an interface on external network {network.id}')


def automatic(job: Job) -> Network:
    """The only available network, or the one that is created for projects without any."""
    available = job.platform.networks.networks(job.context)
    return available[0] if len(available) == 1 else job.platform.networks.auto_network(job.context)


def connect(job: Job, entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Create or bind the port of each entry on the server's host; returns the entries as they are then."""
    ports = [connected(job, entry) for entry in entries]
    names = network_info.group_names(job.platform.networks, job.elevated, ports)
    return [network_info.entry_of(entry, port, names) for entry, port in zip(entries, ports, strict=True)]


def connected(job: Job, entry: Entry) -> Port:
    made = make(job, entry) if entry['created'] else None
    if made is None:
        check_owner(job, entry['port_id'])
    # A port from an earlier run may be bound on a host that failed.
    if made is not None and made.host == job.server.host:
        return made
    (bound,) = bind(job.platform, job.elevated, job.server, [made.id if made is not None else entry['port_id']])
    return bound


def check_owner(job: Job, port_id: str) -> None:
    """PortNotUsable for a port of another project, which the caller sees if it is on a network of its own."""
    if job.platform.networks.port(job.elevated, port_id).project_id != job.server.project_id:
        raise PortNotUsable(port_id=port_id, server_id=job.server.uuid)


def make(job: Job, entry: Entry) -> Port:
    try:
        return job.platform.networks.create_port(
            job.context,
            entry['network_id'],
            server_id=job.server.uuid,
            project_id=job.server.project_id,
            host=job.server.host,
            zone=job.server.availability_zone,
            fixed_ip=entry['fixed_ip'],
            security_groups=job.arguments.get('security_groups') or (),
            hostname=job.server.hostname,
            key=entry['key'],
        )
    except AddressInUse:
        raise FixedIPInUse(address=entry['fixed_ip']) from None


def bind(platform: Platform, context: Context, server: Server, port_ids: Iterable[str]) -> list[Port]:
    """Bind these ports to the server, on its host."""
    chosen = providers(platform, server, server.host)
    return [
        platform.networks.bind_port(
            context,
            port_id,
            server_id=server.uuid,
            host=server.host,
            zone=server.availability_zone,
            hostname=server.hostname,
            allocation=chosen.get(port_id),
        )
        for port_id in port_ids
    ]


def providers(platform: Platform, server: Server, host: str | None) -> dict[str, Allocation]:
    """By port of the server with a resource request, the provider on that host."""
    held = platform.store.query(allocations.held_for_ports, server.uuid, host) if platform.mirror is not None else {}
    return {port_id: each['allocation'] for port_id, each in held.items()}


def prepare(job: Job, host: str) -> list[str]:
    """Prepare the ports on the host that the running server moves to; returns those for which the network service will
    report that they are connected there."""
    chosen, add = providers(job.platform, job.server, host), job.platform.networks.add_binding
    ids = [entry['port_id'] for entry in job.server.network_info]
    return [port_id for port_id in ids if add(job.elevated, port_id, host, allocation=chosen.get(port_id))]


def switch(job: Job, host: str) -> None:
    """The server has moved to this host; ports that were not prepared there are bound in the usual way."""
    for entry in job.server.network_info:
        with contextlib.suppress(NotFound):
            job.platform.networks.activate_binding(job.elevated, entry['port_id'], host)


def leave_hosts(networks: Networks, server: Server, hosts: Collection[str]) -> None:
    """Delete the bindings on these hosts, on which the server is not."""
    context = Context(user_id=server.user_id, project_id=server.project_id).elevated()
    for entry in server.network_info if hosts else ():
        for host in sorted(hosts):
            networks.delete_binding(context, entry['port_id'], host)


def disconnect(networks: Networks, context: Context, server: Server) -> None:
    """Delete the ports that compute created for the server, and release those that were given to it."""
    given = {entry['port_id'] for entry in server.network_info if not entry['created']}
    for port_id in sorted(port.id for port in network_info.held(networks, context, server)):
        if port_id in given:
            networks.unbind_port(context, port_id)
        else:
            networks.delete_port(context, port_id)


def describe(job: Job, entries: Sequence[Entry]) -> None:
    """Record how the network service describes the server's ports now."""
    found = network_info.described(job.platform.networks, job.elevated, job.server.uuid, entries) if entries else []
    job.save(network_info=found)
    # A change between reading and recording would otherwise go unnoticed.
    if not found or network_info.described(job.platform.networks, job.elevated, job.server.uuid, found) == found:
        return
    addresses.refresh(job)
    if (current := job.store.query(servers.get, job.server.uuid)) is not None:
        job.server.network_info = current.network_info


def take_away(networks: Networks, context: Context, server_id: str, entry: Entry) -> None:
    """Delete the port if compute created it, else release it; nothing if the server does not hold it."""
    port_id = network_info.port_of(networks, context, server_id, entry)
    if port_id is None or port_id not in {port.id for port in networks.ports(context, server_ids=[server_id])}:
        return
    if entry['created']:
        networks.delete_port(context, port_id)
    else:
        networks.unbind_port(context, port_id)
