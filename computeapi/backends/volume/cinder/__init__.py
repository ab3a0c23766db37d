"""The volumes of a Cinder."""

from computeapi.backends.volume.cinder.attachments import CinderUse
from computeapi.backends.volume.cinder.snapshots import CinderSnapshotLife
from computeapi.backends.volume.cinder.volumes import CinderVolumeLife


class CinderVolumes(CinderVolumeLife, CinderUse, CinderSnapshotLife):
    """The volumes of a Cinder; see `computeapi.backends.volume.Volumes`."""
