"""The ports of servers: chosen, made, bound, given back, and what the servers know of them (`network_info`).

An entry of network_info is what db.servers says; one whose port is still to be made has no port_id and no mac_address.
"""

import contextlib
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from computeapi.backends.network import Allocation, Network, Networks, Port
from computeapi.compute.platform import Platform
from computeapi.compute.tasks.job import Job
from computeapi.compute.tasks.transition import beside
from computeapi.context import Context
from computeapi.db import allocations
from computeapi.db import servers as rows
from computeapi.db.servers import Server
from computeapi.errors import AddressInUse, FixedIPInUse, Forbidden, NotFound
from computeapi.states import VMState

Entry = Mapping[str, Any]

LOG = logging.getLogger(__name__)
MOST_TRIES = 5
AT_ONCE = 200

REFRESH = beside('refresh_addresses')
UNPLUG = beside('unplug')


class Addresses:
    """Brings the network_info of servers up to date."""

    def __init__(self, platform: Platform):
        self.store, self.networks = platform.store, platform.networks
        self.tasks, self.clock = platform.tasks, platform.clock

    def refresh(self, context: Context, server_ids: Collection[str]) -> None:
        """Read the ports of these servers again. Interfaces whose ports are gone are forgotten and unplugged.

        A server that somebody changes at the same moment is looked at again, so that neither change is lost; a new one
        when it has been booted, for its ports may have been described before they changed.
        """
        ids = sorted(server_ids)
        for start in range(0, len(ids), AT_ONCE):
            self._refresh(context.elevated(), ids[start : start + AT_ONCE])

    def _refresh(self, context: Context, server_ids: Collection[str]) -> None:
        for _ in range(MOST_TRIES):
            server_ids = self._try(context, server_ids)
            if not server_ids:
                return
        LOG.warning('The addresses of servers %s are not up to date, because they keep changing', ', '.join(server_ids))

    def _try(self, context: Context, server_ids: Collection[str]) -> set[str]:
        """The servers that changed in the meantime."""
        found = self.store.ask(rows.alive, server_ids)
        # Who makes ports describes them when they are there.
        settled = [server for server in found if not are_planned(server.network_info)]
        self._put_off(context, [server.uuid for server in found if is_connecting(server)])
        ids = [server.uuid for server in settled]
        ports = self.networks.ports(context, server_ids=ids, floating=True) if ids else []
        names = group_names(self.networks, context, ports)
        held: dict[str, dict[str, Port]] = {server.uuid: {} for server in settled}
        for port in ports:
            held[port.device_id][port.id] = port
        current = ((server, updated(server.network_info, held[server.uuid], names)) for server in settled)
        return {server.uuid for server, entries in current if not self._keep(context, server, entries)}

    def _put_off(self, context: Context, server_ids: Sequence[str]) -> None:
        """Let a worker refresh these servers when it has done what they are at."""
        if server_ids:
            with self.store.write() as connection:
                for server_id in server_ids:
                    self.tasks.add_once(connection, REFRESH, server_id, context)
            self.tasks.wake()

    def _keep(self, context: Context, server: Server, entries: Sequence[Entry]) -> bool:
        """Write the entries down, unless the server changed since it was read; whether it did not."""
        if entries == server.network_info:
            return True
        kept = {entry['port_id'] for entry in entries}
        gone = [entry for entry in server.network_info if entry['port_id'] not in kept]
        with self.store.write() as connection:
            new = {'network_info': entries, 'updated_at': self.clock()}
            if not rows.change_unless_newer(connection, server, new):
                return False
            if gone:
                allocations.leave_ports(connection, server.uuid, [entry['port_id'] for entry in gone])
            if gone and server.host is not None:
                self.tasks.add(connection, UNPLUG, server.uuid, context, {'interfaces': gone})
        self.tasks.wake()
        return True


# ------------------------------------------------------------------ entries of network_info


def planned(item: Entry, key: str) -> dict[str, Any]:
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


def are_planned(entries: Iterable[Entry]) -> bool:
    """Whether some of the ports are still to be made."""
    return any(entry['mac_address'] is None for entry in entries)


def is_connecting(server: Server) -> bool:
    """Whether this is a new server that gets its ports."""
    return server.vm_state == VMState.BUILDING and are_planned(server.network_info)


def described(networks: Networks, context: Context, server_id: str, entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """The entries of network_info as the network service describes their ports now, in the same order."""
    ports = {port.id: port for port in networks.ports(context, server_ids=[server_id], floating=True)}
    known = [{**entry, 'port_id': port_of(networks, context, server_id, entry)} for entry in entries]
    return updated(known, ports, group_names(networks, context, ports.values()))


def held(networks: Networks, context: Context, server: Server) -> list[Port]:
    """The ports of the server, as far as the caller sees them."""
    return [port for port in networks.ports(context, server_ids=[server.uuid]) if belongs(port, server)]


def belongs(port: Port, server: Server) -> bool:
    """Whether the port is the server's, as those of its project are that say so, and what compute was given for it.

    Any project can say of its ports that they are on the server of another one, and means no good by it.
    """
    known = port.project_id == server.project_id or port.id in {entry['port_id'] for entry in server.network_info}
    return known and port.device_id == server.uuid


def port_of(networks: Networks, context: Context, server_id: str, entry: Entry) -> str | None:
    """The port of the entry, also one that was made though nobody came to say so."""
    if entry['port_id'] is None:
        return next((port.id for port in networks.ports(context, server_ids=[server_id], key=entry['key'])), None)
    port_id: str = entry['port_id']
    return port_id


def updated(entries: Sequence[Entry], ports: Mapping[str, Port], names: Mapping[str, str]) -> list[dict[str, Any]]:
    """The entries as their ports are, less those whose ports are gone."""
    return [_entry(entry, ports[entry['port_id']], names) for entry in entries if entry['port_id'] in ports]


def group_names(networks: Networks, context: Context, ports: Iterable[Port]) -> Mapping[str, str]:
    ids = {group_id for port in ports for group_id in port.security_groups}
    return networks.security_group_names(context, ids) if ids else {}


def _entry(entry: Entry, port: Port, group_names: Mapping[str, str]) -> dict[str, Any]:
    # A port may have several addresses; a floating one leads to the first.
    addresses = [
        {
            'address': fixed['ip_address'],
            'version': 6 if ':' in fixed['ip_address'] else 4,
            'subnet_id': fixed['subnet_id'],
            'floating': list(port.floating_ips) if index == 0 else [],
        }
        for index, fixed in enumerate(port.fixed_ips)
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


def replace(connection: sa.Connection, server_id: str, port_id: str, entries: Sequence[Entry], now: datetime) -> None:
    """Put these entries of network_info in the index of that of the port, whatever else happens to the others."""
    server = rows.get(connection, server_id, lock=True)
    if server is not None:
        others = [entry for entry in server.network_info if entry['port_id'] != port_id]
        rows.update(connection, server_id, {'network_info': [*others, *entries], 'updated_at': now})


def follow(connection: sa.Connection, server_id: str, before: Sequence[Entry], after: Sequence[Entry]) -> None:
    """Let network_info say *after* where it said *before*, whatever it says besides."""
    server = rows.get(connection, server_id, lock=True)
    if server is not None:
        current = {_name(entry): entry for entry in after}
        gone = {_name(entry) for entry in before} - set(current)
        kept = [entry for entry in server.network_info if _name(entry) not in gone]
        info = [current.get(_name(entry), entry) for entry in kept]
        rows.update(connection, server_id, {'network_info': info})


def _name(entry: Entry) -> str:
    """What tells an interface of the server from the others, whether its port is made or not."""
    name: str = entry.get('key') or entry['port_id']
    return name


# ------------------------------------------------------------------ work


@REFRESH.work
def refresh_addresses(job: Job) -> None:
    """Whoever changed what leads to the server did not come to the end of it."""
    Addresses(job.platform).refresh(job.elevated, [job.server.uuid])
    job.end()


@UNPLUG.work
def unplug(job: Job) -> None:
    """Interfaces whose ports are gone leave the machine."""
    if job.server.host is not None:
        job.driver.unplug(job.server, job.arguments['interfaces'])
    job.end()


def plan(job: Job) -> list[dict[str, Any]]:
    """The interfaces that the server was asked for, as entries of network_info without their addresses."""
    wanted = job.arguments.get('networks')
    if wanted == 'none':
        return []
    if wanted == 'auto':
        wanted = [{'network_id': automatic(job).id}]
    if asking := outside(job):
        refuse_external(job, asking)
    return [planned(item, str(index)) for index, item in enumerate(wanted or ())]


def asks_to_plan(job: Job) -> bool:
    """Whether the network service is asked for something by `plan`."""
    return job.arguments.get('networks') == 'auto' or bool(outside(job))


def outside(job: Job) -> list[str]:
    """The networks that led to the outside when the server was asked for by somebody who may not use such."""
    wanted = job.arguments.get('networks')
    if job.arguments.get('external_networks', True) or isinstance(wanted, str):
        return []
    # A task of an older release does not tell.
    return [item['network_id'] for item in wanted or () if not item.get('port_id') and item.get('is_outside', True)]


def refuse_external(job: Job, network_ids: Sequence[str]) -> None:
    """Forbidden for a network to the outside that is not shared; its owner let others route to it, not live on it."""
    for network in job.platform.networks.networks(job.elevated, network_ids):
        if network.is_outside:
            raise Forbidden(f'It is not allowed to create an interface on external network {network.id}')


def automatic(job: Job) -> Network:
    """The only network there is to choose, or the one that is made for projects without any."""
    available = job.platform.networks.networks(job.context)
    return available[0] if len(available) == 1 else job.platform.networks.auto_network(job.context)


def connect(job: Job, entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Make or bind the port of each entry, on the server's host; the entries as the network service describes them."""
    ports = [connected(job, entry) for entry in entries]
    names = group_names(job.platform.networks, job.elevated, ports)
    return [_entry(entry, port, names) for entry, port in zip(entries, ports, strict=True)]


def connected(job: Job, entry: Entry) -> Port:
    made = make(job, entry) if entry['created'] else None
    # One that was made before may have been for a host that failed.
    if made is not None and made.host == job.server.host:
        return made
    (bound,) = bind(job.platform, job.elevated, job.server, [made.id if made is not None else entry['port_id']])
    return bound


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
    """Give these ports to the server, on its host."""
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
    """By port of the server that asks for something, who gives it on that host."""
    held = platform.store.ask(allocations.held_for_ports, server.uuid, host) if platform.mirror is not None else {}
    return {port_id: each['allocation'] for port_id, each in held.items()}


def prepare(job: Job, host: str) -> list[str]:
    """Let the ports be ready on a host that the server is going to while it runs; those that the network service will
    say are connected there."""
    chosen, add = providers(job.platform, job.server, host), job.platform.networks.add_binding
    ids = [entry['port_id'] for entry in job.server.network_info]
    return [port_id for port_id in ids if add(job.elevated, port_id, host, allocation=chosen.get(port_id))]


def switch(job: Job, host: str) -> None:
    """The server has come to this host; what was not made ready there is bound in the common way."""
    for entry in job.server.network_info:
        with contextlib.suppress(NotFound):
            job.platform.networks.activate_binding(job.elevated, entry['port_id'], host)


def leave_hosts(networks: Networks, server: Server, hosts: Collection[str]) -> None:
    """The ports are not for these hosts, on which the server is not."""
    context = Context(user_id=server.user_id, project_id=server.project_id).elevated()
    for entry in server.network_info if hosts else ():
        for host in sorted(hosts):
            networks.delete_binding(context, entry['port_id'], host)


def disconnect(networks: Networks, context: Context, server: Server) -> None:
    """Delete the ports that compute made for the server; leave those that were given to it."""
    given = {entry['port_id'] for entry in server.network_info if not entry['created']}
    for port_id in sorted(port.id for port in held(networks, context, server)):
        if port_id in given:
            networks.unbind_port(context, port_id)
        else:
            networks.delete_port(context, port_id)


def describe(job: Job, entries: Sequence[Entry]) -> None:
    """Write down how the network service describes the server's ports now."""
    found = described(job.platform.networks, job.elevated, job.server.uuid, entries) if entries else []
    job.save(network_info=found)
    # What changed between the look and the note would stay unknown.
    if not found or described(job.platform.networks, job.elevated, job.server.uuid, found) == found:
        return
    Addresses(job.platform).refresh(job.elevated, [job.server.uuid])
    if (current := job.store.ask(rows.get, job.server.uuid)) is not None:
        job.server.network_info = current.network_info


def take_away(networks: Networks, context: Context, server_id: str, entry: Entry) -> None:
    """Delete the port if compute made it, else leave it to its owner; nothing if the server does not hold it."""
    port_id = port_of(networks, context, server_id, entry)
    if port_id is None or port_id not in {port.id for port in networks.ports(context, server_ids=[server_id])}:
        return
    if entry['created']:
        networks.delete_port(context, port_id)
    else:
        networks.unbind_port(context, port_id)
