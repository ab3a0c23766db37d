"""Projects: what owns the resources of a cloud."""

from collections.abc import Callable, Iterable
from typing import Any

import sqlalchemy as sa

from computeapi import errors
from computeapi.backends.identity.local.accounts import DEFAULT_DOMAIN
from computeapi.db.tables import identity as tables
from computeapi.standalone.face import FaceRequest, route
from computeapi.standalone.identity.base import (
    BOOLEAN,
    ID,
    TEXT,
    KeystoneFace,
    collection,
    fields,
    filters,
    flag,
    link,
    record,
    require,
    require_self,
)

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


class Projects(KeystoneFace):
    @route('GET', '/v3/projects', admin=True)
    def projects(self, req: FaceRequest) -> dict[str, Any]:
        # A domain is never a project here.
        wanted = filters(req, tables.projects, 'name', 'domain_id', 'enabled')
        if 'parent_id' in req.GET:
            wanted.setdefault('domain_id', req.GET['parent_id'])
        found = [] if flag(req, 'is_domain') else self.identity.projects.list(**wanted)
        return collection(req, 'projects', tagged(req, found), project_view)

    @route('POST', '/v3/projects', admin=True)
    def create_project(self, req: FaceRequest) -> tuple[int, dict[str, Any]]:
        CREATE.check(req.document)
        project = {'domain_id': DEFAULT_DOMAIN} | req.member('project')
        if project.pop('parent_id', None) not in (None, project['domain_id']):
            raise errors.Invalid('Invalid input for field/attribute parent_id. Projects do not nest: name the domain.')
        values = fields(project, (*COLUMNS, 'domain_id'), {'is_domain': False})
        return 201, {'project': project_view(req, self.identity.projects.create(**values))}

    @route('GET', '/v3/projects/{project_id}')
    def project(self, req: FaceRequest, project_id: str) -> dict[str, Any]:
        require(req.context.is_admin or req.context.project_id == project_id)
        return {'project': project_view(req, self.identity.projects.get(project_id))}

    @route('PATCH', '/v3/projects/{project_id}', admin=True)
    def update_project(self, req: FaceRequest, project_id: str) -> dict[str, Any]:
        UPDATE.check(req.document)
        current = project_view(req, self.identity.projects.get(project_id))
        changes = fields(req.member('project'), COLUMNS, current)
        return {'project': project_view(req, self.identity.projects.update(project_id, **changes))}

    @route('DELETE', '/v3/projects/{project_id}', admin=True)
    def delete_project(self, req: FaceRequest, project_id: str) -> tuple[int, None]:
        self.identity.projects.delete(project_id)
        return 204, None

    @route('GET', '/v3/users/{user_id}/projects')
    def projects_of_user(self, req: FaceRequest, user_id: str) -> dict[str, Any]:
        require_self(req, user_id)
        self.identity.users.get(user_id)
        wanted = filters(req, tables.projects, 'name', 'domain_id', 'enabled')
        found = [
            project
            for project in self.identity.projects.granted(user_id)
            if all(getattr(project, name) == value for name, value in wanted.items())
        ]
        return collection(req, 'projects', found, project_view)


def tagged(req: FaceRequest, projects: Iterable[sa.Row]) -> list[sa.Row]:
    """Those of the projects whose tags are what the query asks for."""
    tests = [(TAG_FILTERS[name], set(value.split(','))) for name, value in req.GET.items() if name in TAG_FILTERS]
    return [project for project in projects if all(test(wanted, set(project.tags)) for test, wanted in tests)]


def project_view(req: FaceRequest, project: sa.Row) -> dict[str, Any]:
    return project.extra | {
        'id': project.id,
        'name': project.name,
        'domain_id': project.domain_id,
        'parent_id': project.domain_id,
        'is_domain': False,
        'description': project.description,
        'enabled': project.enabled,
        'tags': project.tags,
        'options': {},
        **link(req, 'projects', project.id),
    }
