"""Queries of the identity service about other services: regions, services, endpoints, limits, policies."""

from typing import Any, NamedTuple

import sqlalchemy as sa

from computeapi.db.identity import BY_NAME, PROJECTS, Project
from computeapi.db.listing import equals
from computeapi.db.records import Rows
from computeapi.db.tables.catalog import (
    CatalogEndpoint,
    CatalogService,
    EndpointGroup,
    OwnLimit,
    PolicyFile,
    ProjectEndpoint,
    ProjectEndpointGroup,
    Region,
    RegisteredLimit,
    endpoint_groups,
    endpoints,
    limits,
    policies,
    project_endpoint_groups,
    project_endpoints,
    regions,
    registered_limits,
    services,
)
from computeapi.db.tables.identity import projects, stored_credentials

__all__ = ['CatalogEndpoint', 'CatalogService', 'EndpointGroup', 'PolicyFile', 'Region', 'RegisteredLimit']

REGIONS = Rows(Region, regions)
SERVICES = Rows(CatalogService, services)
ENDPOINTS = Rows(CatalogEndpoint, endpoints)
ENDPOINT_GROUPS = Rows(EndpointGroup, endpoint_groups)
PROJECT_ENDPOINTS = Rows(ProjectEndpoint, project_endpoints)
PROJECT_ENDPOINT_GROUPS = Rows(ProjectEndpointGroup, project_endpoint_groups)
REGISTERED_LIMITS = Rows(RegisteredLimit, registered_limits)
LIMITS = Rows(OwnLimit, limits)
POLICIES = Rows(PolicyFile, policies)


class Limit(NamedTuple):
    """The limit of a registered resource for a project or, if project_id is None, a domain."""

    id: str
    registered_limit_id: str
    owner_id: str
    project_id: str | None
    service_id: str
    region_id: str
    resource_name: str
    resource_limit: int
    description: str


WHOLE_LIMITS = Rows(
    Limit,
    limits,
    project_id=projects.c.id,
    service_id=registered_limits.c.service_id,
    region_id=registered_limits.c.region_id,
    resource_name=registered_limits.c.resource_name,
)


def find_limits(connection: sa.Connection, **values: Any) -> list[Limit]:
    """The limits with these values in the record, one or several for a name, in order."""
    query = (
        WHOLE_LIMITS.select.select_from(limits)
        .join(registered_limits, registered_limits.c.id == limits.c.registered_limit_id)
        .outerjoin(projects, projects.c.id == limits.c.owner_id)
    )
    columns = dict(zip(Limit._fields, WHOLE_LIMITS.columns, strict=True))
    matching = [equals(columns[name], value) for name, value in values.items()]
    order = (registered_limits.c.resource_name, limits.c.id)
    return WHOLE_LIMITS.all(connection, query.where(*matching).order_by(*order))


def delete_belongings(connection: sa.Connection, owner_id: str) -> None:
    """Delete the limits of a project, or of a domain and its projects, and the credentials stored for them."""
    inside = sa.select(projects.c.id).where(projects.c.domain_id == owner_id)
    for owner in (limits.c.owner_id, stored_credentials.c.project_id):
        connection.execute(sa.delete(owner.table).where(sa.or_(owner == owner_id, owner.in_(inside))))


def endpoints_of_project(connection: sa.Connection, project_id: str) -> list[CatalogEndpoint]:
    """The endpoints that were associated with a project individually."""
    query = ENDPOINTS.select.join(project_endpoints, project_endpoints.c.endpoint_id == endpoints.c.id)
    return ENDPOINTS.all(connection, query.where(project_endpoints.c.project_id == project_id).order_by(endpoints.c.id))


def endpoint_groups_of_project(connection: sa.Connection, project_id: str) -> list[EndpointGroup]:
    joined = project_endpoint_groups.c.endpoint_group_id == endpoint_groups.c.id
    query = ENDPOINT_GROUPS.select.join(project_endpoint_groups, joined)
    query = query.where(project_endpoint_groups.c.project_id == project_id)
    return ENDPOINT_GROUPS.all(connection, query.order_by(endpoint_groups.c.name, endpoint_groups.c.id))


def projects_of_endpoint(connection: sa.Connection, endpoint_id: str) -> list[Project]:
    query = PROJECTS.select.join(project_endpoints, project_endpoints.c.project_id == projects.c.id)
    return PROJECTS.all(connection, query.where(project_endpoints.c.endpoint_id == endpoint_id).order_by(*BY_NAME))


def projects_of_endpoint_group(connection: sa.Connection, group_id: str) -> list[Project]:
    query = PROJECTS.select.join(project_endpoint_groups, project_endpoint_groups.c.project_id == projects.c.id)
    in_group = project_endpoint_groups.c.endpoint_group_id == group_id
    return PROJECTS.all(connection, query.where(in_group).order_by(*BY_NAME))
