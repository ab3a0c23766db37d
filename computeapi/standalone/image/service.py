"""What the resources of the image service share, and its way to say no."""

import webob
import webob.exc

from computeapi.backends.image.local import LocalImages
from computeapi.standalone.service import ServiceApp, ServiceController
from computeapi.versions import History
from computeapi.web.request import Request

GLANCE = History({'2.7': 'Images can be hidden, and have secure hashes.'})
"""What came later is about several stores, caches and tasks."""


class GlanceController(ServiceController):
    """A resource of the image service."""

    history = GLANCE

    def __init__(self, images: LocalImages):
        self.images = images


class GlanceApp(ServiceApp):
    """Errors are pages of text or HTML."""

    def refusal(self, req: Request, status: int, message: str, error: Exception) -> webob.Response:
        return webob.exc.status_map[status](explanation=message)
