"""Filling volumes, snapshots and backups with data, where they have any."""

from collections.abc import Callable
from datetime import datetime

from computeapi.backends.volume.local.files import Contents, FileFilling, SimulatedData, VolumeFiles
from computeapi.context import Context
from computeapi.db import volumes
from computeapi.db.engine import Store
from computeapi.db.resource_table import ResourceTable
from computeapi.db.volumes import BACKUPS, HELD_STATUSES, SNAPSHOTS, VOLUMES

PASSING = ('creating', 'downloading', 'restoring-backup', 'reverting', 'uploading')
"""Statuses that last until a file is filled, or read."""


class Filler:
    """files: None if nothing has data."""

    def __init__(self, store: Store, clock: Callable[[], datetime], files: VolumeFiles | None):
        self.store, self.clock, self.files = store, clock, files

    def status(self, contents: Contents | None, settled: str = 'available') -> str:
        """The status of a new thing with such contents; None: it is blank."""
        return settled if self.files is None or contents is None else contents.passing

    def begin(self, thing_id: str, contents: Contents | None, size: int, status: str) -> FileFilling | None:
        """Called at the end of the transaction that creates the thing: creates a blank file, or locks the one to be
        filled."""
        if self.files is None or status == 'error':
            return None
        if contents is None:
            self.files.make_blank(thing_id, size)
            return None
        return self.files.begin(thing_id, contents)

    def giving(self, thing_id: str) -> FileFilling | SimulatedData:
        """Lock the data while they are read for an image."""
        if self.files is None:
            return SimulatedData(f'{thing_id} at {self.clock().isoformat()}')
        return self.files.begin(thing_id)

    def fill(
        self,
        context: Context,
        filling: FileFilling | None,
        contents: Contents | None,
        size: int,
        table: ResourceTable,
        settled: str = 'available',
        failed: str = 'error',
    ) -> None:
        """Called after the transaction. settled, failed: the final status."""
        if filling is not None and contents is not None:
            filling.start(
                contents,
                context.elevated(),
                size,
                lambda worked: self.settle(table, filling.thing_id, settled if worked else failed),
            )

    def settle(self, table: ResourceTable, thing_id: str, status: str) -> None:
        """Set the final status, unless the status was changed meanwhile. The status of an attached volume follows from
        its attachments, which may have changed. If the record was deleted, the file is deleted, too."""
        with self.store.write() as connection:
            table.lock(connection, thing_id)
            there = table.select(connection, table.among([thing_id]), *table.matches({'status': list(PASSING)}))
            if there:
                if table is VOLUMES and status in HELD_STATUSES:
                    status = volumes.held_status(connection, thing_id)
                table.update(connection, thing_id, {'status': status, 'updated_at': self.clock()})
            gone = not there and not table.select(connection, table.among([thing_id]))
        if gone:
            self.delete([thing_id])

    def delete(self, thing_ids: list[str]) -> None:
        if self.files is not None:
            for thing_id in thing_ids:
                self.files.delete(thing_id)

    def grow(self, thing_id: str, size: int) -> None:
        if self.files is not None:
            self.files.grow(thing_id, size)

    def recover(self) -> None:
        """Set the status of what no process fills any more to error, and delete orphaned files."""
        if self.files is None:
            return
        found = set(self.files.left())
        for table in (VOLUMES, SNAPSHOTS, BACKUPS):
            with self.store.read() as connection:
                left = table.select(connection, *table.matches({'status': list(PASSING)}))
                found -= {facts['id'] for facts in table.select(connection, table.among(found))}
            for facts in left:
                if not self.files.is_being_filled(facts['id']):
                    # Data that were only read are unchanged.
                    self.settle(table, facts['id'], 'available' if facts['status'] == 'uploading' else 'error')
        self.delete(list(found))
