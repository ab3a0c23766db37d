"""The volume service as clients know it: Cinder v3 on the local volumes."""

from computeapi.standalone.volume.about import AboutRoutes
from computeapi.standalone.volume.actions import ActionRoutes
from computeapi.standalone.volume.attachments import AttachmentRoutes
from computeapi.standalone.volume.metadata import MetadataRoutes
from computeapi.standalone.volume.quotas import QuotaRoutes
from computeapi.standalone.volume.snapshots import SnapshotRoutes
from computeapi.standalone.volume.types import TypeRoutes
from computeapi.standalone.volume.volumes import VolumeRoutes


class VolumeFace(
    AboutRoutes,
    VolumeRoutes,
    MetadataRoutes,
    ActionRoutes,
    SnapshotRoutes,
    AttachmentRoutes,
    TypeRoutes,
    QuotaRoutes,
):
    """Cinder v3 as a WSGI app."""
