"""Listing, showing, making, changing and deleting: the same for every kind of resource."""

from typing import Any

from computeapi.standalone.face import FaceRequest, route
from computeapi.standalone.network import query
from computeapi.standalone.network.attributes import RESOURCES
from computeapi.standalone.network.service import NetworkService

COLLECTION = f'/v2.0/{{kind:{"|".join(RESOURCES)}}}'
MEMBER = f'{COLLECTION}/{{resource_id}}'


class ResourceRoutes(NetworkService):
    @route('GET', COLLECTION)
    def list_resources(self, req: FaceRequest, kind: str) -> dict[str, Any]:
        resource, page, fields = RESOURCES[kind], query.page(req), query.fields(req)
        found = self.networks.find(req.context, kind, query.filters(req), page)
        views = [resource.view(req.context, document, fields) for document in found]
        return {resource.key: views, **query.links(req, resource.key, found, page.limit)}

    @route('GET', MEMBER)
    def show_resource(self, req: FaceRequest, kind: str, resource_id: str) -> dict[str, Any]:
        document = self.networks.get(req.context, kind, resource_id)
        return self.single(req, kind, document)

    @route('POST', COLLECTION)
    def create_resource(self, req: FaceRequest, kind: str) -> tuple[int, dict[str, Any]]:
        facts = RESOURCES[kind].facts(req.context, RESOURCES[kind].create, req.document)
        return 201, self.single(req, kind, self.networks.create(req.context, kind, facts))

    @route('PUT', MEMBER)
    def update_resource(self, req: FaceRequest, kind: str, resource_id: str) -> dict[str, Any]:
        facts = RESOURCES[kind].facts(req.context, RESOURCES[kind].update, req.document)
        return self.single(req, kind, self.networks.update(req.context, kind, resource_id, facts))

    @route('DELETE', MEMBER)
    def delete_resource(self, req: FaceRequest, kind: str, resource_id: str) -> tuple[int, None]:
        self.networks.delete(req.context, kind, resource_id)
        return 204, None

    def single(self, req: FaceRequest, kind: str, document: dict[str, Any]) -> dict[str, Any]:
        return {RESOURCES[kind].name: RESOURCES[kind].view(req.context, document, query.fields(req))}
