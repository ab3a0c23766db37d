"""What servers know of their ports: the entries of `network_info`, which db.servers describes.

An entry whose port does not exist yet has no port_id and no mac_address.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from computeapi.backends.network import Networks, Port
from computeapi.context import Context
from computeapi.db import servers
from computeapi.db.servers import Server
from computeapi.states import VMState

Entry = Mapping[str, Any]


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
    return [entry_of(entry, ports[entry['port_id']], names) for entry in entries if entry['port_id'] in ports]


def group_names(networks: Networks, context: Context, ports: Iterable[Port]) -> Mapping[str, str]:
    ids = {group_id for port in ports for group_id in port.security_groups}
    return networks.security_group_names(context, ids) if ids else {}


def entry_of(entry: Entry, port: Port, group_names: Mapping[str, str]) -> dict[str, Any]:
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
