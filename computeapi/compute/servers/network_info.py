"""network_info: what a server knows of its interfaces, one entry for each port (see db.servers)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from computeapi.backends.network import Networks, Port
from computeapi.context import Context
from computeapi.db import servers as rows

Entry = Mapping[str, Any]


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


def described(networks: Networks, context: Context, server_id: str, entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """The entries of network_info as the network service describes their ports now, in the same order."""
    ports = {port.id: port for port in networks.ports(context, server_ids=[server_id])}
    known = [{**entry, 'port_id': port_of(networks, context, server_id, entry)} for entry in entries]
    return current(known, ports, group_names(networks, context, ports.values()))


def port_of(networks: Networks, context: Context, server_id: str, entry: Entry) -> str | None:
    """The port of the entry, also one that was made though nobody came to say so."""
    if entry['port_id'] is None:
        return next((port.id for port in networks.ports(context, server_ids=[server_id], key=entry['key'])), None)
    port_id: str = entry['port_id']
    return port_id


def current(entries: Sequence[Entry], ports: Mapping[str, Port], names: Mapping[str, str]) -> list[dict[str, Any]]:
    """The entries as their ports are, less those whose ports are gone."""
    return [_entry(entry, ports[entry['port_id']], names) for entry in entries if entry['port_id'] in ports]


def group_names(networks: Networks, context: Context, ports: Iterable[Port]) -> dict[str, str]:
    ids = {group_id for port in ports for group_id in port.security_groups}
    return {group.id: group.name for group in networks.security_groups(context, ids=ids)} if ids else {}


def _entry(entry: Entry, port: Port, group_names: Mapping[str, str]) -> dict[str, Any]:
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


def replace(connection: sa.Connection, server_id: str, port_id: str, entries: Sequence[Entry], now: datetime) -> None:
    """Put these entries of network_info in the place of that of the port, whatever else happens to the others."""
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
