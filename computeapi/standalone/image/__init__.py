"""The image service as clients know it: Glance v2 on the local images."""

from computeapi.backends.image.local import LocalImages
from computeapi.standalone.image.images import GlanceImageResources
from computeapi.standalone.image.members import GlanceMembers
from computeapi.standalone.image.service import GlanceApp, GlanceInformation, versions
from computeapi.standalone.service import Authenticate, Claims, VersionPage, mounted
from computeapi.web.filters import WSGIApp

CONTROLLERS = (GlanceImageResources, GlanceMembers, GlanceInformation)


def glance(images: LocalImages, authenticate: Authenticate, claims: Claims = None) -> WSGIApp:
    """Glance v2 as a WSGI app."""
    app = GlanceApp(images, [kind(images) for kind in CONTROLLERS], authenticate)
    # Clients whose endpoint includes the version ask for the versions there.
    pages = [VersionPage(app, versions, path) for path in ('/versions', '/v2')]
    return mounted(app.minding(claims), '/v2', VersionPage(app, versions, status=300), *pages)
