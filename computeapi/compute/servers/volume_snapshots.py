"""Snapshots of volumes that only the machine which uses them can take, for volume services that ask for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from computeapi.compute.tasks import Tasks
from computeapi.context import Context
from computeapi.db import servers as rows
from computeapi.db.engine import Store
from computeapi.errors import Invalid


class AssistedSnapshots:
    """Errors: Invalid for a volume that no server on a host has."""

    def __init__(self, store: Store, tasks: Tasks):
        self.store, self.tasks = store, tasks

    def create(self, context: Context, volume_id: str, facts: Mapping[str, Any]) -> None:
        """Let the server that has the volume write to a new file from now on; *facts* name it."""
        self._queue(context, 'create_volume_snapshot', volume_id, {'facts': dict(facts)})

    def delete(self, context: Context, volume_id: str, snapshot_id: str, facts: Mapping[str, Any]) -> None:
        """Let the server that has the volume merge the files that *facts* name."""
        arguments = {'snapshot_id': snapshot_id, 'facts': dict(facts)}
        self._queue(context, 'delete_volume_snapshot', volume_id, arguments)

    def _queue(self, context: Context, kind: str, volume_id: str, arguments: dict[str, Any]) -> None:
        with self.store.write() as connection:
            devices = rows.on_volume(connection, volume_id)
            if not devices:
                raise Invalid(f'No volume Block Device Mapping with id {volume_id}.')
            if len(devices) > 1:
                raise Invalid(f'Volume {volume_id} is attached to several servers.')
            server = rows.get(connection, devices[0].server_id)
            if server is None or server.host is None:
                raise Invalid(f'Instance {devices[0].server_id} is not ready')
            self.tasks.add(connection, kind, server.uuid, context, {'volume_id': volume_id, **arguments})
        self.tasks.wake()
