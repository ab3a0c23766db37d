"""The share service as clients know it: Manila v2 on the local shares."""

import functools

from computeapi.backends.share.local import LocalShares
from computeapi.standalone.service import Authenticate, Claims, VersionPage, mounted
from computeapi.standalone.share.about import ManilaInformation
from computeapi.standalone.share.access import ManilaAccessRules, ManilaShareActions
from computeapi.standalone.share.metadata import ManilaMetadata
from computeapi.standalone.share.service import LEGACY_HEADER, MANILA, ManilaApp, versions
from computeapi.standalone.share.shares import ManilaShares, ManilaTypes
from computeapi.versions import History
from computeapi.web.filters import REQUEST_ID_HEADERS, Microversion, WSGIApp

CONTROLLERS = (ManilaInformation, ManilaShares, ManilaMetadata, ManilaShareActions, ManilaAccessRules, ManilaTypes)


def manila(
    shares: LocalShares, authenticate: Authenticate, claims: Claims = None, history: History = MANILA
) -> WSGIApp:
    """Manila v2 as a WSGI app, with these of its versions."""
    app = ManilaApp([kind(shares) for kind in CONTROLLERS], authenticate)
    versioned = Microversion(app, 'shared-file-system', history, legacy_header=LEGACY_HEADER)
    document = functools.partial(versions, history)
    pages = VersionPage(app, document, status=300), VersionPage(app, document, '/v2')
    return mounted(app.minding(claims, versioned), '/v2', *pages, request_ids=REQUEST_ID_HEADERS)
