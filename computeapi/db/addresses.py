"""The fixed addresses of servers, as rows: copied from their network_info for searching."""

from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from computeapi.db import patterns
from computeapi.db.records import insertion
from computeapi.db.tables.servers import server_addresses as addresses
from computeapi.db.tables.servers import servers

OF_SERVER = addresses.c.server_id == sa.bindparam('server')
KNOWN = sa.select(addresses.c.address).where(OF_SERVER)
FORGOTTEN = sa.delete(addresses).where(OF_SERVER)


def held(server_id: str, network_info: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows of a server with these interfaces; see db.servers.Server."""
    versions = {each['address']: each['version'] for entry in network_info for each in entry.get('addresses', ())}
    return [{'server_id': server_id, 'address': address, 'version': version} for address, version in versions.items()]


def update(connection: sa.Connection, server_id: str, network_info: Iterable[Mapping[str, Any]]) -> None:
    """Update the server's rows to these interfaces, if they differ: most changes do not affect them."""
    rows = held(server_id, network_info)
    known = set(connection.scalars(KNOWN, {'server': server_id}))
    if known == {row['address'] for row in rows}:
        return
    if known:
        connection.execute(FORGOTTEN, {'server': server_id})
    if rows:
        connection.execute(insertion(addresses), rows)


def match(dialect: str, version: int, pattern: str) -> sa.ColumnElement[bool]:
    """Whether a server has an address of IP *version* that matches the pattern, which is_bounded must accept."""
    its = addresses.c.server_id == servers.c.uuid
    # The sum keeps SQLite from using an index that would scan all addresses of that version for each server.
    of_version = addresses.c.version + 0 == version
    return sa.exists().where(its, of_version, patterns.matches(addresses.c.address, pattern, dialect))
