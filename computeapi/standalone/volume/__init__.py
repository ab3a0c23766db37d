"""The volume service as clients know it: Cinder v3 on the local volumes."""

import functools

from computeapi.backends.volume.local import LocalVolumes
from computeapi.standalone.service import Authenticate, Claims, VersionPage, mounted
from computeapi.standalone.volume.about import CinderInformation
from computeapi.standalone.volume.actions import CinderVolumeActions
from computeapi.standalone.volume.attachments import CinderAttachments
from computeapi.standalone.volume.backends import CinderBackends
from computeapi.standalone.volume.backups import CinderBackups
from computeapi.standalone.volume.encryptions import CinderEncryptions, CinderVolumeEncryption
from computeapi.standalone.volume.groups import CinderGroups, CinderGroupSnapshots, CinderGroupTypes
from computeapi.standalone.volume.messages import CinderMessages
from computeapi.standalone.volume.metadata import CinderSnapshotMetadata, CinderVolumeMetadata
from computeapi.standalone.volume.qos import CinderQos
from computeapi.standalone.volume.quotas import CinderQuotaClasses, CinderQuotas
from computeapi.standalone.volume.service import CINDER, CinderApp, versions
from computeapi.standalone.volume.snapshots import CinderSnapshots
from computeapi.standalone.volume.transfers import CinderTransfers, CinderVolumeTransfers
from computeapi.standalone.volume.types import CinderDefaultTypes, CinderTypes
from computeapi.standalone.volume.volumes import CinderVolumeResources
from computeapi.versions import History
from computeapi.web.filters import REQUEST_ID_HEADERS, Microversion, WSGIApp

CONTROLLERS = (
    CinderInformation,
    CinderBackends,
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
    CinderGroupSnapshots,
    CinderMessages,
    CinderTypes,
    CinderDefaultTypes,
    CinderEncryptions,
    CinderVolumeEncryption,
    CinderQos,
    CinderQuotas,
    CinderQuotaClasses,
)


def cinder(
    volumes: LocalVolumes, authenticate: Authenticate, claims: Claims = None, history: History = CINDER
) -> WSGIApp:
    """Cinder v3 as a WSGI app, with these of its versions."""
    app = CinderApp([kind(volumes) for kind in CONTROLLERS], authenticate)
    versioned = Microversion(app, 'volume', history, legacy_header=None)
    document = functools.partial(versions, history)
    pages = VersionPage(app, document, status=300), VersionPage(app, document, '/v3')
    return mounted(app.minding(claims, versioned), '/v3', *pages, request_ids=REQUEST_ID_HEADERS)
