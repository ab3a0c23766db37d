"""Free-form labels of resources."""

from typing import Any

from computeapi import errors
from computeapi.standalone.face import FaceRequest, route
from computeapi.standalone.network.attributes import TAG, TAGS
from computeapi.standalone.network.resources import MEMBER
from computeapi.standalone.network.service import NetworkService
from computeapi.standalone.schema import Schema

ALL = Schema({'type': 'object', 'properties': {'tags': TAGS}, 'required': ['tags'], 'additionalProperties': False})
ONE = Schema({'type': 'object', 'properties': {'tag': TAG}})


class TagRoutes(NetworkService):
    @route('GET', f'{MEMBER}/tags')
    def list_tags(self, req: FaceRequest, kind: str, resource_id: str) -> dict[str, Any]:
        return {'tags': self.networks.get(req.context, kind, resource_id)['tags']}

    @route('PUT', f'{MEMBER}/tags')
    def replace_tags(self, req: FaceRequest, kind: str, resource_id: str) -> dict[str, Any]:
        ALL.check(req.document)
        self.networks.set_tags(req.context, kind, resource_id, req.document['tags'])
        return self.list_tags(req, kind, resource_id)

    @route('DELETE', f'{MEMBER}/tags')
    def delete_tags(self, req: FaceRequest, kind: str, resource_id: str) -> tuple[int, None]:
        self.networks.set_tags(req.context, kind, resource_id, [])
        return 204, None

    @route('GET', f'{MEMBER}/tags/{{tag}}')
    def show_tag(self, req: FaceRequest, kind: str, resource_id: str, tag: str) -> tuple[int, None]:
        if tag not in self.networks.get(req.context, kind, resource_id)['tags']:
            raise errors.NotFound(f'Tag {tag} could not be found.')
        return 204, None

    @route('PUT', f'{MEMBER}/tags/{{tag}}')
    def add_tag(self, req: FaceRequest, kind: str, resource_id: str, tag: str) -> tuple[int, None]:
        ONE.check({'tag': tag})
        self.networks.add_tag(req.context, kind, resource_id, tag)
        return 201, None

    @route('DELETE', f'{MEMBER}/tags/{{tag}}')
    def delete_tag(self, req: FaceRequest, kind: str, resource_id: str, tag: str) -> tuple[int, None]:
        if not self.networks.delete_tag(req.context, kind, resource_id, tag):
            raise errors.NotFound(f'Tag {tag} could not be found.')
        return 204, None
