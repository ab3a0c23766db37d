"""The ports of servers: selection, creation, binding, release, and what servers know of them (`network_info`).

db.servers describes the entries of network_info; an entry whose port does not exist yet has no port_id and no
mac_address.
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
from computeapi.db import allocations, servers
from computeapi.db.servers import Server
from computeapi.errors import AddressInUse, FixedIPInUse, Forbidden, NotFound, PortNotUsable
from computeapi.states import VMState

Entry = Mapping[str, Any]

LOG = logging.getLogger(__name__)
MAX_TRIES = 5
BATCH = 200

REFRESH = beside('refresh_addresses')
UNPLUG = beside('unplug')


class Addresses:
    """Keeps the network_info of servers up to date."""

    def __init__(self, platform: Platform):
        self.store, self.networks = platform.store, platform.networks
        self.tasks, self.clock = platform.tasks, platform.clock

    def refresh(self, context: Context, server_ids: Collection[str]) -> None:
        """Read the ports of these servers again. Interfaces whose ports are gone are removed and unplugged.

        A server that changes at the same time is read again, so that neither change is lost. A new server is refreshed
        again after it has booted, because its ports may have been described before they changed.
        """
        ids = sorted(server_ids)
        for start in range(0, len(ids), BATCH):
            self._refresh(context.elevated(), ids[start : start + BATCH])

    def _refresh(self, context: Context, server_ids: Collection[str]) -> None:
        for _ in range(MAX_TRIES):
            server_ids = self._try(context, server_ids)
            if not server_ids:
                return
        LOG.warning('The addresses of servers %s are not up to date, because they keep changing', ', '.join(server_ids))

    def _try(self, context: Context, server_ids: Collection[str]) -> set[str]:
        """Refresh once; returns the servers that changed in the meantime."""
        found = self.store.query(servers.alive, server_ids)
        # The creation of ports describes them once they exist.
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
        """Let a worker refresh these servers after their current work."""
        if server_ids:
            with self.tasks.adding() as connection:
                for server_id in server_ids:
                    self.tasks.add_once(connection, REFRESH, server_id, context)

    def _keep(self, context: Context, server: Server, entries: Sequence[Entry]) -> bool:
        """Store the entries, unless the server changed since it was read; returns whether they are up to date."""
        if entries == server.network_info:
            return True
        kept = {entry['port_id'] for entry in entries}
        gone = [entry for entry in server.network_info if entry['port_id'] not in kept]
        with self.tasks.adding() as connection:
            new = {'network_info': entries, 'updated_at': self.clock()}
            if not servers.change_unless_newer(connection, server, new):
                return False
            if gone:
                allocations.leave_ports(connection, server.uuid, [entry['port_id'] for entry in gone])
            if gone and server.host is not None:
                self.tasks.add(connection, UNPLUG, server.uuid, context, {'interfaces': gone})
        return True


# ------------------------------------------------------------------ entries of network_info


def planned(item: Entry, key: str) -> dict[str, Any]:
    """An entry for a requested interface; a step that runs again finds the port that it created by *key*."""
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
    """Whether some of the ports do not exist yet."""
    return any(entry['mac_address'] is None for entry in entries)


def is_connecting(server: Server) -> bool:
    """Whether this is a new server whose ports are being created."""
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
    """Whether the port belongs to the server: it names the server, and is of its project or was given to compute.

    Naming the server is not enough: any project can do so on its own ports, with bad intent.
    """
    known = port.project_id == server.project_id or port.id in {entry['port_id'] for entry in server.network_info}
    return known and port.device_id == server.uuid


def port_of(networks: Networks, context: Context, server_id: str, entry: Entry) -> str | None:
    """The port of the entry, even if it was created but not recorded."""
    if entry['port_id'] is None:
        return next((port.id for port in networks.ports(context, server_ids=[server_id], key=entry['key'])), None)
    port_id: str = entry['port_id']
    return port_id


def updated(entries: Sequence[Entry], ports: Mapping[str, Port], names: Mapping[str, str]) -> list[dict[str, Any]]:
    """The entries in the state of their ports, without those whose ports are gone."""
    return [_entry(entry, ports[entry['port_id']], names) for entry in entries if entry['port_id'] in ports]


def group_names(networks: Networks, context: Context, ports: Iterable[Port]) -> Mapping[str, str]:
    ids = {group_id for port in ports for group_id in port.security_groups}
    return networks.security_group_names(context, ids) if ids else {}


def _entry(entry: Entry, port: Port, group_names: Mapping[str, str]) -> dict[str, Any]:
    # A port may have several addresses; its floating IP is shown with the first.
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
    """Replace the entry of that port in network_info by these entries, whatever happens to the others."""
    server = servers.get(connection, server_id, lock=True)
    if server is not None:
        others = [entry for entry in server.network_info if entry['port_id'] != port_id]
        servers.update(connection, server_id, {'network_info': [*others, *entries], 'updated_at': now})


def follow(connection: sa.Connection, server_id: str, before: Sequence[Entry], after: Sequence[Entry]) -> None:
    """Replace the entries *before* by *after* in network_info, and keep any others."""
    server = servers.get(connection, server_id, lock=True)
    if server is not None:
        current = {_name(entry): entry for entry in after}
        gone = {_name(entry) for entry in before} - set(current)
        kept = [entry for entry in server.network_info if _name(entry) not in gone]
        info = [current.get(_name(entry), entry) for entry in kept]
        servers.update(connection, server_id, {'network_info': info})


def _name(entry: Entry) -> str:
    """Identifies an interface of the server, whether its port exists or not."""
    name: str = entry.get('key') or entry['port_id']
    return name


# ------------------------------------------------------------------ work


@REFRESH.work
def refresh_addresses(job: Job) -> None:
    """Finish a refresh after a change of the server's addresses that was interrupted."""
    refresh(job)
    job.end()


def refresh(job: Job) -> None:
    """Read the ports of the server again."""
    Addresses(job.platform).refresh(job.elevated, [job.server.uuid])


@UNPLUG.work
def unplug(job: Job) -> None:
    """Unplug interfaces whose ports are gone from the machine."""
    if job.server.host is not None:
        job.driver.unplug(job.server, job.arguments['interfaces'])
    job.end()


def plan(job: Job) -> list[dict[str, Any]]:
    """The requested interfaces of the server, as entries of network_info without addresses."""
    wanted = job.arguments.get('networks')
    if wanted == 'none':
        return []
    if wanted == 'auto':
        wanted = [{'network_id': automatic(job).id}]
    if network_ids := outside(job):
        refuse_outside(job.platform.networks.networks(job.elevated, network_ids))
    return [planned(item, str(index)) for index, item in enumerate(wanted or ())]


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
    names = group_names(job.platform.networks, job.elevated, ports)
    return [_entry(entry, port, names) for entry, port in zip(entries, ports, strict=True)]


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
    for port_id in sorted(port.id for port in held(networks, context, server)):
        if port_id in given:
            networks.unbind_port(context, port_id)
        else:
            networks.delete_port(context, port_id)


def describe(job: Job, entries: Sequence[Entry]) -> None:
    """Record how the network service describes the server's ports now."""
    found = described(job.platform.networks, job.elevated, job.server.uuid, entries) if entries else []
    job.save(network_info=found)
    # A change between reading and recording would otherwise go unnoticed.
    if not found or described(job.platform.networks, job.elevated, job.server.uuid, found) == found:
        return
    refresh(job)
    if (current := job.store.query(servers.get, job.server.uuid)) is not None:
        job.server.network_info = current.network_info


def take_away(networks: Networks, context: Context, server_id: str, entry: Entry) -> None:
    """Delete the port if compute created it, else release it; nothing if the server does not hold it."""
    port_id = port_of(networks, context, server_id, entry)
    if port_id is None or port_id not in {port.id for port in networks.ports(context, server_ids=[server_id])}:
        return
    if entry['created']:
        networks.delete_port(context, port_id)
    else:
        networks.unbind_port(context, port_id)
