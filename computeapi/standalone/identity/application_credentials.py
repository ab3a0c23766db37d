"""Application credentials of users, and the access rules that can restrict them."""

from collections.abc import Mapping
from typing import Any

from computeapi import errors
from computeapi.db.identity import ApplicationCredential, CredentialRule
from computeapi.standalone.access import ADMIN, CALLER, RoleRule, require
from computeapi.standalone.identity.access import SYSTEM_READER, require_direct, require_self, require_self_or_reader
from computeapi.standalone.identity.base import (
    ID,
    NAME,
    SECRET,
    TEXT,
    KeystoneController,
    collection,
    expiry_of,
    filters,
    reference,
    shown,
)
from computeapi.standalone.schema import having, optional, wrapped
from computeapi.web.controller import operation
from computeapi.web.request import Request

RULE = {
    'path': {'type': 'string', 'minLength': 1, 'maxLength': 128, 'pattern': '^/'},
    'method': {'enum': ['POST', 'GET', 'HEAD', 'PATCH', 'PUT', 'DELETE']},
    'service': NAME,
}
# An existing rule, or a new one.
ACCESS_RULE = {
    'oneOf': [
        having({'id': ID}, 'id', additionalProperties=False),
        having(RULE, 'path', 'method', 'service', additionalProperties=False),
    ]
}
CREATE = wrapped(
    'application_credential',
    {
        'name': NAME,
        'description': TEXT,
        'secret': optional(SECRET),
        'expires_at': {'type': ['string', 'null'], 'maxLength': 64},
        'roles': {'type': ['array', 'null'], 'items': reference({}, 'name'), 'maxItems': 100},
        'unrestricted': {'type': ['boolean', 'null']},
        'access_rules': {'type': ['array', 'null'], 'items': ACCESS_RULE, 'maxItems': 100},
        'project_id': {'type': ['string', 'null']},
    },
    'name',
)

SHOWN = ('name', 'description', 'user_id', 'project_id', 'unrestricted')


class KeystoneApplicationCredentials(KeystoneController):
    path = '/users/{user_id}/application_credentials'

    @operation('GET', policy=CALLER)
    def list(self, req: Request, user_id: str) -> dict[str, Any]:
        require_self_or_reader(req, user_id)
        require_direct(self.token(req))
        self.identity.users.get(user_id)
        wanted = filters(req, 'name')
        found = self.identity.application_credentials.list(user_id=user_id, **wanted)
        roles, rules = self.role_names(), self.rules(user_id)
        return collection(
            req, 'application_credentials', found, lambda req, row: credential_view(req, row, roles, rules)
        )

    @operation('POST', policy=CALLER, body=CREATE, status=201)
    def create(self, req: Request, user_id: str, body: dict[str, Any]) -> dict[str, Any]:
        require(req.context.user_id == user_id)
        requested = body['application_credential']
        token = self.token(req)
        if requested.get('project_id') not in (None, token.project_id):
            raise errors.Invalid('Invalid input for field/attribute project_id. It must be the project of the token.')
        row, secret = self.identity.application_credentials.create(
            token,
            requested['name'],
            description=requested.get('description') or '',
            roles=requested.get('roles') or (),
            secret=requested.get('secret'),
            expires_at=expiry_of(requested),
            unrestricted=bool(requested.get('unrestricted')),
            access_rules=requested.get('access_rules'),
        )
        view = credential_view(req, row, self.role_names(), self.rules(user_id))
        return {'application_credential': view | {'secret': secret}}

    @operation('GET', '/{credential_id}', policy=CALLER)
    def show(self, req: Request, user_id: str, credential_id: str) -> dict[str, Any]:
        require_self_or_reader(req, user_id)
        require_self_or_reader(req, self.owner(user_id, credential_id))
        require_direct(self.token(req))
        row = self.identity.application_credentials.of(user_id, credential_id)
        return {'application_credential': credential_view(req, row, self.role_names(), self.rules(user_id))}

    @operation('DELETE', '/{credential_id}', policy=CALLER, status=204)
    def delete(self, req: Request, user_id: str, credential_id: str) -> None:
        require_self(req, user_id)
        require_self(req, self.owner(user_id, credential_id))
        token = self.token(req)
        self.identity.application_credentials.delete(token, user_id, credential_id)

    def owner(self, user_id: str, credential_id: str) -> str:
        """The user of a credential, whichever the path names; the latter if there is no such credential."""
        found = self.identity.application_credentials.list(id=credential_id)
        return found[0].user_id if found else user_id

    def role_names(self) -> dict[str, str]:
        return {role.id: role.name for role in self.identity.roles.list()}

    def rules(self, user_id: str) -> dict[str, CredentialRule]:
        return {rule.id: rule for rule in self.identity.access_rules.list(user_id=user_id)}


class KeystoneAccessRules(KeystoneController):
    path = '/users/{user_id}/access_rules'

    @operation('GET', policy=CALLER)
    def list(self, req: Request, user_id: str) -> dict[str, Any]:
        self.require_user(req, SYSTEM_READER, user_id)
        self.identity.users.get(user_id)
        found = self.identity.access_rules.list(user_id=user_id, **filters(req, 'service', 'path', 'method'))
        return collection(req, 'access_rules', found, rule_view)

    @operation('GET', '/{rule_id}', policy=CALLER)
    def show(self, req: Request, user_id: str, rule_id: str) -> dict[str, Any]:
        self.require_user(req, SYSTEM_READER, user_id)
        return {'access_rule': rule_view(req, self.identity.access_rules.of(user_id, rule_id))}

    @operation('DELETE', '/{rule_id}', policy=CALLER, status=204)
    def delete(self, req: Request, user_id: str, rule_id: str) -> None:
        self.require_user(req, ADMIN, user_id)
        self.identity.access_rules.delete(user_id, rule_id)

    def require_user(self, req: Request, policy: RoleRule, user_id: str) -> None:
        """Allows users themselves, and those who pass the rule by a role on the system, but nobody by a trust."""
        require(req.context.user_id == user_id or bool(req.context.system_scope and req.allows(policy)))
        require_direct(self.token(req))


def rule_document(rule: CredentialRule) -> dict[str, str]:
    """A rule as shown inside a token or a credential that it restricts."""
    return {name: getattr(rule, name) for name in ('id', *RULE)}


def rule_view(req: Request, rule: CredentialRule) -> dict[str, Any]:
    return shown(req, f'users/{rule.user_id}/access_rules', rule, RULE)


def credential_view(
    req: Request, row: ApplicationCredential, roles: Mapping[str, str], rules: Mapping[str, CredentialRule]
) -> dict[str, Any]:
    others: dict[str, Any] = {
        'roles': [{'id': each, 'name': roles[each], 'domain_id': None} for each in row.role_ids if each in roles],
        # Clients expect this time, unlike those of tokens, without a time zone.
        'expires_at': row.expires_at.isoformat(timespec='microseconds') if row.expires_at else None,
        'system': None,
    }
    if row.access_rule_ids is not None:
        bound = [rules[each] for each in row.access_rule_ids if each in rules]
        others['access_rules'] = [rule_document(rule) for rule in bound]
    return shown(req, f'users/{row.user_id}/application_credentials', row, SHOWN, **others)
