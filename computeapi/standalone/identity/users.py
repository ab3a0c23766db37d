"""Users and their passwords."""

from typing import Any

from computeapi.backends.identity.local.projects import DEFAULT_DOMAIN
from computeapi.db.identity import User
from computeapi.standalone.access import ANYBODY
from computeapi.standalone.identity.access import ANY_CALLER, DOMAIN_MANAGER, DOMAIN_READER, in_own_domain
from computeapi.standalone.identity.base import (
    BOOLEAN,
    ID,
    NAME,
    SECRET,
    TEXT,
    KeystoneController,
    collection,
    fields,
    filters,
    record,
    shown,
)
from computeapi.standalone.schema import having, optional, wrapped
from computeapi.web.controller import operation
from computeapi.web.request import Request

# Passwords never expire, and failed logins are slowed down by user and address without locking the account, so the
# `ignore_` options are always in effect.
SWITCHES = (
    'ignore_change_password_upon_first_use',
    'ignore_password_expiry',
    'ignore_lockout_failure_attempts',
    'ignore_user_inactivity',
    'lock_password',
)
OPTIONS = {
    **dict.fromkeys(SWITCHES, optional(BOOLEAN)),
    'multi_factor_auth_enabled': {'enum': [False, None]},
    'multi_factor_auth_rules': {'type': ['array', 'null'], 'maxItems': 0},
}
PROPERTIES = {
    'name': NAME,
    'domain_id': ID,
    'description': TEXT,
    'enabled': BOOLEAN,
    'password': optional(SECRET),
    'default_project_id': optional(ID),
    'options': having(OPTIONS, additionalProperties=False),
}
COLUMNS = ('name', 'description', 'enabled', 'password', 'default_project_id', 'options')
SHOWN = ('name', 'domain_id', 'description', 'enabled', 'default_project_id', 'options')
CREATE = record('user', PROPERTIES, 'name')
UPDATE = record('user', PROPERTIES)
PASSWORD = wrapped(
    'user',
    {'password': SECRET, 'original_password': SECRET},
    'password',
    'original_password',
)


class KeystoneUsers(KeystoneController):
    path = '/users'

    @operation('GET', policy=DOMAIN_READER)
    def list(self, req: Request) -> dict[str, Any]:
        wanted = filters(req, 'name', 'domain_id', 'enabled', 'default_project_id')
        return collection(req, 'users', in_own_domain(req, self.identity.users.list(**wanted)), user_view)

    @operation('POST', policy=DOMAIN_MANAGER, body=CREATE, status=201)
    def create(self, req: Request, body: dict[str, Any]) -> dict[str, Any]:
        req.check(DOMAIN_MANAGER, {'user': body['user'].get('domain_id')})
        place = {'domain_id': req.context.domain_id or DEFAULT_DOMAIN}
        values = fields(place | body['user'], (*COLUMNS, 'domain_id'), {})
        return {'user': user_view(req, self.identity.users.create(**values))}

    @operation('GET', '/{user_id}', policy=ANY_CALLER)
    def show(self, req: Request, user_id: str) -> dict[str, Any]:
        self.require_self_or_domain_reader(req, user_id)
        return {'user': user_view(req, self.identity.users.get(user_id))}

    @operation('PATCH', '/{user_id}', policy=DOMAIN_MANAGER, body=UPDATE)
    def update(self, req: Request, user_id: str, body: dict[str, Any]) -> dict[str, Any]:
        req.check(DOMAIN_MANAGER, {'user': self.domain_of('users', user_id)})
        changes = fields(body['user'], COLUMNS, user_view(req, self.identity.users.get(user_id)))
        return {'user': user_view(req, self.identity.users.update(user_id, **changes))}

    @operation('DELETE', '/{user_id}', policy=DOMAIN_MANAGER, status=204)
    def delete(self, req: Request, user_id: str) -> None:
        req.check(DOMAIN_MANAGER, {'user': self.domain_of('users', user_id)})
        self.identity.users.delete(user_id)

    @operation('POST', '/{user_id}/password', policy=ANYBODY, body=PASSWORD, status=204)
    def change_password(self, req: Request, user_id: str, body: dict[str, Any]) -> None:
        with self.identity.logins.counted({'id': user_id}, req.remote_addr):
            self.identity.users.change_password(user_id, body['user']['original_password'], body['user']['password'])


def user_view(req: Request, user: User) -> dict[str, Any]:
    return shown(req, 'users', user, SHOWN, password_expires_at=None)
