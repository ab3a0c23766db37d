"""Roles, and who holds them on projects, domains and the system."""

from collections.abc import Sequence
from typing import Any

from computeapi.backends.identity.local.roles import SYSTEM, Target
from computeapi.db.identity import Assignment, Role
from computeapi.standalone.access import ADMIN, CALLER
from computeapi.standalone.identity.base import (
    NAME,
    TEXT,
    KeystoneController,
    collection,
    filters,
    flag,
    require_self,
    shown,
    url,
)
from computeapi.standalone.schema import having, wrapped
from computeapi.web.controller import operation
from computeapi.web.request import Request

PROPERTIES = {
    'name': NAME,
    'description': TEXT,
    'domain_id': {'type': 'null'},
    'options': having({'immutable': {'type': ['boolean', 'null']}}, additionalProperties=False),
}
CREATE = wrapped('role', PROPERTIES, 'name')
UPDATE = wrapped('role', PROPERTIES)

# The filters of role assignments that name a grant's column.
COLUMNS = {'user.id': 'user_id', 'role.id': 'role_id', 'scope.project.id': 'target_id', 'scope.domain.id': 'target_id'}

# Users are in no groups, and a grant on a domain does not reach into its projects.
MATCHING_NOTHING = ('group.id', 'scope.OS-INHERIT:inherited_to')


class KeystoneRoles(KeystoneController):
    path = '/roles'

    @operation('GET', policy=ADMIN)
    def list(self, req: Request) -> dict[str, Any]:
        # No role belongs to a domain.
        found = [] if req.parameter('domain_id') else self.identity.roles.list(**filters(req, 'name'))
        return collection(req, 'roles', found, role_view)

    @operation('POST', policy=ADMIN, body=CREATE, status=201)
    def create(self, req: Request, body: dict[str, Any]) -> dict[str, Any]:
        return {'role': role_view(req, self.identity.roles.create(**_columns(body['role'])))}

    @operation('GET', '/{role_id}', policy=ADMIN)
    def show(self, req: Request, role_id: str) -> dict[str, Any]:
        return {'role': role_view(req, self.identity.roles.get(role_id))}

    @operation('PATCH', '/{role_id}', policy=ADMIN, body=UPDATE)
    def update(self, req: Request, role_id: str, body: dict[str, Any]) -> dict[str, Any]:
        return {'role': role_view(req, self.identity.roles.update(role_id, **_columns(body['role'])))}

    @operation('DELETE', '/{role_id}', policy=ADMIN, status=204)
    def delete(self, req: Request, role_id: str) -> None:
        self.identity.roles.delete(role_id)


class RoleGrants(KeystoneController):
    """The roles of a user on one kind of target, which subclasses have in their paths."""

    @operation('GET', policy=CALLER)
    def list(self, req: Request, user_id: str, **target: str) -> dict[str, Any]:
        require_self(req, user_id)
        return collection(req, 'roles', self.identity.grants.roles(user_id, _target(**target)), role_view)

    @operation('PUT', '/{role_id}', policy=ADMIN, status=204)
    def add(self, req: Request, user_id: str, role_id: str, **target: str) -> None:
        self.identity.grants.add(user_id, _target(**target), role_id)

    @operation('HEAD', '/{role_id}', policy=ADMIN, status=204)
    @operation('GET', '/{role_id}', policy=ADMIN, status=204)
    def check(self, req: Request, user_id: str, role_id: str, **target: str) -> None:
        self.identity.grants.check(user_id, _target(**target), role_id)

    @operation('DELETE', '/{role_id}', policy=ADMIN, status=204)
    def remove(self, req: Request, user_id: str, role_id: str, **target: str) -> None:
        self.identity.grants.remove(user_id, _target(**target), role_id)


class ProjectGrants(RoleGrants):
    path = '/projects/{project_id}/users/{user_id}/roles'


class DomainGrants(RoleGrants):
    path = '/domains/{domain_id}/users/{user_id}/roles'


class SystemGrants(RoleGrants):
    path = '/system/users/{user_id}/roles'


class RoleAssignments(KeystoneController):
    path = '/role_assignments'

    @operation('GET', policy=ADMIN)
    def list(self, req: Request) -> dict[str, Any]:
        found: Sequence[Assignment] = ()
        if not any(name in req.query for name in MATCHING_NOTHING):
            found = self.identity.grants.assignments(effective=flag(req, 'effective'), **_assignment_filters(req))
        domains = {domain.id: domain.name for domain in self.identity.domains.list()}
        names = domains if flag(req, 'include_names') else None
        return collection(req, 'role_assignments', found, lambda req, item: assignment_view(req, item, names))


def role_view(req: Request, role: Role) -> dict[str, Any]:
    options = {'immutable': True} if role.immutable else {}
    return shown(req, 'roles', role, ('name', 'description'), domain_id=None, options=options)


def assignment_view(req: Request, item: Assignment, domains: dict[str, str] | None) -> dict[str, Any]:
    """An assignment; with the names of domains, all names are shown."""
    target = () if item.target_kind == 'system' else (item.target_id,)
    kind = item.target_kind if item.target_kind == 'system' else f'{item.target_kind}s'
    links = {'assignment': url(req, kind, *target, 'users', item.user_id, 'roles', item.prior_role_id or item.role_id)}
    if item.prior_role_id:
        links['prior_role'] = url(req, 'prior_roles', item.prior_role_id, 'implies', item.role_id)
    return {
        'user': _named(item.user_id, item.user_name, item.user_domain_id, domains),
        'role': {'id': item.role_id} | ({'name': item.role_name} if domains is not None else {}),
        'scope': _scope(item, domains),
        'links': links,
    }


def _scope(item: Assignment, domains: dict[str, str] | None) -> dict[str, Any]:
    if item.target_kind == 'project':
        return {'project': _named(item.target_id, item.project_name, item.project_domain_id, domains)}
    if item.target_kind == 'domain':
        return {'domain': {'id': item.target_id} | ({'name': domains[item.target_id]} if domains is not None else {})}
    return {'system': {'all': True}}


def _named(record_id: str, name: str | None, domain_id: str | None, domains: dict[str, str] | None) -> dict[str, Any]:
    if domains is None:
        return {'id': record_id}
    return {'id': record_id, 'name': name, 'domain': {'id': domain_id, 'name': domains.get(domain_id or '')}}


def _assignment_filters(req: Request) -> dict[str, str]:
    wanted = {column: req.parameter(name) for name, column in COLUMNS.items() if name in req.query}
    for kind in ('project', 'domain'):
        if f'scope.{kind}.id' in req.query:
            wanted['target_kind'] = kind
    if 'scope.system' in req.query:
        wanted['target_kind'] = 'system'
    return wanted


def _target(project_id: str | None = None, domain_id: str | None = None) -> Target:
    if project_id is not None:
        return Target('project', project_id)
    return SYSTEM if domain_id is None else Target('domain', domain_id)


def _columns(role: dict[str, Any]) -> dict[str, Any]:
    columns: dict[str, Any] = {name: role[name] or '' for name in ('name', 'description') if name in role}
    if 'immutable' in role.get('options', {}):
        columns['immutable'] = bool(role['options']['immutable'])
    return columns
