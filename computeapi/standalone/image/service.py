"""Common parts of the image resources: versions, schemas and errors."""

from collections.abc import Iterable
from typing import Any

import webob
import webob.exc

from computeapi import errors
from computeapi.backends.image.local import LocalImages
from computeapi.standalone.access import CALLER
from computeapi.standalone.image.documents import DESCRIPTIONS
from computeapi.standalone.service import Authenticate, ServiceApp, ServiceController
from computeapi.versions import History
from computeapi.web.controller import operation
from computeapi.web.request import Request
from computeapi.web.routing import Endpoint

GLANCE = History({'2.7': 'Images can be hidden, and have secure hashes.'})
"""Later versions are about multiple stores, caches and tasks."""


class GlanceController(ServiceController):
    """A resource of the image service."""

    history = GLANCE

    def __init__(self, images: LocalImages):
        self.images = images


class GlanceApp(ServiceApp):
    """Errors are text or HTML pages."""

    service_types = ('image',)
    on_system = False
    statuses = ((errors.RangeNotSatisfiable, 416), *ServiceApp.statuses)

    def __init__(self, images: LocalImages, controllers: Iterable[GlanceController], authenticate: Authenticate):
        super().__init__(controllers, authenticate)
        self.images = images

    def answer(self, req: Request, endpoint: Endpoint, parameters: dict[str, Any]) -> webob.Response:
        """Like Glance, answer 404 for an image that the caller cannot see, whatever the caller may do."""
        image_id = parameters.get('image_id')
        try:
            return super().answer(req, endpoint, parameters)
        except errors.Forbidden:
            if image_id is not None:
                self.images.get(req.context, image_id)
            raise

    @classmethod
    def refusal(cls, req: Request, status: int, message: str, error: Exception) -> webob.Response:
        return webob.exc.status_map[status](explanation=message)


def versions(url: str) -> dict[str, Any]:
    links = [{'rel': 'self', 'href': f'{url}/v2/'}]
    return {
        'versions': [
            {'id': f'v2.{minor}', 'status': 'CURRENT' if minor == GLANCE.max.minor else 'SUPPORTED', 'links': links}
            for minor in range(GLANCE.max.minor, -1, -1)
        ]
    }


class GlanceInformation(GlanceController):
    """The schemas of documents, and empty answers for the parts of v2 that this service leaves out."""

    @operation('GET', '/schemas/{name}', policy=CALLER)
    def schema(self, req: Request, name: str) -> dict[str, Any]:
        if name not in DESCRIPTIONS:
            raise errors.NotFound(f'There is no schema {name}.')
        return DESCRIPTIONS[name]

    @operation('GET', '/schemas/metadefs/{name}', policy=CALLER)
    def definition_schema(self, req: Request, name: str) -> dict[str, Any]:
        """Show a metadata definition schema, which clients read before they list the (empty) definitions."""
        return self.schema(req, f'metadefs/{name}')

    # Clients of later versions call this without checking the version.
    @operation('GET', '/images/{image_id}/tasks', policy=CALLER)
    def tasks(self, req: Request, image_id: str) -> dict[str, Any]:
        self.images.get(req.context, image_id)
        return {'tasks': []}

    @operation('GET', '/tasks', policy=CALLER)
    def all_tasks(self, req: Request) -> dict[str, Any]:
        """List no tasks: requests are completed before they are answered."""
        return {'tasks': [], 'first': '/v2/tasks', 'schema': '/v2/schemas/tasks'}

    @operation('GET', '/metadefs/namespaces', policy=CALLER)
    def namespaces(self, req: Request) -> dict[str, Any]:
        """List no namespaces: there are no metadata definitions."""
        path = '/v2/metadefs/namespaces'
        return {'namespaces': [], 'first': path, 'schema': '/v2/schemas/metadefs/namespaces'}

    @operation('GET', '/metadefs/resource_types', policy=CALLER)
    def resource_types(self, req: Request) -> dict[str, Any]:
        return {'resource_types': []}

    @operation('GET', '/info/import', policy=CALLER)
    def import_methods(self, req: Request) -> dict[str, Any]:
        return {'import-methods': {'description': 'Import methods available.', 'type': 'array', 'value': []}}
