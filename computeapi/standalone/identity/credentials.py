"""Application credentials of a user."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from computeapi import errors
from computeapi.db.tables import identity as tables
from computeapi.standalone.face import FaceRequest, route
from computeapi.standalone.identity.base import (
    NAME,
    SECRET,
    TEXT,
    KeystoneFace,
    collection,
    filters,
    link,
    reference,
    require,
    require_self,
)
from computeapi.standalone.schema import body

CREATE = body(
    'application_credential',
    {
        'name': NAME,
        'description': TEXT,
        'secret': SECRET | {'type': ['string', 'null']},
        'expires_at': {'type': ['string', 'null'], 'maxLength': 64},
        'roles': {'type': ['array', 'null'], 'items': reference({}, 'name'), 'maxItems': 100},
        'unrestricted': {'type': ['boolean', 'null']},
        'access_rules': {'type': ['array', 'null'], 'maxItems': 0},
        'project_id': {'type': ['string', 'null']},
    },
    required=('name',),
)
PATH = '/v3/users/{user_id}/application_credentials'


class Credentials(KeystoneFace):
    @route('GET', PATH)
    def credentials(self, req: FaceRequest, user_id: str) -> dict[str, Any]:
        require_self(req, user_id)
        self.identity.users.get(user_id)
        wanted = filters(req, tables.application_credentials, 'name')
        found = self.identity.credentials.list(user_id=user_id, **wanted)
        roles = self.role_names()
        return collection(req, 'application_credentials', found, lambda req, row: credential_view(req, row, roles))

    @route('POST', PATH)
    def create_credential(self, req: FaceRequest, user_id: str) -> tuple[int, dict[str, Any]]:
        require(req.context.user_id == user_id)
        CREATE.check(req.document)
        body = req.member('application_credential')
        token = self.identity.tokens.get(req.context.auth_token or '')
        if body.get('project_id') not in (None, token.project_id):
            raise errors.Invalid('Invalid input for field/attribute project_id. It must be the project of the token.')
        row, secret = self.identity.credentials.create(
            token,
            body['name'],
            description=body.get('description') or '',
            roles=body.get('roles') or (),
            secret=body.get('secret'),
            expires_at=_moment(body.get('expires_at')),
            unrestricted=bool(body.get('unrestricted')),
        )
        view = credential_view(req, row, self.role_names())
        return 201, {'application_credential': view | {'secret': secret}}

    @route('GET', PATH + '/{credential_id}')
    def credential(self, req: FaceRequest, user_id: str, credential_id: str) -> dict[str, Any]:
        require_self(req, user_id)
        row = self.identity.credentials.of(user_id, credential_id)
        return {'application_credential': credential_view(req, row, self.role_names())}

    @route('DELETE', PATH + '/{credential_id}')
    def delete_credential(self, req: FaceRequest, user_id: str, credential_id: str) -> tuple[int, None]:
        require_self(req, user_id)
        token = self.identity.tokens.get(req.context.auth_token or '')
        self.identity.credentials.delete(token, user_id, credential_id)
        return 204, None

    def role_names(self) -> dict[str, str]:
        return {role.id: role.name for role in self.identity.roles.list()}


def credential_view(req: FaceRequest, row: sa.Row, roles: Mapping[str, str]) -> dict[str, Any]:
    return {
        'id': row.id,
        'name': row.name,
        'description': row.description,
        'user_id': row.user_id,
        'project_id': row.project_id,
        'roles': [
            {'id': role_id, 'name': roles[role_id], 'domain_id': None} for role_id in row.role_ids if role_id in roles
        ],
        'unrestricted': row.unrestricted,
        # Clients read this moment, unlike those of a token, without a zone.
        'expires_at': row.expires_at.isoformat(timespec='microseconds') if row.expires_at else None,
        'system': None,
        **link(req, 'users', row.user_id, 'application_credentials', row.id),
    }


def _moment(text: str | None) -> datetime | None:
    """A moment in ISO 8601, in UTC unless it says otherwise."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
        return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        raise errors.Invalid('Invalid input for field/attribute expires_at. It must be a time in ISO 8601.') from None
