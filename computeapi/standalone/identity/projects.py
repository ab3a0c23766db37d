"""Projects, which own the resources of a cloud."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from computeapi import errors
from computeapi.backends.identity.local.projects import MAX_TAGS
from computeapi.db.identity import Domain, Project
from computeapi.standalone.access import require
from computeapi.standalone.identity.access import ANY_CALLER, DOMAIN_MANAGER, DOMAIN_READER, in_own_domain
from computeapi.standalone.identity.base import (
    BOOLEAN,
    ID,
    OPTIONS,
    SHORT_NAME,
    TEXT,
    KeystoneController,
    collection,
    fields,
    filters,
    flag,
    record,
    shown,
)
from computeapi.standalone.schema import Schema, having, optional
from computeapi.web.controller import operation
from computeapi.web.request import Request

TAG = {'type': 'string', 'minLength': 1, 'maxLength': 255, 'pattern': '^[^,/]*$'}
TAGS = {'type': 'array', 'items': TAG, 'uniqueItems': True, 'maxItems': MAX_TAGS}

PROPERTIES = {
    'name': SHORT_NAME,
    'domain_id': optional(ID),
    'parent_id': optional(ID),
    'description': TEXT,
    'enabled': BOOLEAN,
    'is_domain': BOOLEAN,
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
PLACE = ('domain_id', 'parent_id')
# A domain also acts as a project, which has neither a parent nor a domain.
AS_DOMAIN = {'domain_id': None, 'parent_id': None, 'is_domain': True}
CREATE = record('project', PROPERTIES, 'name')
UPDATE = record('project', PROPERTIES)


class ProjectController(KeystoneController):
    """A resource of projects, for those who may see or change them."""

    def require_reader(self, req: Request, project_id: str) -> None:
        """Allows readers of the domain, and tokens scoped to the project."""
        own = req.context.project_id == project_id
        require(own or req.allows(DOMAIN_READER, {'project': self.domain_of('projects', project_id)}))

    def require_manager(self, req: Request, project_id: str) -> None:
        """Allows managers of the domain."""
        req.check(DOMAIN_MANAGER, {'project': self.domain_of('projects', project_id)})


class KeystoneProjects(ProjectController):
    path = '/projects'

    @operation('GET', policy=DOMAIN_READER)
    def list(self, req: Request) -> dict[str, Any]:
        wanted = filters(req, 'name', *PLACE, 'enabled')
        found: Sequence[Project | Domain]
        if not flag(req, 'is_domain'):
            found = self.identity.projects.list(**wanted)
        else:
            found = [] if wanted.keys() & AS_DOMAIN.keys() else self.identity.domains.list(**wanted)
        return collection(req, 'projects', in_own_domain(req, tagged(req, found)), project_view)

    @operation('POST', policy=DOMAIN_MANAGER, body=CREATE, status=201)
    def create(self, req: Request, body: dict[str, Any]) -> dict[str, Any]:
        project = body['project']
        req.check(DOMAIN_MANAGER, {'project': project.get('domain_id')})
        if req.context.domain_id and not project.get('is_domain'):
            project = project | {'domain_id': project.get('domain_id') or req.context.domain_id}
        if project.get('is_domain'):
            made: Project | Domain = self.identity.domains.create(**fields(project, COLUMNS, AS_DOMAIN))
        else:
            made = self.identity.projects.create(**fields(project, (*COLUMNS, *PLACE), {'is_domain': False}))
        return {'project': project_view(req, made)}

    @operation('GET', '/{project_id}', policy=ANY_CALLER)
    def show(self, req: Request, project_id: str) -> dict[str, Any]:
        self.require_reader(req, project_id)
        project = project_view(req, self.identity.place(project_id).get(project_id))
        return {'project': project | self.hierarchy(req, project)}

    @operation('PATCH', '/{project_id}', policy=DOMAIN_MANAGER, body=UPDATE)
    def update(self, req: Request, project_id: str, body: dict[str, Any]) -> dict[str, Any]:
        self.require_manager(req, project_id)
        place = self.identity.place(project_id)
        changes = fields(body['project'], COLUMNS, project_view(req, place.get(project_id)))
        return {'project': project_view(req, place.update(project_id, **changes))}

    @operation('DELETE', '/{project_id}', policy=DOMAIN_MANAGER, status=204)
    def delete(self, req: Request, project_id: str) -> None:
        self.require_manager(req, project_id)
        self.identity.place(project_id).delete(project_id)

    def hierarchy(self, req: Request, project: Mapping[str, Any]) -> dict[str, Any]:
        """The ancestors and descendants that the query asks for: the IDs of all, or those on which the caller has a
        role."""
        shown: dict[str, Any] = {}
        for name, find, ids in (
            ('parents', self.identity.projects.above, _ids_above),
            ('subtree', self.identity.projects.below, _ids_below),
        ):
            as_ids, as_list = flag(req, f'{name}_as_ids'), flag(req, f'{name}_as_list')
            if as_ids and as_list:
                raise errors.Invalid(f'{name}_as_ids and {name}_as_list cannot be combined.')
            if as_ids:
                shown[name] = ids(project, find(project['id']))
            if as_list:
                granted = {each.id for each in self.identity.projects.granted(req.context.user_id or '')}
                found = [each for each in find(project['id']) if each.id in granted]
                shown[name] = [{'project': project_view(req, each)} for each in found]
        return shown


class ProjectTags(ProjectController):
    path = '/projects/{project_id}/tags'

    @operation('GET', policy=ANY_CALLER)
    def list(self, req: Request, project_id: str) -> dict[str, Any]:
        self.require_reader(req, project_id)
        return {'tags': self.identity.place(project_id).get(project_id).tags, 'links': {'self': req.path_url}}

    @operation('PUT', policy=DOMAIN_MANAGER, body=having({'tags': TAGS}, 'tags', additionalProperties=False))
    def replace(self, req: Request, project_id: str, body: dict[str, Any]) -> dict[str, Any]:
        self.require_manager(req, project_id)
        self.identity.place(project_id).set_tags(project_id, lambda tags: body['tags'])
        return self.list(req, project_id)

    @operation('DELETE', policy=DOMAIN_MANAGER, status=204)
    def delete_all(self, req: Request, project_id: str) -> None:
        self.require_manager(req, project_id)
        self.identity.place(project_id).set_tags(project_id, lambda tags: ())

    @operation('GET', '/{tag}', policy=ANY_CALLER, status=204)
    def check(self, req: Request, project_id: str, tag: str) -> None:
        self.require_reader(req, project_id)
        if tag not in self.identity.place(project_id).get(project_id).tags:
            raise errors.NotFound(f'Could not find tag: {tag}.')

    @operation('PUT', '/{tag}', policy=DOMAIN_MANAGER, status=201)
    def add(self, req: Request, project_id: str, tag: str) -> None:
        self.require_manager(req, project_id)
        ONE_TAG.check(tag)
        self.identity.place(project_id).set_tags(project_id, lambda tags: {*tags, tag})

    @operation('DELETE', '/{tag}', policy=DOMAIN_MANAGER, status=204)
    def remove(self, req: Request, project_id: str, tag: str) -> None:
        self.require_manager(req, project_id)
        self.check(req, project_id, tag)
        self.identity.place(project_id).set_tags(project_id, lambda tags: {*tags} - {tag})


class ProjectsOfUser(KeystoneController):
    path = '/users/{user_id}/projects'

    @operation('GET', policy=ANY_CALLER)
    def list(self, req: Request, user_id: str) -> dict[str, Any]:
        self.require_self_or_domain_reader(req, user_id)
        self.identity.users.get(user_id)
        wanted = filters(req, 'name', 'domain_id', 'enabled')
        found = [
            project
            for project in self.identity.projects.granted(user_id)
            if all(getattr(project, name) == value for name, value in wanted.items())
        ]
        return collection(req, 'projects', found, project_view)


def tagged(req: Request, projects: Iterable[Project | Domain]) -> list[Project | Domain]:
    """The projects whose tags match the tag filters of the query."""
    requested = [(name, value) for name in TAG_FILTERS for value in req.query.get(name, ())]
    tests = [(TAG_FILTERS[name], set(value.split(','))) for name, value in requested]
    return [project for project in projects if all(test(wanted, set(project.tags)) for test, wanted in tests)]


def project_view(req: Request, project: Project | Domain) -> dict[str, Any]:
    if isinstance(project, Domain):
        return shown(req, 'projects', project, COLUMNS, **AS_DOMAIN)
    return shown(req, 'projects', project, (*COLUMNS, *PLACE), is_domain=False)


def _ids_above(project: Mapping[str, Any], above: Sequence[Project]) -> dict[str, Any] | None:
    """{parent: {its parent: ... {domain: None}}}; None for a domain."""
    parent_id = project['parent_id']
    parent = next((each._asdict() for each in above if each.id == parent_id), {'parent_id': None})
    return {parent_id: _ids_above(parent, above)} if parent_id else None


def _ids_below(project: Mapping[str, Any], below: Sequence[Project]) -> dict[str, Any] | None:
    """{child: {its child: ...}}; None if there are no children."""
    children = [each for each in below if each.parent_id == project['id']]
    return {each.id: _ids_below(each._asdict(), below) for each in children} or None
