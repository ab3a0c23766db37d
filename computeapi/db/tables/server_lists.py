"""The indexes of the servers table for lists: one for each key that servers are sorted or searched by.

Each index has `deleted_at`, the key, and the age of servers with the same key, in this order, so that it serves both
sorting by the key and searching by it in the default order. Its last column is the project, which can then be checked
without reading the row.
"""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from computeapi.db.tables.types import CodePoints, Text, metadata

LIVING = 'deleted_at'
TIES = ('created_at', 'id')
PROJECT = 'project_id'

KEYS = (
    *('project_id', 'host', 'node', 'availability_zone', 'image_id', 'flavorid', 'user_id', 'key_name', 'vm_state'),
    *('folded_name', 'hostname', 'uuid', 'launched_at', 'updated_at', 'memory_mb', 'root_device_name', 'power_state'),
    *('launch_index', 'progress', 'config_drive', 'disk_config'),
)
"""Keys that most servers have, or that have many different values."""
SELDOM = ('task_state', 'locked_by', 'access_ip_v4', 'access_ip_v6', 'terminated_at', 'kernel_id', 'ramdisk_id')
"""Keys that most servers lack: their indexes are partial, if the database supports that."""


def columns() -> list[sa.Column[str]]:
    """Redundant columns for searching: the name in lower case, and the ID of the flavor; see `derived`."""
    return [
        sa.Column('folded_name', CodePoints(255), nullable=False, server_default=''),
        sa.Column('flavorid', Text(255), nullable=False, server_default=''),
    ]


def derived(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values for a row, including the derived ones."""
    row = {**values}
    if 'name' in row:
        row['folded_name'] = folded(row['name'])
    if 'flavor' in row:
        row['flavorid'] = row['flavor']['flavorid']
    return row


def folded(name: str) -> str:
    """The name in lower case, truncated because lowering can make it longer."""
    return name.lower()[:255]


def indexes() -> list[sa.Index]:
    return [
        sa.Index('ix_servers_living', LIVING, *TIES, PROJECT),
        sa.Index('ix_servers_of_project', PROJECT, 'id'),
        _partial('ix_servers_gone', LIVING, *TIES, PROJECT),
        *(sa.Index(name_of(key), *_along(key)) for key in KEYS),
        *(_partial(name_of(key), key, *_along(key)) for key in SELDOM),
        sa.Index(None, 'reservation_id'),
        sa.Index(None, 'server_group_id'),
    ]


def name_of(key: str) -> str:
    """The name of a key's index."""
    return f'ix_servers_by_{key}'


def _along(key: str) -> list[str]:
    return list(dict.fromkeys((LIVING, key, *TIES, PROJECT)))


def _partial(name: str, present: str, *columns: str) -> sa.Index:
    return sa.Index(name, *columns, sqlite_where=sa.text(f'{present} IS NOT NULL'))


@sa.event.listens_for(metadata, 'before_create')
def _tell_postgresql(target: sa.MetaData, connection: sa.Connection, **kwargs: Any) -> None:
    """Make PostgreSQL's indexes partial. Doing so at definition would make every process load that dialect."""
    if connection.dialect.name == 'postgresql':
        for index in target.tables['servers'].indexes:
            index.dialect_options['postgresql']['where'] = index.dialect_options['sqlite']['where']
