"""Roles, and the roles that they imply."""

from collections.abc import Iterable, Mapping
from typing import Any

from computeapi.db.role_assignments import NO_DOMAIN, Role
from computeapi.standalone.access import ADMIN, require
from computeapi.standalone.identity.access import ANY_CALLER, CLOUD_READER, MANAGED_ROLES, ROLE_READER, SYSTEM_READER
from computeapi.standalone.identity.base import (
    ID,
    NAME,
    OPTIONS,
    TEXT,
    KeystoneController,
    collection,
    fields,
    filters,
    record,
    shown,
    url,
)
from computeapi.standalone.schema import optional
from computeapi.web.controller import operation
from computeapi.web.request import Request

PROPERTIES = {
    'name': NAME,
    'description': TEXT,
    'domain_id': optional(ID),
    'options': OPTIONS,
}
CREATE = record('role', PROPERTIES, 'name')
UPDATE = record('role', PROPERTIES)


class KeystoneRoles(KeystoneController):
    path = '/roles'

    @operation('GET', policy=ROLE_READER)
    def list(self, req: Request) -> dict[str, Any]:
        if req.parameter('domain_id'):
            req.check(CLOUD_READER)
        wanted = {'domain_id': NO_DOMAIN} | filters(req, 'name', 'domain_id')
        found = self.identity.roles.list(**wanted)
        return collection(req, 'roles', found, role_view)

    @operation('POST', policy=ADMIN, body=CREATE, status=201)
    def create(self, req: Request, body: dict[str, Any]) -> dict[str, Any]:
        values = _columns(body['role'], PROPERTIES, {})
        return {'role': role_view(req, self.identity.roles.create(**values))}

    @operation('GET', '/{role_id}', policy=ANY_CALLER)
    def show(self, req: Request, role_id: str) -> dict[str, Any]:
        role = self.identity.roles.get(role_id)
        if role.domain_id != NO_DOMAIN:
            req.check(CLOUD_READER)
        managed = 'manager' in req.context.roles and role.name in MANAGED_ROLES
        require(managed or req.allows(SYSTEM_READER))
        return {'role': role_view(req, role)}

    @operation('PATCH', '/{role_id}', policy=ADMIN, body=UPDATE)
    def update(self, req: Request, role_id: str, body: dict[str, Any]) -> dict[str, Any]:
        current = role_view(req, self.identity.roles.get(role_id))
        changes = _columns(body['role'], PROPERTIES.keys() - {'domain_id'}, current)
        return {'role': role_view(req, self.identity.roles.update(role_id, **changes))}

    @operation('DELETE', '/{role_id}', policy=ADMIN, status=204)
    def delete(self, req: Request, role_id: str) -> None:
        self.identity.roles.delete(role_id)

    def look_up(self, method: str, ids: Mapping[str, str]) -> None:
        if 'role_id' in ids:
            self.identity.roles.get(ids['role_id'])


class ImpliedRoles(KeystoneController):
    """The roles that a role implies."""

    path = '/roles/{role_id}/implies'

    @operation('GET', policy=CLOUD_READER)
    def list(self, req: Request, role_id: str) -> dict[str, Any]:
        prior = self.identity.roles.get(role_id)
        roles = {role.id: role for role in self.identity.roles.list()}
        implied = [roles[each] for each in self.identity.roles.implications().get(role_id, ()) if each in roles]
        return {'role_inference': inference_view(req, prior, implied), 'links': {'self': req.path_url}}

    @operation('PUT', '/{implied_id}', policy=ADMIN, status=201)
    def add(self, req: Request, role_id: str, implied_id: str) -> dict[str, Any]:
        self.identity.roles.imply(role_id, implied_id)
        return self.show(req, role_id, implied_id)

    @operation('GET', '/{implied_id}', policy=CLOUD_READER)
    def show(self, req: Request, role_id: str, implied_id: str) -> dict[str, Any]:
        self.check(req, role_id, implied_id)
        prior, implied = self.identity.roles.get(role_id), self.identity.roles.get(implied_id)
        inference = {'prior_role': reference_view(req, prior), 'implies': reference_view(req, implied)}
        return {'role_inference': inference, 'links': {'self': req.path_url}}

    @operation('HEAD', '/{implied_id}', policy=CLOUD_READER, status=204)
    def check(self, req: Request, role_id: str, implied_id: str) -> None:
        self.identity.roles.check_implied(role_id, implied_id)

    @operation('DELETE', '/{implied_id}', policy=ADMIN, status=204)
    def remove(self, req: Request, role_id: str, implied_id: str) -> None:
        self.identity.roles.no_longer_imply(role_id, implied_id)


class RoleInferences(KeystoneController):
    path = '/role_inferences'

    @operation('GET', policy=CLOUD_READER)
    def list(self, req: Request) -> dict[str, Any]:
        roles = {role.id: role for role in self.identity.roles.list()}
        found = [
            inference_view(req, roles[prior], [roles[each] for each in implied if each in roles])
            for prior, implied in self.identity.roles.implications().items()
            if prior in roles
        ]
        return {'role_inferences': found, 'links': {'self': req.path_url}}


def inference_view(req: Request, prior: Role, implied: Iterable[Role]) -> dict[str, Any]:
    return {'prior_role': reference_view(req, prior), 'implies': [reference_view(req, role) for role in implied]}


def reference_view(req: Request, role: Role) -> dict[str, Any]:
    """A role as shown in implications."""
    return {'id': role.id, 'name': role.name, 'links': {'self': url(req, 'roles', role.id)}}


def role_view(req: Request, role: Role) -> dict[str, Any]:
    options = {'immutable': True} if role.immutable else {}
    return shown(req, 'roles', role, ('name', 'description'), domain_id=role.domain_id or None, options=options)


def _columns(role: dict[str, Any], names: Iterable[str], current: Mapping[str, Any]) -> dict[str, Any]:
    """The columns for the role in a body, whose options are a column each."""
    columns = fields(role, names, current)
    if 'domain_id' in columns:
        columns['domain_id'] = columns['domain_id'] or NO_DOMAIN
    for name, value in columns.pop('options', {}).items():
        columns[name] = bool(value)
    return columns
