"""The ports of a server: chosen, made, bound, given back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from computeapi.backends.network import Network, Networks, Port
from computeapi.compute.servers import network_info
from computeapi.compute.servers.addresses import Addresses
from computeapi.compute.servers.network_info import Entry
from computeapi.compute.tasks.job import Job
from computeapi.context import Context
from computeapi.errors import Forbidden


def plan(job: Job) -> list[dict[str, Any]]:
    """The interfaces that the server was asked for, as entries of network_info without their addresses."""
    wanted = job.arguments.get('networks')
    if wanted == 'none':
        return []
    if wanted == 'auto':
        wanted = [{'network_id': automatic(job).id}]
    if not job.arguments.get('external_networks', True):
        refuse_external(job, [item['network_id'] for item in wanted or () if not item.get('port_id')])
    return [network_info.planned(item, str(place)) for place, item in enumerate(wanted or ())]


def refuse_external(job: Job, network_ids: Sequence[str]) -> None:
    """Forbidden for a network to the outside that is not shared; its owner let others route to it, not live on it."""
    for network in job.platform.networks.networks(job.elevated, network_ids) if network_ids else ():
        if network.external and not network.shared:
            raise Forbidden(f'It is not allowed to create an interface on external network {network.id}')


def automatic(job: Job) -> Network:
    """The only network there is to choose, or the one that is made for projects without any."""
    available = job.platform.networks.networks(job.context)
    return available[0] if len(available) == 1 else job.platform.networks.auto_network(job.context)


def connect(job: Job, entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Make or bind the port of each entry, on the server's host; the entries with the ports that they got."""
    connected = []
    for entry in entries:
        port_id = make(job, entry).id if entry['created'] else entry['port_id']
        job.platform.networks.bind_port(job.elevated, port_id, server_id=job.server.uuid, host=job.server.host)
        connected.append({**entry, 'port_id': port_id})
    return connected


def make(job: Job, entry: Entry) -> Port:
    return job.platform.networks.create_port(
        job.context,
        entry['network_id'],
        server_id=job.server.uuid,
        host=job.server.host,
        fixed_ip=entry['fixed_ip'],
        security_groups=job.arguments.get('security_groups') or (),
        hostname=job.server.hostname,
        key=entry['key'],
    )


def disconnect(networks: Networks, context: Context, server_id: str, entries: Iterable[Entry]) -> None:
    """Delete the ports that compute made for the server; leave those that were given to it."""
    given = {entry['port_id'] for entry in entries if not entry['created']}
    for port_id in sorted(port.id for port in networks.ports(context, server_ids=[server_id])):
        if port_id in given:
            networks.unbind_port(context, port_id)
        else:
            networks.delete_port(context, port_id)


def describe(job: Job, entries: Sequence[Entry], **values: Any) -> None:
    """Write down how the network service describes the server's ports now, with other values of the row."""
    info = network_info.described(job.platform.networks, job.elevated, job.server.uuid, entries)
    job.save(network_info=info, **values)
    # What changed between the look and the note would stay unknown.
    Addresses(job.platform).refresh(job.elevated, [job.server.uuid])


def take_away(networks: Networks, context: Context, server_id: str, entry: Entry) -> None:
    """Delete the port if compute made it, else leave it to its owner; nothing if the server does not hold it."""
    port_id = network_info.port_of(networks, context, server_id, entry)
    if port_id is None or port_id not in {port.id for port in networks.ports(context, server_ids=[server_id])}:
        return
    if entry['created']:
        networks.delete_port(context, port_id)
    else:
        networks.unbind_port(context, port_id)
