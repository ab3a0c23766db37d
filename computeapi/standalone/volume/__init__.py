"""The volume service as clients know it: Cinder v3 on the local volumes."""

from computeapi.backends.volume.local import LocalVolumes
from computeapi.standalone.service import Authenticate, VersionPage, mounted
from computeapi.standalone.volume.about import CinderInformation
from computeapi.standalone.volume.actions import CinderVolumeActions
from computeapi.standalone.volume.attachments import CinderAttachments
from computeapi.standalone.volume.backups import CinderBackups
from computeapi.standalone.volume.encryptions import CinderEncryptions
from computeapi.standalone.volume.groups import CinderGroups, CinderGroupTypes
from computeapi.standalone.volume.messages import CinderMessages
from computeapi.standalone.volume.metadata import CinderSnapshotMetadata, CinderVolumeMetadata
from computeapi.standalone.volume.qos import CinderQos
from computeapi.standalone.volume.quotas import CinderQuotaClasses, CinderQuotas
from computeapi.standalone.volume.service import CINDER, CinderApp, versions
from computeapi.standalone.volume.snapshots import CinderSnapshots
from computeapi.standalone.volume.transfers import CinderTransfers, CinderVolumeTransfers
from computeapi.standalone.volume.types import CinderTypes
from computeapi.standalone.volume.volumes import CinderVolumeResources
from computeapi.web.filters import Microversion, WSGIApp

CONTROLLERS = (
    CinderInformation,
    CinderVolumeResources,
    CinderVolumeMetadata,
    CinderVolumeActions,
    CinderSnapshots,
    CinderSnapshotMetadata,
    CinderAttachments,
    CinderTransfers,
    CinderVolumeTransfers,
    CinderBackups,
    CinderGroupTypes,
    CinderGroups,
    CinderMessages,
    CinderTypes,
    CinderEncryptions,
    CinderQos,
    CinderQuotas,
    CinderQuotaClasses,
)


def cinder(volumes: LocalVolumes, authenticate: Authenticate) -> WSGIApp:
    """Cinder v3 as a WSGI app."""
    app = CinderApp([kind(volumes) for kind in CONTROLLERS], authenticate)
    versioned = Microversion(app, 'volume', CINDER, legacy_header=None)
    return mounted(versioned, '/v3', VersionPage(app, versions, status=300), VersionPage(app, versions, '/v3'))
