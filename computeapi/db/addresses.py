"""The fixed addresses of servers, as rows: what their network_info says, to be searched in."""

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
    """The rows of a server whose interfaces are these; see db.servers.Server."""
    versions = {each['address']: each['version'] for entry in network_info for each in entry.get('addresses', ())}
    return [{'server_id': server_id, 'address': address, 'version': version} for address, version in versions.items()]


def keep(connection: sa.Connection, server_id: str, network_info: Iterable[Mapping[str, Any]]) -> None:
    """Let the rows of the server be those of these interfaces: most changes leave them as they are."""
    rows = held(server_id, network_info)
    known = set(connection.scalars(KNOWN, {'server': server_id}))
    if known == {row['address'] for row in rows}:
        return
    if known:
        connection.execute(FORGOTTEN, {'server': server_id})
    if rows:
        connection.execute(insertion(addresses), rows)


def match(dialect: str, version: int, pattern: str) -> sa.ColumnElement[bool]:
    """Whether a server has an address of IP *version* that is matched by the pattern, which is_bounded."""
    its = addresses.c.server_id == servers.c.uuid
    # As a sum it is in no index: SQLite would look through all addresses of that version for each server.
    of_version = addresses.c.version + 0 == version
    return sa.exists().where(its, of_version, patterns.matches(addresses.c.address, pattern, dialect))
