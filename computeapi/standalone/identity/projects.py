"""Projects, which own the resources of a cloud, and the domains that they are in."""

from collections.abc import Callable, Iterable
from typing import Any

from computeapi import errors
from computeapi.backends.identity.local.accounts import DEFAULT_DOMAIN
from computeapi.db.identity import Domain, Project
from computeapi.standalone.access import ADMIN, CALLER, require
from computeapi.standalone.identity.base import (
    BOOLEAN,
    ID,
    TEXT,
    KeystoneController,
    collection,
    fields,
    filters,
    flag,
    record,
    require_self,
    shown,
)
from computeapi.web.controller import operation
from computeapi.web.request import Request

TAG = {'type': 'string', 'minLength': 1, 'maxLength': 255, 'pattern': '^[^,/]*$'}

PROPERTIES = {
    'name': {'type': 'string', 'minLength': 1, 'maxLength': 64},
    'domain_id': ID,
    'parent_id': {'type': ['string', 'null']},
    'description': TEXT,
    'enabled': BOOLEAN,
    'is_domain': {'const': False},
    'tags': {'type': 'array', 'items': TAG, 'uniqueItems': True, 'maxItems': 80},
    'options': {'type': 'object', 'maxProperties': 0},
}
TAG_FILTERS: dict[str, Callable[[set[str], set[str]], bool]] = {
    'tags': lambda wanted, tags: wanted <= tags,
    'tags-any': lambda wanted, tags: bool(wanted & tags),
    'not-tags': lambda wanted, tags: not wanted <= tags,
    'not-tags-any': lambda wanted, tags: not wanted & tags,
}
COLUMNS = ('name', 'description', 'enabled', 'tags')
CREATE = record('project', PROPERTIES, 'name')
UPDATE = record('project', PROPERTIES)


class KeystoneDomains(KeystoneController):
    path = '/domains'

    @operation('GET', policy=ADMIN)
    def list(self, req: Request) -> dict[str, Any]:
        found = self.identity.domains.list(**filters(req, 'name', 'enabled'))
        return collection(req, 'domains', found, domain_view)

    @operation('GET', '/{domain_id}', policy=CALLER)
    def show(self, req: Request, domain_id: str) -> dict[str, Any]:
        context = req.context
        own = (context.user_domain_id, context.project_domain_id, context.domain_id)
        require(context.is_admin or domain_id in own)
        return {'domain': domain_view(req, self.identity.domains.get(domain_id))}


class KeystoneProjects(KeystoneController):
    path = '/projects'

    @operation('GET', policy=ADMIN)
    def list(self, req: Request) -> dict[str, Any]:
        # A domain is never a project here.
        wanted = filters(req, 'name', 'domain_id', 'enabled')
        if 'parent_id' in req.query:
            wanted.setdefault('domain_id', req.parameter('parent_id'))
        found = [] if flag(req, 'is_domain') else self.identity.projects.list(**wanted)
        return collection(req, 'projects', tagged(req, found), project_view)

    @operation('POST', policy=ADMIN, body=CREATE, status=201)
    def create(self, req: Request, body: dict[str, Any]) -> dict[str, Any]:
        project = {'domain_id': DEFAULT_DOMAIN} | body['project']
        if project.pop('parent_id', None) not in (None, project['domain_id']):
            raise errors.Invalid('Invalid input for field/attribute parent_id. Projects do not nest: name the domain.')
        values = fields(project, (*COLUMNS, 'domain_id'), {'is_domain': False})
        return {'project': project_view(req, self.identity.projects.create(**values))}

    @operation('GET', '/{project_id}', policy=CALLER)
    def show(self, req: Request, project_id: str) -> dict[str, Any]:
        require(req.context.is_admin or req.context.project_id == project_id)
        return {'project': project_view(req, self.identity.projects.get(project_id))}

    @operation('PATCH', '/{project_id}', policy=ADMIN, body=UPDATE)
    def update(self, req: Request, project_id: str, body: dict[str, Any]) -> dict[str, Any]:
        current = project_view(req, self.identity.projects.get(project_id))
        changes = fields(body['project'], COLUMNS, current)
        return {'project': project_view(req, self.identity.projects.update(project_id, **changes))}

    @operation('DELETE', '/{project_id}', policy=ADMIN, status=204)
    def delete(self, req: Request, project_id: str) -> None:
        self.identity.projects.delete(project_id)


class ProjectsOfUser(KeystoneController):
    path = '/users/{user_id}/projects'

    @operation('GET', policy=CALLER)
    def list(self, req: Request, user_id: str) -> dict[str, Any]:
        require_self(req, user_id)
        self.identity.users.get(user_id)
        wanted = filters(req, 'name', 'domain_id', 'enabled')
        found = [
            project
            for project in self.identity.projects.granted(user_id)
            if all(getattr(project, name) == value for name, value in wanted.items())
        ]
        return collection(req, 'projects', found, project_view)


def tagged(req: Request, projects: Iterable[Project]) -> list[Project]:
    """Those of the projects whose tags are what the query asks for."""
    asked = [(name, value) for name in TAG_FILTERS for value in req.query.get(name, ())]
    tests = [(TAG_FILTERS[name], set(value.split(','))) for name, value in asked]
    return [project for project in projects if all(test(wanted, set(project.tags)) for test, wanted in tests)]


def project_view(req: Request, project: Project) -> dict[str, Any]:
    fixed = {'parent_id': project.domain_id, 'is_domain': False, 'options': {}}
    return shown(req, 'projects', project, (*COLUMNS, 'domain_id'), **fixed)


def domain_view(req: Request, domain: Domain) -> dict[str, Any]:
    return shown(req, 'domains', domain, ('name', 'description', 'enabled'), tags=[], options={})
