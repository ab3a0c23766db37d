"""Tables of what the identity service tells about other services: where they are, and what they may give."""

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
    """A URL that begins with a slash is on the host that the client came by."""

    id: Annotated[TextId, KEY]
    service_id: Annotated[TextId, sa.ForeignKey('identity_services.id', ondelete='CASCADE'), INDEX]
    region_id: Annotated[str, sa.ForeignKey('identity_regions.id')] | None
    interface: Annotated[str, Text(8)]
    url: AnyText
    enabled: bool
    extra: dict[str, Any]


endpoints = table('identity_endpoints', CatalogEndpoint)


class EndpointGroup(NamedTuple):
    """The endpoints that have these attributes."""

    id: Annotated[TextId, KEY]
    name: str
    description: AnyText
    filters: dict[str, Any]


endpoint_groups = table('identity_endpoint_groups', EndpointGroup)


class ProjectEndpoint(NamedTuple):
    """An endpoint that a project sees. A project that has some of these, or of the next, sees no others."""

    project_id: Annotated[TextId, sa.ForeignKey('identity_projects.id', ondelete='CASCADE'), KEY]
    endpoint_id: Annotated[TextId, sa.ForeignKey('identity_endpoints.id', ondelete='CASCADE'), KEY, INDEX]


project_endpoints = table('identity_project_endpoints', ProjectEndpoint)


class ProjectEndpointGroup(NamedTuple):
    """A group of endpoints that a project sees."""

    project_id: Annotated[TextId, sa.ForeignKey('identity_projects.id', ondelete='CASCADE'), KEY]
    endpoint_group_id: Annotated[TextId, sa.ForeignKey('identity_endpoint_groups.id', ondelete='CASCADE'), KEY, INDEX]


project_endpoint_groups = table('identity_project_endpoint_groups', ProjectEndpointGroup)


class RegisteredLimit(NamedTuple):
    """How much of a resource any project or domain may have of a service, in one region or in each.

    It outlives its service and its region, as operators put away first what they made last.
    No region is an empty text: NULL would let a thing be limited twice.
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
    # What the convention calls it is too long for PostgreSQL.
    sa.UniqueConstraint('service_id', 'region_id', 'resource_name', name='uq_identity_registered_limits_place'),
)


class OwnLimit(NamedTuple):
    """What one project or domain may have instead."""

    id: Annotated[TextId, KEY]
    registered_limit_id: Annotated[TextId, sa.ForeignKey('identity_registered_limits.id')]
    owner_id: TextId
    resource_limit: int
    description: AnyText


limits = table('identity_limits', OwnLimit, sa.UniqueConstraint('registered_limit_id', 'owner_id'))


class PolicyFile(NamedTuple):
    """Rules that operators keep for a service; nobody here reads them."""

    id: Annotated[TextId, KEY]
    type: str
    blob: AnyText
    extra: dict[str, Any]


policies = table('identity_policies', PolicyFile)
