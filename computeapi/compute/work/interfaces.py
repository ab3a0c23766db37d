"""A server's network interfaces: made, bound, described, taken away."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from computeapi.backends.network import Network, Networks, Port
from computeapi.compute.work.job import Job, aside
from computeapi.context import Context
from computeapi.db import servers as rows
from computeapi.errors import Forbidden, PortNotFound


def plan(job: Job) -> list[dict[str, Any]]:
    """The interfaces that the server was asked for, as entries of network_info without their addresses."""
    wanted = job.arguments.get('networks')
    if wanted == 'none':
        return []
    if wanted == 'auto':
        wanted = [{'network_id': automatic(job).id}]
    if not job.arguments.get('external_networks', True):
        refuse_external(job, [item['network_id'] for item in wanted or () if not item.get('port_id')])
    return [planned(item, str(place)) for place, item in enumerate(wanted or ())]


def planned(item: Mapping[str, Any], key: str) -> dict[str, Any]:
    """An entry for what was asked for; key: by which a step that is run again finds the port that it made."""
    return {
        'port_id': item.get('port_id'),
        'key': key,
        'network_id': item.get('network_id'),
        'created': not item.get('port_id'),
        'fixed_ip': item.get('fixed_ip'),
        'tag': item.get('tag'),
        'mac_address': None,
        'addresses': [],
        'security_groups': [],
    }


def refuse_external(job: Job, network_ids: Sequence[str]) -> None:
    """Forbidden for a network to the outside that is not shared; its owner let others route to it, not live on it."""
    for network in job.cloud.networks.networks(job.elevated, network_ids) if network_ids else ():
        if network.external and not network.shared:
            raise Forbidden(f'It is not allowed to create an interface on external network {network.id}')


def automatic(job: Job) -> Network:
    """The only network there is to choose, or the one that is made for projects without any."""
    available = job.cloud.networks.networks(job.context)
    return available[0] if len(available) == 1 else job.cloud.networks.auto_network(job.context)


def connect(job: Job, entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Make or bind the port of each entry, on the server's host; the entries with the ports that they got."""
    connected = []
    for entry in entries:
        port_id = make_port(job, entry).id if entry['created'] else entry['port_id']
        job.cloud.networks.bind_port(job.elevated, port_id, server_id=job.server.uuid, host=job.server.host)
        connected.append({**entry, 'port_id': port_id})
    return connected


def make_port(job: Job, entry: Mapping[str, Any]) -> Port:
    return job.cloud.networks.create_port(
        job.context,
        entry['network_id'],
        server_id=job.server.uuid,
        host=job.server.host,
        fixed_ip=entry['fixed_ip'],
        security_groups=job.arguments.get('security_groups') or (),
        hostname=job.server.hostname,
        key=entry['key'],
    )


def disconnect(networks: Networks, context: Context, server_id: str, entries: Iterable[Mapping[str, Any]]) -> None:
    """Delete the ports that compute made for the server; leave those that were given to it."""
    given = {entry['port_id'] for entry in entries if not entry['created']}
    for port_id in sorted(port.id for port in networks.ports(context, server_ids=[server_id])):
        if port_id in given:
            networks.unbind_port(context, port_id)
        else:
            networks.delete_port(context, port_id)


def describe(job: Job, entries: Sequence[Mapping[str, Any]], **values: Any) -> None:
    """Write down how the network service describes the server's ports now, with other values of the row."""
    info = described(job.cloud.networks, job.elevated, job.server.uuid, entries)
    job.save(network_info=info, **values)
    # What changed between the look and the note would stay unknown.
    job.cloud.addresses.refresh(job.elevated, [job.server.uuid])


def described(networks: Networks, context: Context, server_id: str, entries: Sequence[Mapping[str, Any]]) -> list:
    """The entries of network_info as the network service describes their ports now, in the same order."""
    ports = {port.id: port for port in networks.ports(context, server_ids=[server_id])}
    known = [{**entry, 'port_id': port_of(networks, context, server_id, entry)} for entry in entries]
    return current(known, ports, group_names(networks, context, ports.values()))


def port_of(networks: Networks, context: Context, server_id: str, entry: Mapping[str, Any]) -> str | None:
    """The port of the entry, also one that was made though nobody came to say so."""
    if entry['port_id'] is None:
        return next((port.id for port in networks.ports(context, server_ids=[server_id], key=entry['key'])), None)
    port_id: str = entry['port_id']
    return port_id


def current(
    entries: Sequence[Mapping[str, Any]], ports: Mapping[str, Port], names: Mapping[str, str]
) -> list[dict[str, Any]]:
    """The entries as their ports are, less those whose ports are gone."""
    return [_entry(entry, ports[entry['port_id']], names) for entry in entries if entry['port_id'] in ports]


def are_planned(entries: Iterable[Mapping[str, Any]]) -> bool:
    """Whether some of the ports are still to be made."""
    return any(entry['mac_address'] is None for entry in entries)


def group_names(networks: Networks, context: Context, ports: Iterable[Port]) -> dict[str, str]:
    ids = {group_id for port in ports for group_id in port.security_groups}
    return {group.id: group.name for group in networks.security_groups(context, ids=ids)} if ids else {}


def _entry(entry: Mapping[str, Any], port: Port, group_names: Mapping[str, str]) -> dict[str, Any]:
    # A port may have several addresses; a floating one leads to the first.
    addresses = [
        {
            'address': fixed['ip_address'],
            'version': 6 if ':' in fixed['ip_address'] else 4,
            'subnet_id': fixed['subnet_id'],
            'floating': list(port.floating_ips) if place == 0 else [],
        }
        for place, fixed in enumerate(port.fixed_ips)
    ]
    return {
        'port_id': port.id,
        'key': entry.get('key'),
        'network_id': port.network_id,
        'network_name': port.network_name,
        'mac_address': port.mac_address,
        'status': port.status,
        'created': entry['created'],
        'tag': entry.get('tag'),
        'addresses': addresses,
        'security_groups': sorted(group_names[group] for group in port.security_groups if group in group_names),
    }


# ------------------------------------------------------------------ one interface more or less


@aside('attach_interface')
def attach(job: Job) -> None:
    """What the process that was asked for it did not come to the end of."""
    attach_one(job)


def attach_one(job: Job) -> dict[str, Any]:
    """Connect one more interface, which is returned; what fails is taken back."""
    entry = job.arguments['interface']
    networks, server = job.cloud.networks, job.server
    try:
        with job.event('compute_attach_interface'):
            (made,) = described(networks, job.elevated, server.uuid, connect(job, [entry]))
            job.driver.plug(server, [made])
    except Exception:
        take_away(networks, job.elevated, server.uuid, entry)
        raise
    with job.store.write() as connection:
        replace(connection, server.uuid, made['port_id'], [made], job.clock())
        job.close(connection)
    return made


@aside('detach_interface')
def detach(job: Job) -> None:
    """Disconnect an interface and give its port back; the server keeps it if that fails."""
    port_id, server = job.arguments['port_id'], job.server
    with job.event('compute_detach_interface'):
        entry = next((entry for entry in server.network_info if entry['port_id'] == port_id), None)
        if entry is None:
            raise PortNotFound(id=port_id)
        job.driver.unplug(server, [entry])
        take_away(job.cloud.networks, job.elevated, server.uuid, entry)
    with job.store.write() as connection:
        replace(connection, server.uuid, port_id, [], job.clock())
        job.close(connection)


def take_away(networks: Networks, context: Context, server_id: str, entry: Mapping[str, Any]) -> None:
    """Delete the port if compute made it, else leave it to its owner; nothing if the server does not hold it."""
    port_id = port_of(networks, context, server_id, entry)
    if port_id is None or port_id not in {port.id for port in networks.ports(context, server_ids=[server_id])}:
        return
    if entry['created']:
        networks.delete_port(context, port_id)
    else:
        networks.unbind_port(context, port_id)


def replace(
    connection: sa.Connection, server_id: str, port_id: str, entries: Sequence[Mapping[str, Any]], now: datetime
) -> None:
    """Put these entries of network_info in the place of that of the port, whatever else happens to the others."""
    server = rows.get(connection, server_id, lock=True)
    if server is not None:
        others = [entry for entry in server.network_info if entry['port_id'] != port_id]
        rows.update(connection, server_id, {'network_info': [*others, *entries], 'updated_at': now})


def follow(connection: sa.Connection, server_id: str, before: Sequence[Mapping], after: Sequence[Mapping]) -> None:
    """Let network_info say *after* where it said *before*, whatever it says besides."""
    server = rows.get(connection, server_id, lock=True)
    if server is not None:
        current = {_name(entry): entry for entry in after}
        gone = {_name(entry) for entry in before} - set(current)
        kept = [entry for entry in server.network_info if _name(entry) not in gone]
        info = [current.get(_name(entry), entry) for entry in kept]
        rows.update(connection, server_id, {'network_info': info})


def _name(entry: Mapping[str, Any]) -> str:
    """What tells an interface of the server from the others, whether its port is made or not."""
    name: str = entry.get('key') or entry['port_id']
    return name
