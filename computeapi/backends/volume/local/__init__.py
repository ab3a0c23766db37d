"""Volumes of this service itself: they are kept in the store, and hold no data but what is known about them."""

import functools

from computeapi.backends.volume.local.attachments import VolumeUse
from computeapi.backends.volume.local.backups import VolumeBackups
from computeapi.backends.volume.local.groups import VolumeGroups
from computeapi.backends.volume.local.qos import VolumeQos
from computeapi.backends.volume.local.snapshots import VolumeSnapshots
from computeapi.backends.volume.local.transfers import VolumeTransfers
from computeapi.backends.volume.local.volumes import VolumeLife


class LocalVolumes(VolumeLife, VolumeSnapshots, VolumeUse):
    """The volumes in this store; see `computeapi.backends.volume.Volumes`.

    What their REST API needs besides: `types`, `quotas`, what stands beside the volumes, and changes that only block
    storage itself makes.
    """

    def populate(self) -> None:
        """Make the volume types that are missing."""
        self.types.populate()

    @functools.cached_property
    def transfers(self) -> VolumeTransfers:
        return VolumeTransfers(self.store, self.clock, self.quotas)

    @functools.cached_property
    def backups(self) -> VolumeBackups:
        return VolumeBackups(self.store, self.clock, self.quotas)

    @functools.cached_property
    def groups(self) -> VolumeGroups:
        return VolumeGroups(self.store, self.clock, self.types, self.quotas)

    @functools.cached_property
    def qos(self) -> VolumeQos:
        return VolumeQos(self.store, self.clock)
