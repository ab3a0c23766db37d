"""Projects, which own the resources of a cloud."""

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any, cast

from computeapi import errors
from computeapi.backends.identity.local.projects import MAX_TAGS
from computeapi.db.identity import Project
from computeapi.standalone.access import ADMIN, CALLER, SYSTEM_READER, require
from computeapi.standalone.identity.base import (
    BOOLEAN,
    ID,
    OPTIONS,
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
from computeapi.standalone.schema import Schema, having, optional
from computeapi.web.controller import operation
from computeapi.web.request import Request

TAG = {'type': 'string', 'minLength': 1, 'maxLength': 255, 'pattern': '^[^,/]*$'}
TAGS = {'type': 'array', 'items': TAG, 'uniqueItems': True, 'maxItems': MAX_TAGS}

PROPERTIES = {
    'name': {'type': 'string', 'minLength': 1, 'maxLength': 64},
    'domain_id': ID,
    'parent_id': optional(ID),
    'description': TEXT,
    'enabled': BOOLEAN,
    'is_domain': {'const': False},
    'tags': TAGS,
    'options': OPTIONS,
}
ONE_TAG = Schema(TAG)
TAG_FILTERS: dict[str, Callable[[set[str], set[str]], bool]] = {
    'tags': lambda wanted, tags: wanted <= tags,
    'tags-any': lambda wanted, tags: bool(wanted & tags),
    'not-tags': lambda wanted, tags: not wanted <= tags,
    'not-tags-any': lambda wanted, tags: not wanted & tags,
}
COLUMNS = ('name', 'description', 'enabled', 'tags', 'options')
CREATE = record('project', PROPERTIES, 'name')
UPDATE = record('project', PROPERTIES)


class KeystoneProjects(KeystoneController):
    path = '/projects'

    @operation('GET', policy=SYSTEM_READER)
    def list(self, req: Request) -> dict[str, Any]:
        # A domain is never a project here.
        wanted = filters(req, 'name', 'domain_id', 'parent_id', 'enabled')
        found = [] if flag(req, 'is_domain') else self.identity.projects.list(**wanted)
        return collection(req, 'projects', tagged(req, found), project_view)

    @operation('POST', policy=ADMIN, body=CREATE, status=201)
    def create(self, req: Request, body: dict[str, Any]) -> dict[str, Any]:
        values = fields(body['project'], (*COLUMNS, 'domain_id', 'parent_id'), {'is_domain': False})
        return {'project': project_view(req, self.identity.projects.create(**values))}

    @operation('GET', '/{project_id}', policy=CALLER)
    def show(self, req: Request, project_id: str) -> dict[str, Any]:
        require_reader(req, project_id)
        project = self.identity.projects.get(project_id)
        return {'project': project_view(req, project) | self.hierarchy(req, project)}

    @operation('PATCH', '/{project_id}', policy=ADMIN, body=UPDATE)
    def update(self, req: Request, project_id: str, body: dict[str, Any]) -> dict[str, Any]:
        current = project_view(req, self.identity.projects.get(project_id))
        changes = fields(body['project'], COLUMNS, current)
        return {'project': project_view(req, self.identity.projects.update(project_id, **changes))}

    @operation('DELETE', '/{project_id}', policy=ADMIN, status=204)
    def delete(self, req: Request, project_id: str) -> None:
        self.identity.projects.delete(project_id)

    def hierarchy(self, req: Request, project: Project) -> dict[str, Any]:
        """What is above and below a project, as far as the query asks: all ids, or where the caller has a role."""
        shown: dict[str, Any] = {}
        for name, find, ids in (
            ('parents', self.identity.projects.above, _ids_above),
            ('subtree', self.identity.projects.below, _ids_below),
        ):
            as_ids, as_list = flag(req, f'{name}_as_ids'), flag(req, f'{name}_as_list')
            if as_ids and as_list:
                raise errors.Invalid(f'{name}_as_ids and {name}_as_list cannot be asked for together.')
            if as_ids:
                shown[name] = ids(project, find(project.id))
            if as_list:
                granted = {each.id for each in self.identity.projects.granted(req.context.user_id or '')}
                found = [each for each in find(project.id) if each.id in granted]
                shown[name] = [{'project': project_view(req, each)} for each in found]
        return shown


class ProjectTags(KeystoneController):
    path = '/projects/{project_id}/tags'

    @operation('GET', policy=CALLER)
    def list(self, req: Request, project_id: str) -> dict[str, Any]:
        require_reader(req, project_id)
        return {'tags': self.identity.projects.get(project_id).tags, 'links': {'self': req.path_url}}

    @operation('PUT', policy=ADMIN, body=having({'tags': TAGS}, 'tags', additionalProperties=False))
    def replace(self, req: Request, project_id: str, body: dict[str, Any]) -> dict[str, Any]:
        self.identity.projects.set_tags(project_id, lambda tags: body['tags'])
        return self.list(req, project_id)

    @operation('DELETE', policy=ADMIN, status=204)
    def delete_all(self, req: Request, project_id: str) -> None:
        self.identity.projects.set_tags(project_id, lambda tags: ())

    @operation('HEAD', '/{tag}', policy=CALLER, status=204)
    @operation('GET', '/{tag}', policy=CALLER, status=204)
    def check(self, req: Request, project_id: str, tag: str) -> None:
        require_reader(req, project_id)
        if tag not in self.identity.projects.get(project_id).tags:
            raise errors.NotFound(f'Could not find tag: {tag}.')

    @operation('PUT', '/{tag}', policy=ADMIN, status=201)
    def add(self, req: Request, project_id: str, tag: str) -> None:
        ONE_TAG.check(tag)
        self.identity.projects.set_tags(project_id, lambda tags: {*tags, tag})

    @operation('DELETE', '/{tag}', policy=ADMIN, status=204)
    def remove(self, req: Request, project_id: str, tag: str) -> None:
        self.check(req, project_id, tag)
        self.identity.projects.set_tags(project_id, lambda tags: {*tags} - {tag})


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


def require_reader(req: Request, project_id: str) -> None:
    """A project is for those who work in it, and for readers of the system."""
    require(req.allows(SYSTEM_READER) or req.context.project_id == project_id)


def tagged(req: Request, projects: Iterable[Project]) -> list[Project]:
    """Those of the projects whose tags are what the query asks for."""
    asked = [(name, value) for name in TAG_FILTERS for value in req.query.get(name, ())]
    tests = [(TAG_FILTERS[name], set(value.split(','))) for name, value in asked]
    return [project for project in projects if all(test(wanted, set(project.tags)) for test, wanted in tests)]


def project_view(req: Request, project: Project) -> dict[str, Any]:
    return shown(req, 'projects', project, (*COLUMNS, 'domain_id', 'parent_id'), is_domain=False)


def _ids_above(project: Project, above: Iterable[Project]) -> dict[str, Any]:
    """{parent: {its parent: ... {domain: None}}}"""
    parents = {each.id: each.parent_id for each in above}
    lineage = [project.parent_id]
    while lineage[-1] in parents:
        lineage.append(parents[lineage[-1]])
    return reduce(lambda below, parent: {parent: below}, reversed(lineage), cast(Any, None))


def _ids_below(project: Project, below: Sequence[Project]) -> dict[str, Any] | None:
    """{child: {its child: ...}}, and None where there is none."""
    children = [each for each in below if each.parent_id == project.id]
    return {each.id: _ids_below(each, below) for each in children} or None
