"""Users and their passwords."""

from typing import Any

import sqlalchemy as sa

from computeapi.backends.identity.local.accounts import DEFAULT_DOMAIN
from computeapi.db.tables import identity as tables
from computeapi.standalone.face import FaceRequest, route
from computeapi.standalone.identity.base import (
    BOOLEAN,
    ID,
    NAME,
    SECRET,
    TEXT,
    KeystoneFace,
    collection,
    fields,
    filters,
    link,
    record,
    require_self,
)
from computeapi.standalone.schema import body

OPTION = {'type': ['boolean', 'null']}

# Passwords never expire and no one is ever locked out here, so the `ignore_` options hold by themselves.
OPTIONS = {
    'type': 'object',
    'properties': {
        'ignore_change_password_upon_first_use': OPTION,
        'ignore_password_expiry': OPTION,
        'ignore_lockout_failure_attempts': OPTION,
        'ignore_user_inactivity': OPTION,
        'lock_password': OPTION,
        'multi_factor_auth_enabled': {'enum': [False, None]},
        'multi_factor_auth_rules': {'type': ['array', 'null'], 'maxItems': 0},
    },
    'additionalProperties': False,
}
PROPERTIES = {
    'name': NAME,
    'domain_id': ID,
    'description': TEXT,
    'enabled': BOOLEAN,
    'password': SECRET | {'type': ['string', 'null']},
    'default_project_id': {'type': ['string', 'null'], 'minLength': 1, 'maxLength': 64},
    'options': OPTIONS,
}
COLUMNS = ('name', 'description', 'enabled', 'password', 'default_project_id', 'options')
CREATE = record('user', PROPERTIES, 'name')
UPDATE = record('user', PROPERTIES)
PASSWORD = body('user', {'password': SECRET, 'original_password': SECRET}, required=('password', 'original_password'))


class Users(KeystoneFace):
    @route('GET', '/v3/users', admin=True)
    def users(self, req: FaceRequest) -> dict[str, Any]:
        wanted = filters(req, tables.users, 'name', 'domain_id', 'enabled', 'default_project_id')
        return collection(req, 'users', self.identity.users.list(**wanted), user_view)

    @route('POST', '/v3/users', admin=True)
    def create_user(self, req: FaceRequest) -> tuple[int, dict[str, Any]]:
        CREATE.check(req.document)
        values = fields({'domain_id': DEFAULT_DOMAIN} | req.member('user'), (*COLUMNS, 'domain_id'), {})
        return 201, {'user': user_view(req, self.identity.users.create(**values))}

    @route('GET', '/v3/users/{user_id}')
    def user(self, req: FaceRequest, user_id: str) -> dict[str, Any]:
        require_self(req, user_id)
        return {'user': user_view(req, self.identity.users.get(user_id))}

    @route('PATCH', '/v3/users/{user_id}', admin=True)
    def update_user(self, req: FaceRequest, user_id: str) -> dict[str, Any]:
        UPDATE.check(req.document)
        changes = fields(req.member('user'), COLUMNS, user_view(req, self.identity.users.get(user_id)))
        return {'user': user_view(req, self.identity.users.update(user_id, **changes))}

    @route('DELETE', '/v3/users/{user_id}', admin=True)
    def delete_user(self, req: FaceRequest, user_id: str) -> tuple[int, None]:
        self.identity.users.delete(user_id)
        return 204, None

    @route('POST', '/v3/users/{user_id}/password', anonymous=True)
    def change_password(self, req: FaceRequest, user_id: str) -> tuple[int, None]:
        PASSWORD.check(req.document)
        user = req.member('user')
        self.identity.users.change_password(user_id, user['original_password'], user['password'])
        return 204, None


def user_view(req: FaceRequest, user: sa.Row) -> dict[str, Any]:
    return user.extra | {
        'id': user.id,
        'name': user.name,
        'domain_id': user.domain_id,
        'description': user.description,
        'enabled': user.enabled,
        'default_project_id': user.default_project_id,
        'password_expires_at': None,
        'options': user.options,
        **link(req, 'users', user.id),
    }
