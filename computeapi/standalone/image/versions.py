"""Which versions there are, and the parts of v2 that this service leaves out."""

from typing import Any

from computeapi import errors
from computeapi.standalone.access import CALLER
from computeapi.standalone.image.documents import DESCRIPTIONS
from computeapi.standalone.image.service import GLANCE, GlanceController
from computeapi.web.controller import operation
from computeapi.web.request import Request


def versions(url: str) -> dict[str, Any]:
    links = [{'rel': 'self', 'href': f'{url}/v2/'}]
    return {
        'versions': [
            {'id': f'v2.{minor}', 'status': 'CURRENT' if minor == GLANCE.max.minor else 'SUPPORTED', 'links': links}
            for minor in range(GLANCE.max.minor, -1, -1)
        ]
    }


class GlanceInformation(GlanceController):
    @operation('GET', '/schemas/{name}', policy=CALLER)
    def schema(self, req: Request, name: str) -> dict[str, Any]:
        if name not in DESCRIPTIONS:
            raise errors.NotFound(f'There is no schema {name}.')
        return DESCRIPTIONS[name]

    # Clients of later versions ask, whatever the version here.
    @operation('GET', '/images/{image_id}/tasks', policy=CALLER)
    def tasks(self, req: Request, image_id: str) -> dict[str, Any]:
        self.images.get(req.context, image_id)
        return {'tasks': []}

    @operation('GET', '/info/import', policy=CALLER)
    def import_methods(self, req: Request) -> dict[str, Any]:
        return {'import-methods': {'description': 'Import methods available.', 'type': 'array', 'value': []}}
