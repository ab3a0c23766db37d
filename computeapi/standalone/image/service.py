"""What the chapters of the image face share."""

from collections.abc import Callable

import webob
import webob.exc

from computeapi.backends.image.local import LocalImages
from computeapi.context import Context
from computeapi.standalone.face import Face


class ImageService(Face):
    """A face on local images; readers may only read, and errors are pages of text or HTML."""

    name = 'image'
    writers = frozenset({'admin', 'manager', 'member'})

    def __init__(self, images: LocalImages, authenticate: Callable[[str], Context]):
        super().__init__(authenticate)
        self.images = images

    def fault(self, status: int, message: str) -> webob.Response:
        return webob.exc.status_map[status](explanation=message)
