"""Which versions there are, and the parts of v2 that this service leaves out."""

from typing import Any

from computeapi import errors
from computeapi.standalone.face import FaceRequest, route
from computeapi.standalone.image.documents import DESCRIPTIONS
from computeapi.standalone.image.service import ImageService

CURRENT = 7
"""v2.7 brought hidden images and secure hashes; what came later is about several stores, caches and tasks."""


class VersionRoutes(ImageService):
    @route('GET', '/', anonymous=True)
    def choices(self, req: FaceRequest) -> tuple[int, dict[str, Any]]:
        return 300, self.versions(req)

    # Clients that are given an endpoint with the version in it ask there what it is.
    @route('GET', '/versions', anonymous=True)
    @route('GET', '/v2', anonymous=True)
    @route('GET', '/v2/', anonymous=True)
    def versions(self, req: FaceRequest) -> dict[str, Any]:
        links = [{'rel': 'self', 'href': f'{req.application_url}/v2/'}]
        return {
            'versions': [
                {'id': f'v2.{minor}', 'status': 'CURRENT' if minor == CURRENT else 'SUPPORTED', 'links': links}
                for minor in range(CURRENT, -1, -1)
            ]
        }

    @route('GET', '/v2/schemas/{name}')
    def schema(self, req: FaceRequest, name: str) -> dict[str, Any]:
        try:
            return DESCRIPTIONS[name]
        except KeyError:
            raise errors.NotFound(f'There is no schema {name}.') from None

    # Clients of later versions ask, whatever the version here.
    @route('GET', '/v2/images/{image_id}/tasks')
    def tasks(self, req: FaceRequest, image_id: str) -> dict[str, Any]:
        self.images.get(req.context, image_id)
        return {'tasks': []}

    @route('GET', '/v2/info/import')
    def import_methods(self, req: FaceRequest) -> dict[str, Any]:
        return {'import-methods': {'description': 'Import methods available.', 'type': 'array', 'value': []}}
