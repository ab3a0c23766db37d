"""Secrets that users store for other services, including EC2 key pairs."""

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from computeapi.backends.identity.local.application_credentials import require_unrestricted
from computeapi.backends.identity.local.stored_credentials import EC2, Credential, id_of_access_key
from computeapi.db.identity import Token
from computeapi.standalone.access import CALLER, WRITER, require
from computeapi.standalone.identity.access import (
    ANY_CALLER,
    SYSTEM_READER,
    require_direct,
    require_self,
    require_self_or_reader,
)
from computeapi.standalone.identity.base import (
    ID,
    NAME,
    KeystoneController,
    collection,
    filters,
    shown,
    url,
)
from computeapi.standalone.schema import having, optional, wrapped
from computeapi.web.controller import operation
from computeapi.web.request import Request

PROPERTIES = {
    'blob': {'type': 'string', 'minLength': 1, 'maxLength': 65535},
    'type': NAME,
    'project_id': optional(ID),
    'user_id': ID,
}
CREATE = wrapped('credential', PROPERTIES, 'blob', 'type')
UPDATE = wrapped('credential', {**PROPERTIES, 'id': ID, 'links': {'type': 'object'}})


class KeystoneCredentials(KeystoneController):
    path = '/credentials'

    @operation('GET', policy=ANY_CALLER)
    def list(self, req: Request) -> dict[str, Any]:
        """List all credentials for readers of the system, the caller's own for others."""
        own = {} if req.allows(SYSTEM_READER) else {'user_id': req.context.user_id}
        found = self.identity.credentials.list(**filters(req, 'user_id', 'type') | own)
        return collection(req, 'credentials', within_reach(self.token(req), found), credential_view)

    @operation('POST', policy=ANY_CALLER, body=CREATE, status=201)
    def create(self, req: Request, body: dict[str, Any]) -> dict[str, Any]:
        requested = {'user_id': req.context.user_id} | body['credential']
        self.require_owner(req, requested['user_id'])
        require_reach(self.token(req), requested.get('project_id'))
        return {'credential': credential_view(req, self.identity.credentials.create(**requested))}

    @operation('GET', '/{credential_id}', policy=ANY_CALLER)
    def show(self, req: Request, credential_id: str) -> dict[str, Any]:
        require_self_or_reader(req, self.owner(credential_id))
        found = self.identity.credentials.get(credential_id)
        require_reach(self.token(req), found.project_id)
        return {'credential': credential_view(req, found)}

    @operation('PATCH', '/{credential_id}', policy=ANY_CALLER, body=UPDATE)
    def update(self, req: Request, credential_id: str, body: dict[str, Any]) -> dict[str, Any]:
        self.require_owner(req, self.owner(credential_id))
        current = self.identity.credentials.get(credential_id)
        changes = {name: body['credential'][name] for name in PROPERTIES if name in body['credential']}
        self.require_owner(req, changes.get('user_id', current.user_id))
        for project_id in (current.project_id, changes.get('project_id', current.project_id)):
            require_reach(self.token(req), project_id)
        return {'credential': credential_view(req, self.identity.credentials.update(credential_id, **changes))}

    @operation('DELETE', '/{credential_id}', policy=ANY_CALLER, status=204)
    def delete(self, req: Request, credential_id: str) -> None:
        self.require_owner(req, self.owner(credential_id))
        require_reach(self.token(req), self.identity.credentials.get(credential_id).project_id)
        self.identity.credentials.delete(credential_id)

    def owner(self, credential_id: str) -> str | None:
        """The user of a credential; None if there is none, which callers must not learn by guessing IDs."""
        return next((each.user_id for each in self.identity.credentials.list(id=credential_id)), None)

    def require_owner(self, req: Request, user_id: str | None) -> None:
        """Only the owner and administrators may change a credential, and not with a restricted token."""
        require_self(req, user_id)
        require_unrestricted(self.token(req))


class EC2Credentials(KeystoneController):
    path = '/users/{user_id}/credentials/OS-EC2'

    @operation('GET', policy=CALLER)
    def list(self, req: Request, user_id: str) -> dict[str, Any]:
        require_self_or_reader(req, user_id)
        found = self.identity.credentials.list(user_id=user_id, type=EC2)
        return collection(req, 'credentials', within_reach(self.token(req), found), ec2_view)

    @operation('POST', policy=CALLER, body=having({'tenant_id': ID}, 'tenant_id'), status=201)
    def create(self, req: Request, user_id: str, body: dict[str, Any]) -> dict[str, Any]:
        """Create a key pair for a project. Where the user has no role, it is of no use."""
        self.require_writer(req, user_id)
        require_reach(self.token(req), body['tenant_id'])
        self.identity.projects.get(body['tenant_id'])
        return {'credential': ec2_view(req, self.identity.credentials.create_ec2(user_id, body['tenant_id']))}

    @operation('GET', '/{access}', policy=CALLER)
    def show(self, req: Request, user_id: str, access: str) -> dict[str, Any]:
        require_self_or_reader(req, user_id)
        found = self.identity.credentials.get(_id_of(access), user_id=user_id, type=EC2)
        require_reach(self.token(req), found.project_id)
        return {'credential': ec2_view(req, found)}

    @operation('DELETE', '/{access}', policy=CALLER, status=204)
    def delete(self, req: Request, user_id: str, access: str) -> None:
        self.require_writer(req, user_id)
        found = self.identity.credentials.get(_id_of(access), user_id=user_id, type=EC2)
        require_reach(self.token(req), found.project_id)
        self.identity.credentials.delete(_id_of(access), user_id=user_id, type=EC2)

    def look_up(self, method: str, ids: Mapping[str, str]) -> None:
        if 'access' in ids:
            self.identity.credentials.get(_id_of(ids['access']), type=EC2)

    def require_writer(self, req: Request, user_id: str) -> None:
        """Allows users themselves unless they may only read, and administrators, but not with a restricted token."""
        require_self(req, user_id)
        req.check(WRITER)
        require_unrestricted(self.token(req))


def within_reach(token: Token, found: Iterable[Credential]) -> list[Credential]:
    """The secrets that a token may show. An application credential is for one project, and so is what it sees."""
    require_direct(token)
    return [each for each in found if token.application_credential_id is None or each.project_id == token.project_id]


def require_reach(token: Token, project_id: str | None) -> None:
    """Forbidden if the token may not show or change secrets for this project, or those for none."""
    require_direct(token)
    require(token.application_credential_id is None or project_id == token.project_id)


def credential_view(req: Request, credential: Credential) -> dict[str, Any]:
    return shown(req, 'credentials', credential, PROPERTIES)


def ec2_view(req: Request, credential: Credential) -> dict[str, Any]:
    keys = orjson.loads(credential.blob)
    return {
        'access': keys['access'],
        'secret': keys.get('secret'),
        'tenant_id': credential.project_id,
        'user_id': credential.user_id,
        'trust_id': None,
        'links': {'self': url(req, 'users', credential.user_id, 'credentials', 'OS-EC2', keys['access'])},
    }


def _id_of(access: str) -> str:
    return id_of_access_key(orjson.dumps({'access': access}).decode())
