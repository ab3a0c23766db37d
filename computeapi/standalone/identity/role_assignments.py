"""Role assignments, as granted and as effective."""

import types
from typing import Any

from computeapi import errors
from computeapi.backends.identity.local.roles import SYSTEM, Target
from computeapi.db.role_assignments import NO_DOMAIN, Assignment
from computeapi.standalone.access import ADMIN, require
from computeapi.standalone.identity.access import CLOUD_READER, DOMAIN_MANAGER, DOMAIN_READER, MANAGED_ROLES
from computeapi.standalone.identity.base import KeystoneController, collection, flag, url
from computeapi.standalone.identity.roles import role_view
from computeapi.web.controller import operation
from computeapi.web.request import Request

# The filters of role assignments that name a column.
COLUMNS = {
    'user.id': 'user_id',
    'group.id': 'group_id',
    'role.id': 'role_id',
    'scope.project.id': 'target_id',
    'scope.domain.id': 'target_id',
}
INHERITED = 'inherited_to_projects'


class RoleGrants(KeystoneController):
    """The roles granted to one user or group on one target; subclasses have both in their paths."""

    actor: str
    inherited = False

    @operation('GET', policy=DOMAIN_READER)
    def list(self, req: Request, **ids: str) -> dict[str, Any]:
        req.check(DOMAIN_READER, self.domains(ids))
        return collection(req, 'roles', self.identity.grants.roles(**self.grant(ids)), role_view)

    @operation('PUT', '/{role_id}', policy=DOMAIN_MANAGER, status=204)
    def add(self, req: Request, role_id: str, **ids: str) -> None:
        self.require_manager(req, role_id, ids)
        self.identity.grants.add(role_id=role_id, **self.grant(ids))

    @operation('GET', '/{role_id}', policy=DOMAIN_READER, status=204)
    def check(self, req: Request, role_id: str, **ids: str) -> None:
        role = self.identity.roles.get(role_id)
        own = {} if role.domain_id == NO_DOMAIN else {'role': role.domain_id}
        req.check(DOMAIN_READER, self.domains(ids) | own)
        self.identity.grants.check(role_id=role_id, **self.grant(ids))

    @operation('DELETE', '/{role_id}', policy=DOMAIN_MANAGER, status=204)
    def remove(self, req: Request, role_id: str, **ids: str) -> None:
        self.require_manager(req, role_id, ids)
        self.identity.grants.remove(role_id=role_id, **self.grant(ids))

    def require_manager(self, req: Request, role_id: str, ids: dict[str, str]) -> None:
        """Allows administrators, and managers of the domain for roles that do not give more rights than they have."""
        req.check(DOMAIN_MANAGER, self.domains(ids))
        require(req.context.is_admin or self.identity.roles.get(role_id).name in MANAGED_ROLES)

    def domains(self, ids: dict[str, str]) -> dict[str, str | None]:
        """The domains of the actor and of the target."""
        kinds = [kind for kind in (self.actor, 'project') if f'{kind}_id' in ids]
        found = {kind: self.domain_of(f'{kind}s', ids[f'{kind}_id']) for kind in kinds}
        return found if 'project' in found else found | {'domain': ids.get('domain_id')}

    def grant(self, ids: dict[str, str]) -> dict[str, Any]:
        """The actor, the target and the inheritance of a grant, from the IDs in the path."""
        targets = [Target(kind, ids[f'{kind}_id']) for kind in ('project', 'domain') if f'{kind}_id' in ids]
        return {
            'kind': self.actor,
            'actor_id': ids[f'{self.actor}_id'],
            'target': targets[0] if targets else SYSTEM,
            'inherited': self.inherited,
        }


class InheritedGrants(RoleGrants):
    """The roles granted to one user or group for all projects below a target."""

    inherited = True

    @operation('GET', f'/{INHERITED}', policy=DOMAIN_READER)
    def list(self, req: Request, **ids: str) -> dict[str, Any]:
        return super().list(req, **ids)

    @operation('PUT', f'/{{role_id}}/{INHERITED}', policy=DOMAIN_MANAGER, status=204)
    def add(self, req: Request, role_id: str, **ids: str) -> None:
        super().add(req, role_id, **ids)

    @operation('GET', f'/{{role_id}}/{INHERITED}', policy=DOMAIN_READER, status=204)
    def check(self, req: Request, role_id: str, **ids: str) -> None:
        super().check(req, role_id, **ids)

    @operation('DELETE', f'/{{role_id}}/{INHERITED}', policy=DOMAIN_MANAGER, status=204)
    def remove(self, req: Request, role_id: str, **ids: str) -> None:
        super().remove(req, role_id, **ids)


class SystemGrants(RoleGrants):
    """The roles granted to one user or group on the system."""

    @operation('GET', policy=CLOUD_READER)
    def list(self, req: Request, **ids: str) -> dict[str, Any]:
        return super().list(req, **ids)

    @operation('PUT', '/{role_id}', policy=ADMIN, status=204)
    def add(self, req: Request, role_id: str, **ids: str) -> None:
        super().add(req, role_id, **ids)

    @operation('GET', '/{role_id}', policy=CLOUD_READER, status=204)
    def check(self, req: Request, role_id: str, **ids: str) -> None:
        super().check(req, role_id, **ids)

    @operation('DELETE', '/{role_id}', policy=ADMIN, status=204)
    def remove(self, req: Request, role_id: str, **ids: str) -> None:
        super().remove(req, role_id, **ids)


def _grants(base: type[RoleGrants], path: str, actor: str) -> type[RoleGrants]:
    """The controller of the roles of one kind of actor on one kind of target."""
    facts = {'path': f'{path}/{actor}s/{{{actor}_id}}/roles', 'actor': actor}
    return types.new_class(f'{base.__name__}[{path}, {actor}]', (base,), exec_body=lambda body: body.update(facts))


TARGETS = ('/projects/{project_id}', '/domains/{domain_id}')
GRANTS = tuple(
    _grants(base, path, actor)
    for base, paths in (
        (RoleGrants, TARGETS),
        (SystemGrants, ('/system',)),
        (InheritedGrants, tuple(f'/OS-INHERIT{path}' for path in TARGETS)),
    )
    for path in paths
    for actor in ('user', 'group')
)


class RoleAssignments(KeystoneController):
    path = '/role_assignments'

    @operation('GET', policy=DOMAIN_READER)
    def list(self, req: Request) -> dict[str, Any]:
        effective = flag(req, 'effective')
        wanted = _filters(req, effective)
        if 'below' in wanted:
            req.check(DOMAIN_READER, {'project': self.domain_of('projects', wanted['below'])})
        found = self.identity.grants.assignments(effective=effective, **wanted)
        own = req.context.domain_id
        if own and 'below' not in wanted:
            found = [each for each in found if own in (each.target_id, each.project_domain_id)]
        domains = {domain.id: domain.name for domain in self.identity.domains.list()}
        names = domains if flag(req, 'include_names') else None
        return collection(req, 'role_assignments', found, lambda req, item: assignment_view(req, item, names))


def assignment_view(req: Request, item: Assignment, domains: dict[str, str] | None) -> dict[str, Any]:
    """An assignment. domains: the names of domains by ID; if given, all names are shown."""
    if item.group_id:
        actor = {'group': _named(item.group_id, item.group_name, item.group_domain_id, domains)}
    else:
        actor = {'user': _named(item.user_id, item.user_name, item.user_domain_id, domains)}
    role: dict[str, Any] = {'id': item.role_id} | ({'name': item.role_name} if domains is not None else {})
    if domains is not None and item.role_domain_id:
        role['domain'] = {'id': item.role_domain_id, 'name': domains.get(item.role_domain_id)}
    return {**actor, 'role': role, 'scope': _scope(item, domains), 'links': _links(req, item)}


def _links(req: Request, item: Assignment) -> dict[str, str]:
    target = () if item.origin_kind == 'system' else (item.origin_id,)
    kind = item.origin_kind if item.origin_kind == 'system' else f'{item.origin_kind}s'
    group_id = item.group_id or item.member_of
    actor = ('groups', group_id) if group_id else ('users', item.user_id or '')
    path = (kind, *target, *actor, 'roles', item.granted_role_id)
    links = {'assignment': url(req, *(('OS-INHERIT', *path, INHERITED) if item.inherited else path))}
    if item.member_of:
        links['membership'] = url(req, 'groups', item.member_of, 'users', item.user_id or '')
    if item.prior_role_id:
        links['prior_role'] = url(req, 'prior_roles', item.prior_role_id, 'implies', item.role_id)
    return links


def _scope(item: Assignment, domains: dict[str, str] | None) -> dict[str, Any]:
    if item.target_kind == 'system':
        return {'system': {'all': True}}
    # An effective inherited assignment is shown as a plain one on the project.
    inherited = {'OS-INHERIT:inherited_to': 'projects'} if item.inherited and item.target_id == item.origin_id else {}
    if item.target_kind == 'project':
        return {'project': _named(item.target_id, item.project_name, item.project_domain_id, domains), **inherited}
    name = {} if domains is None else {'name': domains.get(item.target_id)}
    return {'domain': {'id': item.target_id, **name}, **inherited}


def _named(
    record_id: str | None, name: str | None, domain_id: str | None, domains: dict[str, str] | None
) -> dict[str, Any]:
    if domains is None:
        return {'id': record_id}
    return {'id': record_id, 'name': name, 'domain': {'id': domain_id, 'name': domains.get(domain_id or '')}}


def _filters(req: Request, effective: bool) -> dict[str, Any]:
    """The columns that the query filters by; raises Invalid for contradictory filters."""
    wanted: dict[str, Any] = {column: req.parameter(name) for name, column in COLUMNS.items() if name in req.query}
    kinds = [kind for kind in ('project', 'domain') if f'scope.{kind}.id' in req.query]
    kinds += ['system'] if 'scope.system' in req.query else []
    if len(kinds) > 1 or {'user_id', 'group_id'} <= wanted.keys() or (effective and 'group_id' in wanted):
        raise errors.Invalid(
            'Filters by scope are mutually exclusive, as are those by user and group; effective assignments are those '
            'of users only.'
        )
    if kinds:
        wanted['target_kind'] = kinds[0]
    if 'scope.OS-INHERIT:inherited_to' in req.query:
        wanted['inherited'] = req.parameter('scope.OS-INHERIT:inherited_to') == 'projects'
    if flag(req, 'include_subtree'):
        if kinds != ['project']:
            raise errors.Invalid('include_subtree requires scope.project.id.')
        wanted['below'] = wanted.pop('target_id')
    return wanted
