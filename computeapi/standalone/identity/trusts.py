"""Trusts between users; they cannot be redelegated."""

from collections.abc import Mapping
from typing import Any

from computeapi import errors
from computeapi.db.identity import Trust
from computeapi.db.role_assignments import Role
from computeapi.standalone.access import CALLER, require
from computeapi.standalone.identity.access import SYSTEM_READER
from computeapi.standalone.identity.base import (
    BOOLEAN,
    ID,
    KeystoneController,
    collection,
    expiry_of,
    filters,
    moment,
    reference,
    shown,
    url,
)
from computeapi.standalone.identity.roles import role_view
from computeapi.standalone.schema import optional, wrapped
from computeapi.web.controller import operation
from computeapi.web.request import Request

CREATE = wrapped(
    'trust',
    {
        'trustor_user_id': ID,
        'trustee_user_id': ID,
        'project_id': optional(ID),
        'impersonation': BOOLEAN,
        'roles': {'type': 'array', 'items': reference({}, 'name'), 'maxItems': 100},
        'expires_at': {'type': ['string', 'null'], 'maxLength': 64},
        'remaining_uses': {'type': ['integer', 'null'], 'minimum': 1, 'maximum': 2**31 - 1},
        'allow_redelegation': {'enum': [False, None]},
        'redelegation_count': {'type': ['integer', 'null'], 'minimum': 0},
    },
    'trustor_user_id',
    'trustee_user_id',
    'impersonation',
)
PARTIES = ('trustor_user_id', 'trustee_user_id')
SHOWN = (*PARTIES, 'project_id', 'impersonation', 'remaining_uses')
OF_HANDING_ON = {'deleted_at': None, 'redelegated_trust_id': None, 'redelegation_count': 0}


class KeystoneTrusts(KeystoneController):
    path = '/OS-TRUST/trusts'

    @operation('GET', policy=CALLER)
    def list(self, req: Request) -> dict[str, Any]:
        """List all trusts for readers of the system. Others must filter by their own ID as trustor or trustee."""
        wanted = filters(req, *PARTIES)
        require(req.allows(SYSTEM_READER) or req.context.user_id in wanted.values())
        return collection(req, 'trusts', self.identity.trusts.list(**wanted), trust_view)

    @operation('POST', policy=CALLER, body=CREATE, status=201)
    def create(self, req: Request, body: dict[str, Any]) -> dict[str, Any]:
        requested = body['trust']
        require(req.context.user_id == requested['trustor_user_id'] and not req.context.system_scope)
        trust = self.identity.trusts.create(
            self.token(req),
            requested['trustee_user_id'],
            requested.get('project_id'),
            requested.get('roles', ()),
            impersonation=requested['impersonation'],
            expires_at=expiry_of(requested),
            remaining_uses=requested.get('remaining_uses'),
        )
        return self.single(req, trust)

    @operation('GET', '/{trust_id}', policy=CALLER)
    def show(self, req: Request, trust_id: str) -> dict[str, Any]:
        return self.single(req, self.visible_trust(req, trust_id))

    @operation('DELETE', '/{trust_id}', policy=CALLER, status=204)
    def delete(self, req: Request, trust_id: str) -> None:
        trust = self.identity.trusts.get(trust_id)
        require(req.context.is_admin or req.context.user_id == trust.trustor_user_id)
        self.identity.trusts.delete(self.token(req), trust_id)

    @operation('GET', '/{trust_id}/roles', policy=CALLER)
    def roles(self, req: Request, trust_id: str) -> dict[str, Any]:
        return collection(req, 'roles', self.roles_of(self.visible_trust(req, trust_id)).values(), role_view)

    @operation('GET', '/{trust_id}/roles/{role_id}', policy=CALLER)
    def role(self, req: Request, trust_id: str, role_id: str) -> dict[str, Any]:
        roles = self.roles_of(self.visible_trust(req, trust_id))
        if role_id not in roles:
            raise errors.NotFound(f'Could not find role: {role_id}.')
        return {'role': role_view(req, roles[role_id])}

    def visible_trust(self, req: Request, trust_id: str) -> Trust:
        """A trust, if the caller is its trustor or trustee or a reader of the system."""
        trust = self.identity.trusts.get(trust_id)
        parties = (trust.trustor_user_id, trust.trustee_user_id)
        require(req.allows(SYSTEM_READER) or req.context.user_id in parties)
        return trust

    def roles_of(self, trust: Trust) -> Mapping[str, Role]:
        return {role.id: role for role in self.identity.roles.list() if role.id in trust.role_ids}

    def single(self, req: Request, trust: Trust) -> dict[str, Any]:
        roles = [role_view(req, role) for role in self.roles_of(trust).values()]
        links = {'self': url(req, 'OS-TRUST/trusts', trust.id, 'roles'), 'previous': None, 'next': None}
        return {'trust': trust_view(req, trust) | {'roles': roles, 'roles_links': links}}


def trust_view(req: Request, trust: Trust) -> dict[str, Any]:
    expires_at = moment(trust.expires_at) if trust.expires_at else None
    return shown(req, 'OS-TRUST/trusts', trust, SHOWN, expires_at=expires_at, **OF_HANDING_ON)
