"""Volumes of this service itself: they are kept in the store, and hold no data but what is known about them."""

from computeapi.backends.volume.local.attachments import VolumeUse
from computeapi.backends.volume.local.snapshots import VolumeSnapshots
from computeapi.backends.volume.local.volumes import VolumeLife


class LocalVolumes(VolumeLife, VolumeSnapshots, VolumeUse):
    """The volumes in this store; see `computeapi.backends.volume.Volumes`.

    What their REST API needs besides: `types`, `quotas`, and changes that only block storage itself makes.
    """

    def populate(self) -> None:
        """Make the volume types that are missing."""
        self.types.populate()
