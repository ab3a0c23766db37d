"""The operations that every kind of resource has: list, show, create, update, delete and tag."""

import re
import types
from typing import Any

from computeapi import errors
from computeapi.standalone.access import CALLER, WRITER
from computeapi.standalone.network import query
from computeapi.standalone.network.attributes import MAX_ITEMS, RESOURCES, TAG, TAGS, NeutronResource
from computeapi.standalone.network.service import NeutronController
from computeapi.standalone.schema import Schema, having
from computeapi.web.controller import operation
from computeapi.web.request import Request

OBJECT = {'type': 'object'}
ALL_TAGS = having({'tags': TAGS}, 'tags', additionalProperties=False)
REVISION = re.compile(r'revision_number=([0-9]{1,9})')
ONE_TAG = Schema(having({'tag': TAG}))


class NeutronTags(NeutronController):
    """The tags of resources of one kind."""

    kind: str

    @operation('GET', '/{resource_id}/tags', policy=CALLER)
    def list_tags(self, req: Request, resource_id: str) -> dict[str, Any]:
        return {'tags': self.networks.get(req.context, self.kind, resource_id)['tags']}

    @operation('PUT', '/{resource_id}/tags', policy=WRITER, body=ALL_TAGS)
    def replace_tags(self, req: Request, resource_id: str, body: dict[str, Any]) -> dict[str, Any]:
        self.networks.set_tags(req.context, self.kind, resource_id, body['tags'])
        return self.list_tags(req, resource_id)

    @operation('DELETE', '/{resource_id}/tags', policy=WRITER, status=204)
    def delete_tags(self, req: Request, resource_id: str) -> None:
        self.networks.set_tags(req.context, self.kind, resource_id, [])

    @operation('GET', '/{resource_id}/tags/{tag}', policy=CALLER, status=204)
    def show_tag(self, req: Request, resource_id: str, tag: str) -> None:
        _check_found(tag, tag in self.networks.get(req.context, self.kind, resource_id)['tags'])

    @operation('PUT', '/{resource_id}/tags/{tag}', policy=WRITER, status=201)
    def add_tag(self, req: Request, resource_id: str, tag: str) -> None:
        ONE_TAG.check({'tag': tag})
        self.networks.add_tag(req.context, self.kind, resource_id, tag)

    @operation('DELETE', '/{resource_id}/tags/{tag}', policy=WRITER, status=204)
    def delete_tag(self, req: Request, resource_id: str, tag: str) -> None:
        _check_found(tag, self.networks.delete_tag(req.context, self.kind, resource_id, tag))


class NeutronCollection(NeutronController):
    """The resources of one kind."""

    kind: str
    resource: NeutronResource

    @operation('GET', policy=CALLER)
    def list(self, req: Request) -> dict[str, Any]:
        page, fields, filters = query.page(req), query.fields(req), query.filters(req)
        hidden = self.resource.hidden_from(req.context)
        if not hidden.isdisjoint(name for name, _ in page.sort):
            raise errors.Invalid('sort_key: the list cannot be sorted by what is not shown.')
        # What matches would tell the values that are not shown.
        found = self.networks.find(req.context, self.kind, filters, page) if hidden.isdisjoint(filters) else []
        views = [self.resource.view(req.context, document, fields) for document in found]
        return {self.resource.key: views, **query.links(req, self.resource.key, found, page)}

    @operation('GET', '/{resource_id}', policy=CALLER)
    def show(self, req: Request, resource_id: str) -> dict[str, Any]:
        return self.single(req, self.networks.get(req.context, self.kind, resource_id))

    @operation('POST', policy=WRITER, body=OBJECT, status=201)
    def create(self, req: Request, body: dict[str, Any]) -> dict[str, Any]:
        """Create one resource, or all of a list."""
        if self.resource.key in body:
            return self.create_all(req, body[self.resource.key])
        facts = self.resource.facts(req.context, self.resource.create, body)
        return self.single(req, self.networks.create(req.context, self.kind, facts))

    def create_all(self, req: Request, requested: Any) -> dict[str, Any]:
        resource, fields = self.resource, query.fields(req)
        if not (isinstance(requested, list) and 1 <= len(requested) <= MAX_ITEMS):
            raise errors.Invalid(f'{resource.key} must be a list of 1 to {MAX_ITEMS} resources.')
        # Clients send them bare, or each as the body that creates it alone.
        bodies = (
            each if isinstance(each, dict) and resource.name in each else {resource.name: each} for each in requested
        )
        several = [resource.facts(req.context, resource.create, body) for body in bodies]
        made = self.networks.create_all(req.context, self.kind, several)
        return {resource.key: [resource.view(req.context, document, fields) for document in made]}

    @operation('PUT', '/{resource_id}', policy=WRITER, body=OBJECT)
    def update(self, req: Request, resource_id: str, body: dict[str, Any]) -> dict[str, Any]:
        facts = self.resource.facts(req.context, self.resource.update, body)
        return self.single(req, self.networks.update(req.context, self.kind, resource_id, facts, revision(req)))

    @operation('DELETE', '/{resource_id}', policy=WRITER, status=204)
    def delete(self, req: Request, resource_id: str) -> None:
        self.networks.delete(req.context, self.kind, resource_id, revision(req))

    def single(self, req: Request, document: dict[str, Any]) -> dict[str, Any]:
        return {self.resource.name: self.resource.view(req.context, document, query.fields(req))}


def revision(req: Request) -> int | None:
    """The revision required by `If-Match: revision_number=N`; raises Invalid for any other value."""
    text = req.headers.get('If-Match')
    if text is None:
        return None
    match = REVISION.fullmatch(text.strip().strip('"'))
    if not match:
        raise errors.Invalid('Invalid value for expected header If-Match: it must be revision_number=N.')
    return int(match[1])


def _check_found(tag: str, found: bool) -> None:
    if not found:
        raise errors.NotFound(f'Tag {tag} could not be found.')


def _collection(resource: NeutronResource) -> type[NeutronCollection]:
    """The controller of one kind, at its own path."""
    facts = {'path': f'/{resource.kind}', 'kind': resource.kind, 'resource': resource}
    name = f'NeutronCollection[{resource.kind}]'
    bases = (NeutronTags, NeutronCollection) if resource.is_tagged else (NeutronCollection,)
    return types.new_class(name, bases, exec_body=lambda body: body.update(facts))


COLLECTIONS = tuple(map(_collection, RESOURCES))
