"""Attributes of servers that are changed at once, in any state: name, description, hostname, pinned zone, ..."""

from typing import Any

from computeapi.compute.platform import Platform
from computeapi.context import Context
from computeapi.db import servers
from computeapi.db.servers import Server
from computeapi.errors import Conflict, ServerNotFound


class ServerAttributes:
    """Changes what needs no work on a host."""

    def __init__(self, platform: Platform):
        self.store, self.clock, self.notifications = platform.store, platform.clock, platform.notifications

    def update(self, context: Context, server: Server, **changes: Any) -> Server:
        """Change columns of the row that nothing else depends on; returns the updated server.

        Conflict for a pinned_availability_zone that the server cannot be pinned to.
        """
        if not changes:
            return server
        zone = changes.get('pinned_availability_zone')
        values = {**changes, 'updated_at': self.clock()}
        with self.store.write() as connection:
            current = servers.get(connection, server.uuid, lock=True) if zone is not None else None
            if current is not None:
                check_pin(current, zone)
            if not servers.change(connection, server.uuid, values, task_states=None):
                raise ServerNotFound(id=server.uuid)
            renamed = changes.get('name', server.name) != server.name
            old_name = server.name if renamed else None
            self.notifications.updated(connection, context, server.uuid, old_name=old_name)
        for name, value in values.items():
            setattr(server, name, value)
        return server


def check_pin(server: Server, zone: Any) -> None:
    """Conflict unless the server is pinned to that zone already, or is pinned to none and is in that one."""
    pinned, current = server.pinned_availability_zone, server.availability_zone
    if zone != (current if pinned is None else pinned):
        reason = f'it is in {current or "none"}' if pinned is None else f'unpin it from {pinned} first'
        raise Conflict(f'Cannot pin instance {server.uuid} to availability zone {zone}: {reason}.')
