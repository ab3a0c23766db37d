"""The image service as clients know it: Glance v2 on the local images."""

from computeapi.standalone.image.images import ImageRoutes
from computeapi.standalone.image.members import MemberRoutes
from computeapi.standalone.image.versions import VersionRoutes


class ImageFace(VersionRoutes, ImageRoutes, MemberRoutes):
    """Glance v2 as a WSGI app."""
