"""Application credentials of a user."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from computeapi import errors
from computeapi.clock import parsed
from computeapi.db.identity import ApplicationCredential
from computeapi.standalone.access import CALLER, require
from computeapi.standalone.identity.base import (
    NAME,
    SECRET,
    TEXT,
    KeystoneController,
    collection,
    filters,
    reference,
    require_self,
    shown,
)
from computeapi.standalone.schema import optional, wrapped
from computeapi.web.controller import operation
from computeapi.web.request import Request

CREATE = wrapped(
    'application_credential',
    {
        'name': NAME,
        'description': TEXT,
        'secret': optional(SECRET),
        'expires_at': {'type': ['string', 'null'], 'maxLength': 64},
        'roles': {'type': ['array', 'null'], 'items': reference({}, 'name'), 'maxItems': 100},
        'unrestricted': {'type': ['boolean', 'null']},
        'access_rules': {'type': ['array', 'null'], 'maxItems': 0},
        'project_id': {'type': ['string', 'null']},
    },
    'name',
)

SHOWN = ('name', 'description', 'user_id', 'project_id', 'unrestricted')


class KeystoneCredentials(KeystoneController):
    path = '/users/{user_id}/application_credentials'

    @operation('GET', policy=CALLER)
    def list(self, req: Request, user_id: str) -> dict[str, Any]:
        require_self(req, user_id)
        self.identity.users.get(user_id)
        wanted = filters(req, 'name')
        found = self.identity.credentials.list(user_id=user_id, **wanted)
        roles = self.role_names()
        return collection(req, 'application_credentials', found, lambda req, row: credential_view(req, row, roles))

    @operation('POST', policy=CALLER, body=CREATE, status=201)
    def create(self, req: Request, user_id: str, body: dict[str, Any]) -> dict[str, Any]:
        require(req.context.user_id == user_id)
        asked = body['application_credential']
        token = self.identity.tokens.get(req.context.auth_token or '')
        if asked.get('project_id') not in (None, token.project_id):
            raise errors.Invalid('Invalid input for field/attribute project_id. It must be the project of the token.')
        row, secret = self.identity.credentials.create(
            token,
            asked['name'],
            description=asked.get('description') or '',
            roles=asked.get('roles') or (),
            secret=asked.get('secret'),
            expires_at=_moment(asked.get('expires_at')),
            unrestricted=bool(asked.get('unrestricted')),
        )
        view = credential_view(req, row, self.role_names())
        return {'application_credential': view | {'secret': secret}}

    @operation('GET', '/{credential_id}', policy=CALLER)
    def show(self, req: Request, user_id: str, credential_id: str) -> dict[str, Any]:
        require_self(req, user_id)
        row = self.identity.credentials.of(user_id, credential_id)
        return {'application_credential': credential_view(req, row, self.role_names())}

    @operation('DELETE', '/{credential_id}', policy=CALLER, status=204)
    def delete(self, req: Request, user_id: str, credential_id: str) -> None:
        require_self(req, user_id)
        token = self.identity.tokens.get(req.context.auth_token or '')
        self.identity.credentials.delete(token, user_id, credential_id)

    def role_names(self) -> dict[str, str]:
        return {role.id: role.name for role in self.identity.roles.list()}


def credential_view(req: Request, row: ApplicationCredential, roles: Mapping[str, str]) -> dict[str, Any]:
    others = {
        'roles': [{'id': each, 'name': roles[each], 'domain_id': None} for each in row.role_ids if each in roles],
        # Clients read this moment, unlike those of a token, without a zone.
        'expires_at': row.expires_at.isoformat(timespec='microseconds') if row.expires_at else None,
        'system': None,
    }
    return shown(req, f'users/{row.user_id}/application_credentials', row, SHOWN, **others)


def _moment(text: str | None) -> datetime | None:
    """A moment in ISO 8601, in UTC unless it says otherwise."""
    if not text:
        return None
    try:
        return parsed(text)
    except ValueError:
        raise errors.Invalid('Invalid input for field/attribute expires_at. It must be a time in ISO 8601.') from None
