"""The built-in volume service: records in the store and, where guests run, data in files."""

import builtins
import functools
from typing import Any

from computeapi.backends.volume import ALMOST_DONE, Snapshot
from computeapi.backends.volume.local.attachments import VolumeUse
from computeapi.backends.volume.local.backups import VolumeBackups
from computeapi.backends.volume.local.groups import VolumeGroups
from computeapi.backends.volume.local.qos import VolumeQos
from computeapi.backends.volume.local.snapshots import VolumeSnapshots
from computeapi.backends.volume.local.transfers import VolumeTransfers
from computeapi.backends.volume.local.uploading import VolumeUpload
from computeapi.backends.volume.local.volumes import VolumeLife
from computeapi.context import Context


class LocalVolumes(VolumeLife, VolumeUse, VolumeUpload):
    """The volumes in this store; implements `computeapi.backends.volume.Volumes`.

    For the REST API it also has `types`, `quotas`, the other resources, and the changes that only block storage itself
    makes.
    """

    def populate(self) -> None:
        """Create the volume types that are missing."""
        self.types.populate()

    def recover(self) -> None:
        """Set what dead processes left unfilled to error, and restore the exports."""
        self.filler.recover()
        self.upkeep()

    @functools.cached_property
    def snapshots(self) -> VolumeSnapshots:
        return VolumeSnapshots(self.store, self.clock, self.quotas, self.filler)

    @functools.cached_property
    def transfers(self) -> VolumeTransfers:
        return VolumeTransfers(self.store, self.clock, self.quotas)

    @functools.cached_property
    def backups(self) -> VolumeBackups:
        return VolumeBackups(self.store, self.clock, self.quotas, self.filler)

    @functools.cached_property
    def groups(self) -> VolumeGroups:
        return VolumeGroups(self.store, self.clock, self.types, self.quotas, self.filler)

    @functools.cached_property
    def qos(self) -> VolumeQos:
        return VolumeQos(self.store, self.clock)

    # ------------------------------------------------------------ snapshots, as compute uses them

    def get_snapshot(self, context: Context, snapshot_id: str) -> Snapshot:
        return self.snapshots.get(context, snapshot_id)

    def list_snapshots(self, context: Context) -> builtins.list[Snapshot]:
        return self.snapshots.list(context)

    def create_snapshot(self, context: Context, volume_id: str, **kwargs: Any) -> Snapshot:
        return self.snapshots.create(context, volume_id, **kwargs)

    def delete_snapshot(self, context: Context, snapshot_id: str) -> None:
        self.snapshots.delete(context, snapshot_id)

    def report_snapshot(self, context: Context, snapshot_id: str, status: str) -> None:
        self.snapshots.report(context, snapshot_id, status, ALMOST_DONE)
