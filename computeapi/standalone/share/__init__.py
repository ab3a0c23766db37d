"""The share service as clients know it: Manila v2 on the local shares."""

from computeapi.backends.share.local import LocalShares
from computeapi.standalone.service import Authenticate, VersionPage, mounted
from computeapi.standalone.share.access import ManilaAccessRules, ManilaShareActions
from computeapi.standalone.share.service import LEGACY_HEADER, MANILA, ManilaApp, versions
from computeapi.standalone.share.shares import ManilaShares, ManilaTypes
from computeapi.web.filters import Microversion, WSGIApp

CONTROLLERS = (ManilaShares, ManilaShareActions, ManilaAccessRules, ManilaTypes)


def manila(shares: LocalShares, authenticate: Authenticate) -> WSGIApp:
    """Manila v2 as a WSGI app."""
    app = ManilaApp([kind(shares) for kind in CONTROLLERS], authenticate)
    versioned = Microversion(app, 'shared-file-system', MANILA, legacy_header=LEGACY_HEADER)
    return mounted(versioned, '/v2', VersionPage(app, versions, status=300), VersionPage(app, versions, '/v2'))
