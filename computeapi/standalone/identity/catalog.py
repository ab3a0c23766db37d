"""Services and endpoints, as records and as the service catalog of a token."""

from collections.abc import Iterable, Mapping
from typing import Any

from computeapi import errors
from computeapi.backends.identity.local.catalog import ENDPOINT, GROUP, INTERFACES, Association, address, resolved
from computeapi.db.catalog import CatalogEndpoint, CatalogService, EndpointGroup
from computeapi.standalone.access import ADMIN
from computeapi.standalone.identity.access import CLOUD_READER
from computeapi.standalone.identity.base import (
    BOOLEAN,
    ID,
    NAME,
    OBJECT,
    TEXT,
    KeystoneCollection,
    KeystoneController,
    Noun,
    OpenCollection,
    collection,
    shown,
    url,
)
from computeapi.standalone.identity.projects import project_view
from computeapi.standalone.schema import having, optional
from computeapi.web.controller import operation
from computeapi.web.request import Request

REGION_ID = {'type': 'string', 'minLength': 1, 'maxLength': 255}
INTERFACE = {'enum': INTERFACES}
SUBSTITUTED = ('tenant_id', 'project_id', 'user_id', 'compute_host', 'public_endpoint')
"""What the URL of an endpoint may name, as `$(name)s` or `%(name)s`; nothing is known of the last two."""
URL = {
    'type': 'string',
    'maxLength': 2048,
    'pattern': rf'^(?!.*[$%]\((?!({"|".join(SUBSTITUTED)})\)s))[a-zA-Z0-9+.-]+:.+',
}
REGION = {'id': REGION_ID, 'description': TEXT, 'parent_region_id': optional(REGION_ID)}
SERVICE = {'type': NAME, 'name': optional(NAME), 'description': TEXT, 'enabled': BOOLEAN}
ENDPOINT_PROPERTIES = {
    'service_id': ID,
    'region_id': optional(REGION_ID),
    'interface': INTERFACE,
    'url': URL,
    'enabled': BOOLEAN,
}
FILTERS = {'service_id': ID, 'region_id': REGION_ID, 'interface': INTERFACE, 'enabled': BOOLEAN}
GROUP_PROPERTIES = {'name': NAME, 'description': TEXT, 'filters': having(FILTERS, additionalProperties=False)}


class KeystoneRegions(OpenCollection):
    path = '/regions'
    kind = 'regions'
    noun = Noun('region', REGION, (), ('parent_region_id',), ('id',))

    @operation('PUT', '/{record_id}', policy=ADMIN, body=having({'region': OBJECT}, 'region'), status=201)
    def create_as(self, req: Request, record_id: str, body: Any) -> dict[str, Any]:
        region = {'id': record_id, **body['region']}
        if region['id'] != record_id:
            raise errors.Invalid('Invalid input for field/attribute id. It differs from the one in the path.')
        return super().create(req, {'region': region})


class KeystoneServices(KeystoneCollection):
    path = '/services'
    kind = 'services'
    noun = Noun('service', SERVICE, ('type',), ('type', 'name'))


class KeystoneEndpoints(KeystoneCollection):
    path = '/endpoints'
    kind = 'endpoints'
    noun = Noun(
        'endpoint',
        # The former name of region_id, from before regions were records.
        ENDPOINT_PROPERTIES | {'region': optional(REGION_ID)},
        ('service_id', 'interface', 'url'),
        ('service_id', 'interface', 'region_id'),
    )

    def view(self, req: Request, record: CatalogEndpoint) -> dict[str, Any]:
        return endpoint_view(req, record)


class KeystoneEndpointGroups(KeystoneCollection):
    path = '/OS-EP-FILTER/endpoint_groups'
    kind = 'endpoint_groups'
    noun = Noun('endpoint_group', GROUP_PROPERTIES, ('name', 'filters'), ('name',), closed=True)

    def view(self, req: Request, record: EndpointGroup) -> dict[str, Any]:
        return endpoint_group_view(req, record)

    @operation('GET', '/{record_id}/endpoints', policy=CLOUD_READER)
    def endpoints(self, req: Request, record_id: str) -> dict[str, Any]:
        found = self.identity.catalog.endpoints_in(self.manager.get(record_id))
        return collection(req, 'endpoints', found, endpoint_view)


class EndpointFilter(KeystoneController):
    """The endpoints and endpoint groups that projects are associated with."""

    path = '/OS-EP-FILTER'

    @operation('GET', '/projects/{project_id}/endpoints', policy=CLOUD_READER)
    def endpoints(self, req: Request, project_id: str) -> dict[str, Any]:
        return collection(req, 'endpoints', self.identity.catalog.endpoints_of(project_id), endpoint_view)

    @operation('GET', '/projects/{project_id}/endpoint_groups', policy=CLOUD_READER)
    def groups(self, req: Request, project_id: str) -> dict[str, Any]:
        return collection(req, 'endpoint_groups', self.identity.catalog.groups_of(project_id), endpoint_group_view)

    @operation('GET', '/endpoints/{record_id}/projects', policy=CLOUD_READER)
    def projects_of_endpoint(self, req: Request, record_id: str) -> dict[str, Any]:
        return collection(req, 'projects', self.identity.catalog.projects_of(ENDPOINT, record_id), project_view)

    @operation('GET', '/endpoint_groups/{record_id}/projects', policy=CLOUD_READER)
    def projects_of_group(self, req: Request, record_id: str) -> dict[str, Any]:
        return collection(req, 'projects', self.identity.catalog.projects_of(GROUP, record_id), project_view)


class Associations(KeystoneController):
    """The association of one record with one project; subclasses have both in their paths."""

    what: Association

    @operation('PUT', policy=ADMIN, status=204)
    def give(self, req: Request, project_id: str, record_id: str) -> None:
        self.identity.catalog.give(self.what, record_id, project_id)

    @operation('GET', policy=CLOUD_READER, status=204)
    def check(self, req: Request, project_id: str, record_id: str) -> Any:
        self.identity.catalog.check_given(self.what, record_id, project_id)

    @operation('DELETE', policy=ADMIN, status=204)
    def take(self, req: Request, project_id: str, record_id: str) -> None:
        self.identity.catalog.take(self.what, record_id, project_id)


class EndpointsOfProject(Associations):
    path = '/OS-EP-FILTER/projects/{project_id}/endpoints/{record_id}'
    what = ENDPOINT


class EndpointGroupsOfProject(Associations):
    path = '/OS-EP-FILTER/endpoint_groups/{record_id}/projects/{project_id}'
    what = GROUP

    @operation('GET', policy=CLOUD_READER)
    def check(self, req: Request, project_id: str, record_id: str) -> dict[str, Any]:
        super().check(req, project_id, record_id)
        links = {'self': url(req, 'OS-EP-FILTER/endpoint_groups', record_id, 'projects', project_id)}
        return {'project_endpoint_group': {'endpoint_group_id': record_id, 'project_id': project_id, 'links': links}}


def endpoint_group_view(req: Request, group: EndpointGroup) -> dict[str, Any]:
    return shown(req, 'OS-EP-FILTER/endpoint_groups', group, ('name', 'filters'), description=group.description or None)


def endpoint_view(
    req: Request, endpoint: CatalogEndpoint, facts: Mapping[str, str | None] | None = None
) -> dict[str, Any]:
    """An endpoint. facts: the values to substitute in its URL; None: they are not substituted."""
    place = resolved(endpoint.url, req.host_url, facts) if facts is not None else address(endpoint.url, req.host_url)
    return shown(req, 'endpoints', endpoint, ENDPOINT_PROPERTIES, url=place, region=endpoint.region_id)


def catalog_document(
    req: Request, seen: Iterable[tuple[CatalogService, list[CatalogEndpoint]]], facts: Mapping[str, str | None]
) -> list[dict[str, Any]]:
    """The catalog as a token shows it: these services, each with its endpoints."""
    return [
        {
            'id': service.id,
            'type': service.type,
            'name': service.name or '',
            'endpoints': [
                {key: view[key] for key in ('id', 'interface', 'region', 'region_id', 'url')}
                for view in (endpoint_view(req, each, facts) for each in endpoints)
                if view['url']
            ],
        }
        for service, endpoints in seen
    ]
