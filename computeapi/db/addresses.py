"""Searching in the addresses of servers, which are part of the JSON that describes their interfaces."""

from typing import Any

import sqlalchemy as sa

from computeapi.db import patterns
from computeapi.db.tables.servers import servers

ELEMENTS = {'sqlite': 'json_each', 'postgresql': 'json_array_elements'}


def matches(dialect: str, version: int, pattern: str) -> sa.ColumnElement[bool]:
    """Whether a fixed address of IP *version* is matched by the pattern, which is_bounded."""
    if dialect in ELEMENTS:
        fixed, source = _by_element(ELEMENTS[dialect])
    else:
        fixed, source = _by_table()
    found = sa.select(sa.literal(1)).select_from(*source).correlate(servers)
    return found.where(fixed['version'] == version, patterns.matches(fixed['address'], pattern, dialect)).exists()


def _by_element(function: str) -> tuple[dict[str, Any], list[Any]]:
    """A function makes rows of the interfaces, and then of the addresses of each."""
    interface = _rows(function, servers.c.network_info, 'interface')
    address = _rows(function, interface.c.value['addresses'], 'address')
    value = address.c.value
    return {'version': value['version'].as_integer(), 'address': value['address'].as_string()}, [interface, address]


def _rows(function: str, json: Any, name: str) -> sa.TableValuedAlias:
    rows: sa.Function[Any] = getattr(sa.func, function)(json)
    return rows.table_valued(sa.column('value', sa.JSON), name=name, joins_implicitly=True)


def _by_table() -> tuple[dict[str, Any], list[Any]]:
    """MariaDB and MySQL take one path to all addresses."""
    table = sa.text(
        "JSON_TABLE(servers.network_info, '$[*].addresses[*]' COLUMNS "
        "(version INT PATH '$.version', address VARCHAR(64) PATH '$.address')) AS address"
    )
    columns = {
        'version': sa.literal_column('address.version', sa.Integer),
        'address': sa.literal_column('address.address', sa.String),
    }
    return columns, [table]
