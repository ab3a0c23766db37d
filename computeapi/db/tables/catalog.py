"""Tables of the identity service about other services: their endpoints, and limits of their resources."""

from typing import Annotated, Any, NamedTuple

import sqlalchemy as sa

from computeapi.db.tables.columns import INDEX, KEY, AnyText, TextId, table
from computeapi.db.tables.types import Text


class Region(NamedTuple):
    id: Annotated[str, KEY]
    description: AnyText
    parent_region_id: Annotated[str, sa.ForeignKey('identity_regions.id')] | None
    extra: dict[str, Any]


regions = table('identity_regions', Region)


class CatalogService(NamedTuple):
    id: Annotated[TextId, KEY]
    type: str
    name: str | None
    description: AnyText
    enabled: bool
    extra: dict[str, Any]


services = table('identity_services', CatalogService)


class CatalogEndpoint(NamedTuple):
    """A URL that begins with a slash is relative to the host by which the client came."""

    id: Annotated[TextId, KEY]
    service_id: Annotated[TextId, sa.ForeignKey('identity_services.id', ondelete='CASCADE'), INDEX]
    region_id: Annotated[str, sa.ForeignKey('identity_regions.id')] | None
    interface: Annotated[str, Text(8)]
    url: AnyText
    enabled: bool
    extra: dict[str, Any]


endpoints = table('identity_endpoints', CatalogEndpoint)


class EndpointGroup(NamedTuple):
    """A group of endpoints, selected by these attributes."""

    id: Annotated[TextId, KEY]
    name: str
    description: AnyText
    filters: dict[str, Any]


endpoint_groups = table('identity_endpoint_groups', EndpointGroup)


class ProjectEndpoint(NamedTuple):
    """An endpoint that a project can see. A project with any of these, or with endpoint groups, sees no others."""

    project_id: Annotated[TextId, sa.ForeignKey('identity_projects.id', ondelete='CASCADE'), KEY]
    endpoint_id: Annotated[TextId, sa.ForeignKey('identity_endpoints.id', ondelete='CASCADE'), KEY, INDEX]


project_endpoints = table('identity_project_endpoints', ProjectEndpoint)


class ProjectEndpointGroup(NamedTuple):
    """An endpoint group that a project can see."""

    project_id: Annotated[TextId, sa.ForeignKey('identity_projects.id', ondelete='CASCADE'), KEY]
    endpoint_group_id: Annotated[TextId, sa.ForeignKey('identity_endpoint_groups.id', ondelete='CASCADE'), KEY, INDEX]


project_endpoint_groups = table('identity_project_endpoint_groups', ProjectEndpointGroup)


class RegisteredLimit(NamedTuple):
    """The default limit of a service's resource for each project or domain, in one region or in each.

    It outlives its service and its region, because operators delete things in reverse order of creation. The empty
    string stands for no region: NULL would allow duplicates.
    """

    id: Annotated[TextId, KEY]
    service_id: TextId
    region_id: str
    resource_name: str
    default_limit: int
    description: AnyText


registered_limits = table(
    'identity_registered_limits',
    RegisteredLimit,
    # The name by convention is too long for PostgreSQL.
    sa.UniqueConstraint('service_id', 'region_id', 'resource_name', name='uq_identity_registered_limits_place'),
)


class OwnLimit(NamedTuple):
    """The limit of one project or domain that overrides the default."""

    id: Annotated[TextId, KEY]
    registered_limit_id: Annotated[TextId, sa.ForeignKey('identity_registered_limits.id')]
    owner_id: TextId
    resource_limit: int
    description: AnyText


limits = table('identity_limits', OwnLimit, sa.UniqueConstraint('registered_limit_id', 'owner_id'))


class PolicyFile(NamedTuple):
    """A policy that operators store for a service; nothing here evaluates it."""

    id: Annotated[TextId, KEY]
    type: str
    blob: AnyText
    extra: dict[str, Any]


policies = table('identity_policies', PolicyFile)
