"""Listing, showing, making, changing and deleting: the same for every kind of resource."""

from typing import Any

from computeapi import errors
from computeapi.standalone.face import FaceRequest, route
from computeapi.standalone.network import query
from computeapi.standalone.network.attributes import MAX_ITEMS, RESOURCES
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
        """One, or all of a list."""
        resource = RESOURCES[kind]
        if resource.key in req.document:
            return 201, self.create_all(req, kind, req.document[resource.key])
        facts = resource.facts(req.context, resource.create, req.document)
        return 201, self.single(req, kind, self.networks.create(req.context, kind, facts))

    def create_all(self, req: FaceRequest, kind: str, asked: Any) -> dict[str, Any]:
        resource, fields = RESOURCES[kind], query.fields(req)
        if not (isinstance(asked, list) and 1 <= len(asked) <= MAX_ITEMS):
            raise errors.Invalid(f'{resource.key} must be a list of 1 to {MAX_ITEMS} resources.')
        several = [resource.facts(req.context, resource.create, {resource.name: each}) for each in asked]
        made = self.networks.create_all(req.context, kind, several)
        return {resource.key: [resource.view(req.context, document, fields) for document in made]}

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
