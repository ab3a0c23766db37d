"""Limits for other services: the default limit of a resource, and overrides for a project or domain."""

from typing import Any

from computeapi.db.catalog import Limit, RegisteredLimit
from computeapi.standalone.access import ADMIN, require
from computeapi.standalone.identity.access import ANY_CALLER, SYSTEM_READER
from computeapi.standalone.identity.base import (
    ID,
    NAME,
    TEXT,
    KeystoneController,
    Noun,
    OpenCollection,
    collection,
    filters,
    shown,
)
from computeapi.standalone.identity.catalog import REGION_ID
from computeapi.standalone.schema import having, optional, wrapped
from computeapi.web.controller import operation
from computeapi.web.request import Request

AMOUNT = {'type': 'integer', 'minimum': -1, 'maximum': 2**31 - 1}
PLACE = {'service_id': ID, 'region_id': optional(REGION_ID), 'resource_name': NAME}
REGISTERED = {**PLACE, 'default_limit': AMOUNT, 'description': TEXT}
OWN = {**PLACE, 'project_id': optional(ID), 'domain_id': optional(ID), 'resource_limit': AMOUNT, 'description': TEXT}


def several(name: str, properties: dict[str, Any], *required: str) -> dict[str, Any]:
    """The schema of {name: [{properties}]}."""
    each = having(properties, *required, additionalProperties=False)
    return having({name: {'type': 'array', 'items': each, 'minItems': 1, 'maxItems': 1000}}, name)


REGISTER = several('registered_limits', REGISTERED, 'service_id', 'resource_name', 'default_limit')
CREATE = several('limits', OWN, 'service_id', 'resource_name', 'resource_limit')
UPDATE = wrapped('limit', {'resource_limit': AMOUNT, 'description': TEXT})


class RegisteredLimits(OpenCollection):
    path = '/registered_limits'
    kind = 'registered_limits'
    noun = Noun('registered_limit', REGISTERED, (), tuple(PLACE), closed=True)

    @operation('POST', policy=ADMIN, body=REGISTER, status=201)
    def create(self, req: Request, body: Any) -> dict[str, Any]:
        """Create all limits of the list, or none."""
        made = self.identity.registered_limits.create_all([_columns(each) for each in body['registered_limits']])
        return {'registered_limits': [self.view(req, limit) for limit in made]}

    @operation('PATCH', '/{record_id}', policy=ADMIN, body=wrapped('registered_limit', REGISTERED))
    def update(self, req: Request, record_id: str, body: Any) -> dict[str, Any]:
        changes = _columns(body['registered_limit'])
        return self.single(req, self.identity.registered_limits.update(record_id, **changes))

    def view(self, req: Request, record: RegisteredLimit) -> dict[str, Any]:
        return shown(req, 'registered_limits', record, REGISTERED, **_absent(record))


class KeystoneLimits(KeystoneController):
    path = '/limits'

    @operation('GET', '/model', policy=ANY_CALLER)
    def model(self, req: Request) -> dict[str, Any]:
        description = 'What a project may have does not depend on other projects.'
        return {'model': {'name': 'flat', 'description': description}}

    @operation('GET', policy=ANY_CALLER)
    def list(self, req: Request) -> dict[str, Any]:
        """List all limits for readers of the system and services, those of the caller's project or domain for
        others."""
        wanted: dict[str, Any] = filters(req, *PLACE)
        owner = req.parameter('project_id') or req.parameter('domain_id')
        if not (req.allows(SYSTEM_READER) or req.context.is_service):
            owners = self.owners(req)
            wanted['owner_id'] = owners if owner is None else owners & {owner}
        elif owner is not None:
            wanted['owner_id'] = owner
        found = self.identity.limits.list(**wanted)
        return collection(req, 'limits', found, limit_view)

    @operation('POST', policy=ADMIN, body=CREATE, status=201)
    def create(self, req: Request, body: dict[str, Any]) -> dict[str, Any]:
        made = self.identity.limits.create_all([_columns(each) for each in body['limits']])
        return {'limits': [limit_view(req, limit) for limit in made]}

    @operation('GET', '/{limit_id}', policy=ANY_CALLER)
    def show(self, req: Request, limit_id: str) -> dict[str, Any]:
        found = self.identity.limits.get(limit_id)
        require(req.allows(SYSTEM_READER) or found.owner_id in self.owners(req))
        return {'limit': limit_view(req, found)}

    @operation('PATCH', '/{limit_id}', policy=ADMIN, body=UPDATE)
    def update(self, req: Request, limit_id: str, body: dict[str, Any]) -> dict[str, Any]:
        return {'limit': limit_view(req, self.identity.limits.update(limit_id, **_columns(body['limit'])))}

    @operation('DELETE', '/{limit_id}', policy=ADMIN, status=204)
    def delete(self, req: Request, limit_id: str) -> None:
        self.identity.limits.delete(limit_id)

    def owners(self, req: Request) -> set[str | None]:
        """The caller's project, or domain and the projects in it."""
        own = req.context.domain_id
        inside = {project.id for project in self.identity.projects.list(domain_id=own)} if own else set()
        return inside | {own or req.context.project_id}


def limit_view(req: Request, limit: Limit) -> dict[str, Any]:
    domain_id = None if limit.project_id else limit.owner_id
    names = ('service_id', 'resource_name', 'project_id', 'resource_limit')
    return shown(req, 'limits', limit, names, domain_id=domain_id, **_absent(limit))


def _absent(limit: Limit | RegisteredLimit) -> dict[str, str | None]:
    """The texts of a limit, with null for empty ones."""
    return {'region_id': limit.region_id or None, 'description': limit.description or None}


def _columns(document: dict[str, Any]) -> dict[str, Any]:
    """The columns for a document, with the empty string for texts that are null."""
    texts = ('region_id', 'description')
    return {name: '' if name in texts and value is None else value for name, value in document.items()}
