"""The disks of servers, as rows."""

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from computeapi.db import records
from computeapi.db.records import Among, Rows
from computeapi.db.tables.servers import BlockDevice, block_devices

# The statements of all queries, built once, because building one costs more than running it.
DEVICES = Rows(BlockDevice, block_devices)
DEVICES_OF = Among(DEVICES.select.order_by(block_devices.c.id), block_devices.c.server_id)


def of_servers(connection: sa.Connection, server_ids: Sequence[str]) -> list[BlockDevice]:
    """All disks of these servers, in the order in which they were attached."""
    return DEVICES.of(DEVICES_OF.rows(connection, server_ids))


def on_volume(connection: sa.Connection, volume_id: str) -> list[BlockDevice]:
    """The disks of servers that use this volume."""
    statement = DEVICES.select.where(block_devices.c.volume_id == volume_id).order_by(block_devices.c.id)
    return DEVICES.all(connection, statement)


def insert_all(connection: sa.Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert disks, with values for the same columns."""
    if rows:
        connection.execute(records.insertion(block_devices), rows)


def insert(connection: sa.Connection, values: Mapping[str, Any]) -> None:
    DEVICES.insert(connection, **values)


def update(connection: sa.Connection, device_id: str, values: Mapping[str, Any]) -> None:
    DEVICES.update(connection, values, uuid=device_id)


def set_names(connection: sa.Connection, names: Mapping[str, str]) -> None:
    """Set the device names of disks, by their UUIDs."""
    for device_id, name in names.items():
        update(connection, device_id, {'device_name': name})


def delete(connection: sa.Connection, device_id: str) -> None:
    DEVICES.delete(connection, uuid=device_id)
