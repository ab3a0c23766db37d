"""What the resources of the image service share, and its way to say no."""

import webob
import webob.exc

from computeapi.backends.image.local import LocalImages
from computeapi.standalone.service import ServiceApp, ServiceController
from computeapi.web.request import Request


class GlanceController(ServiceController):
    """A resource of the image service."""

    def __init__(self, images: LocalImages):
        self.images = images


class GlanceApp(ServiceApp):
    """Errors are pages of text or HTML."""

    def refusal(self, req: Request, status: int, message: str, error: Exception) -> webob.Response:
        return webob.exc.status_map[status](explanation=message)
