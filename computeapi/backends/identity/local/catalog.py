"""The service catalog: regions, services, endpoints, and which of them a project can see."""

import re
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from computeapi import errors
from computeapi.backends.identity.local.managers import Manager, PlainManager
from computeapi.db import catalog as queries
from computeapi.db import identity
from computeapi.db.catalog import CatalogEndpoint, CatalogService, EndpointGroup, Region
from computeapi.db.identity import Project
from computeapi.db.records import Rows, make_sure, make_sure_of

REGION = 'RegionOne'
INTERFACES = ('public', 'internal', 'admin')
SUBSTITUTE = re.compile(r'[$%]\((\w+)\)s')


class RegionManager(PlainManager[Region]):
    records = queries.REGIONS
    noun = 'region'
    parts = {'parent_region_id': queries.REGIONS}
    around = 'parent_region_id'
    defaults = {'description': '', 'parent_region_id': None, 'extra': {}}

    def update(self, record_id: str, **changes: Any) -> Region:
        parent = changes.get('parent_region_id')
        if parent is not None and record_id in self._with_parents(parent):
            raise errors.Invalid(
                'Invalid input for field/attribute parent_region_id. It is a descendant of the region itself.'
            )
        return super().update(record_id, **changes)

    def delete(self, record_id: str) -> None:
        with self.change() as connection:
            self.require(connection, record_id, lock=True)
            below = self.records.named(connection, parent_region_id=record_id)
            if below or queries.ENDPOINTS.named(connection, region_id=record_id):
                raise errors.Forbidden(f'Cannot delete region {record_id}: there are endpoints or regions in it.')
            self.records.delete(connection, id=record_id)

    def _with_parents(self, region_id: str | None) -> list[str]:
        parents = {region.id: region.parent_region_id for region in self.list()}
        found: list[str] = []
        while region_id is not None and region_id not in found:
            found.append(region_id)
            region_id = parents.get(region_id)
        return found


class CatalogServiceManager(PlainManager[CatalogService]):
    records = queries.SERVICES
    noun = 'service'
    defaults = {'name': None, 'description': '', 'enabled': True, 'extra': {}}


class EndpointManager(PlainManager[CatalogEndpoint]):
    records = queries.ENDPOINTS
    noun = 'endpoint'
    parts = {'service_id': queries.SERVICES, 'region_id': queries.REGIONS}
    defaults = {'region_id': None, 'enabled': True, 'extra': {}}

    def create(self, *, region: str | None = None, **values: Any) -> CatalogEndpoint:
        return super().create(**self._placed(region, values))

    def update(self, record_id: str, *, region: str | None = None, **changes: Any) -> CatalogEndpoint:
        return super().update(record_id, **self._placed(region, changes))

    def _placed(self, region: str | None, values: dict[str, Any]) -> dict[str, Any]:
        """If a region name is given instead of an ID, a missing region is created, as in Keystone."""
        if region is None or 'region_id' in values:
            return values
        with self.change() as connection:
            make_sure(connection, queries.REGIONS.table, {'id': region, **RegionManager.defaults})
        return {**values, 'region_id': region}


class EndpointGroupManager(PlainManager[EndpointGroup]):
    records = queries.ENDPOINT_GROUPS
    noun = 'endpoint group'
    defaults = {'description': ''}


class Association(NamedTuple):
    """A kind of thing that can be associated with projects, and the rows of associations."""

    noun: str
    things: Rows[Any]
    pairs: Rows[Any]
    column: str


ENDPOINT = Association('endpoint', queries.ENDPOINTS, queries.PROJECT_ENDPOINTS, 'endpoint_id')
GROUP = Association('endpoint group', queries.ENDPOINT_GROUPS, queries.PROJECT_ENDPOINT_GROUPS, 'endpoint_group_id')


class CatalogManager(Manager):
    """The catalog of a project: what was associated with it, or everything if nothing was."""

    noun = 'endpoint of a project'

    def announce(self, entries: Sequence[Mapping[str, str]]) -> None:
        """Add these services of this host to the catalog, as {'type', 'name', 'path'}; existing entries are kept.

        Their IDs are derived from their names, so that processes which start together create each only once.
        """
        region = {'id': REGION, **RegionManager.defaults}
        services, endpoints = [], []
        for entry in entries:
            kind, name = entry['type'], entry['name']
            service_id = _stable_id(kind, name)
            services.append({**CatalogServiceManager.defaults, 'id': service_id, 'type': kind, 'name': name})
            for interface in INTERFACES:
                made = {'id': _stable_id(kind, name, REGION, interface), 'service_id': service_id}
                place = {'region_id': REGION, 'interface': interface, 'url': entry['path']}
                endpoints.append({**EndpointManager.defaults, **made, **place})
        with self.change() as connection:
            make_sure(connection, queries.REGIONS.table, region)
            make_sure_of(connection, queries.SERVICES.table, services)
            make_sure_of(connection, queries.ENDPOINTS.table, endpoints)

    def visible_services(self, project_id: str | None) -> list[tuple[CatalogService, list[CatalogEndpoint]]]:
        """The enabled services, with those of their enabled endpoints that a project can see."""
        with self.store.read() as connection:
            services = queries.SERVICES.named(connection, enabled=True)
            endpoints = queries.ENDPOINTS.named(connection, enabled=True)
            chosen = queries.endpoints_of_project(connection, project_id) if project_id else []
            groups = queries.endpoint_groups_of_project(connection, project_id) if project_id else []
        if chosen or groups:
            endpoints = [each for each in endpoints if each in chosen or any(fits(each, group) for group in groups)]
        return [(service, [each for each in endpoints if each.service_id == service.id]) for service in services]

    def endpoints_of(self, project_id: str) -> list[CatalogEndpoint]:
        """The endpoints associated with a project, directly or by groups."""
        with self.store.read() as connection:
            _require(connection, 'project', identity.PROJECTS, project_id)
            chosen = queries.endpoints_of_project(connection, project_id)
            groups = queries.endpoint_groups_of_project(connection, project_id)
            every = queries.ENDPOINTS.named(connection) if groups else chosen
        return [each for each in every if each in chosen or any(fits(each, group) for group in groups)]

    def groups_of(self, project_id: str) -> list[EndpointGroup]:
        with self.store.read() as connection:
            _require(connection, 'project', identity.PROJECTS, project_id)
            return queries.endpoint_groups_of_project(connection, project_id)

    def projects_of(self, what: Association, record_id: str) -> list[Project]:
        """The projects associated with this endpoint or endpoint group."""
        with self.store.read() as connection:
            _require(connection, what.noun, what.things, record_id)
            find = queries.projects_of_endpoint if what is ENDPOINT else queries.projects_of_endpoint_group
            return find(connection, record_id)

    def endpoints_in(self, group: EndpointGroup) -> list[CatalogEndpoint]:
        with self.store.read() as connection:
            return [each for each in queries.ENDPOINTS.named(connection) if fits(each, group)]

    def give(self, what: Association, record_id: str, project_id: str) -> None:
        """Associate an endpoint or endpoint group with a project; idempotent."""
        with self.change() as connection:
            _require(connection, 'project', identity.PROJECTS, project_id)
            _require(connection, what.noun, what.things, record_id)
            make_sure(connection, what.pairs.table, {'project_id': project_id, what.column: record_id})

    def check_given(self, what: Association, record_id: str, project_id: str) -> None:
        with self.store.read() as connection:
            values: dict[str, Any] = {'project_id': project_id, what.column: record_id}
            if not what.pairs.find(connection, **values):
                raise errors.NotFound(f'Project {project_id} has no {what.noun} {record_id}.')

    def take(self, what: Association, record_id: str, project_id: str) -> None:
        with self.change() as connection:
            if not what.pairs.delete(connection, **{'project_id': project_id, what.column: record_id}):
                raise errors.NotFound(f'Project {project_id} has no {what.noun} {record_id}.')


def resolved(url: str, host_url: str, facts: Mapping[str, str | None]) -> str | None:
    """The URL of an endpoint with these values substituted; None if it needs an unknown one."""
    known = {name: value for name, value in facts.items() if value}
    if any(name not in known for name in SUBSTITUTE.findall(url)):
        return None
    return SUBSTITUTE.sub(lambda match: known[match[1]], address(url, host_url))


def address(url: str, host_url: str) -> str:
    """The URL of an endpoint for a client that used *host_url*."""
    return host_url + url if url.startswith('/') else url


def fits(endpoint: CatalogEndpoint, group: EndpointGroup) -> bool:
    """Whether an endpoint is in a group: it has all the attributes in the group's filters."""
    return all(getattr(endpoint, name, None) == value for name, value in group.filters.items())


def _require(connection: sa.Connection, noun: str, records: Rows[Any], record_id: str) -> None:
    if records.find(connection, id=record_id) is None:
        raise errors.NotFound(f'Could not find {noun}: {record_id}.')


def _stable_id(*parts: str) -> str:
    """An ID that stays the same after a restart."""
    return uuid.uuid5(uuid.NAMESPACE_URL, '/'.join(parts)).hex
