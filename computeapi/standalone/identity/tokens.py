"""Authentication, tokens, and the scopes available to a token's holder."""

from functools import reduce
from operator import add
from typing import Any

from computeapi import errors
from computeapi.backends.identity.local import LocalIdentity
from computeapi.backends.identity.local.tokens import TRUST, Login
from computeapi.db.identity import Token
from computeapi.standalone.access import ANYBODY, require
from computeapi.standalone.identity.access import ANY_CALLER, SYSTEM_READER
from computeapi.standalone.identity.application_credentials import rule_document
from computeapi.standalone.identity.base import (
    ID,
    SECRET,
    KeystoneController,
    collection,
    flag,
    moment,
    reference,
    url,
)
from computeapi.standalone.identity.catalog import catalog_document
from computeapi.standalone.identity.domains import domain_view
from computeapi.standalone.identity.projects import project_view
from computeapi.standalone.schema import having
from computeapi.web.controller import operation
from computeapi.web.request import Reply, Request

METHODS = ('password', 'token', 'application_credential')


DOMAIN = reference({}, 'name')
PROJECT = reference({'domain': DOMAIN}, 'name', 'domain')
USER = reference({'domain': DOMAIN, 'password': SECRET}, 'name', 'domain')
CREDENTIAL = reference({'user': USER, 'secret': SECRET}, 'name', 'user') | {'required': ['secret']}

SCOPES = {
    'project': PROJECT,
    'domain': DOMAIN,
    'system': having({'all': {'const': True}}, 'all'),
    'unscoped': {'type': 'object'},
    TRUST: having({'id': ID}, 'id'),
}
SCOPE = having(SCOPES, additionalProperties=False, minProperties=1, maxProperties=1)

PROOFS = {
    'methods': {'type': 'array', 'items': {'enum': METHODS}, 'minItems': 1, 'uniqueItems': True},
    'password': having({'user': USER | {'required': ['password']}}, 'user'),
    'token': having({'id': SECRET}, 'id'),
    'application_credential': CREDENTIAL,
}
EACH_PROVEN = [
    {
        'if': having({'methods': {'type': 'array', 'contains': {'const': method}}}, 'methods'),
        'then': {'required': [method]},
    }
    for method in METHODS
]
IDENTITY = having(PROOFS, 'methods', allOf=EACH_PROVEN)

ASKED_SCOPE = {'if': {'type': 'string'}, 'then': {'const': 'unscoped'}, 'else': SCOPE}
AUTHENTICATION = having({'auth': having({'identity': IDENTITY, 'scope': ASKED_SCOPE}, 'identity')}, 'auth')


class KeystoneTokens(KeystoneController):
    path = '/auth/tokens'

    @operation('POST', policy=ANYBODY, body=AUTHENTICATION, status=201)
    def create(self, req: Request, body: dict[str, Any]) -> Reply:
        proofs, scope = body['auth']['identity'], body['auth'].get('scope')
        login = reduce(add, (self.log_in(method, proofs[method], req.remote_addr) for method in proofs['methods']))
        token = self.identity.tokens.issue(login, {'unscoped': {}} if scope == 'unscoped' else scope)
        return self.reply(req, token, self.identity.tokens.get(token))

    @operation('GET', policy=ANY_CALLER)
    def show(self, req: Request) -> Reply:
        may_see = req.allows(SYSTEM_READER) or 'service' in req.context.roles
        return self.reply(req, *self.subject_token(req, may_see))

    @operation('DELETE', policy=ANY_CALLER, status=204)
    def revoke(self, req: Request) -> None:
        token, _ = self.subject_token(req, req.context.is_admin)
        self.identity.tokens.revoke(token)

    def log_in(self, method: str, proof: dict[str, Any], address: str | None) -> Login:
        if method == 'password':
            return self.identity.logins.with_password(proof['user'], proof['user']['password'], address)
        if method == 'token':
            return self.identity.logins.with_token(proof['id'])
        return self.identity.logins.with_credential(proof, proof['secret'], address)

    def subject_token(self, req: Request, others: bool) -> tuple[str, Token]:
        """The token that the request is about. others: whether it may belong to another user."""
        token = req.headers.get('X-Subject-Token', '')
        try:
            row = self.identity.tokens.get(token)
        except errors.NotAuthenticated:
            raise errors.NotFound('Could not find token.') from None
        require(others or row.user_id == req.context.user_id)
        return token, row

    def reply(self, req: Request, token: str, row: Token) -> Reply:
        catalog = None
        if not flag(req, 'nocatalog'):
            catalog = seen_catalog(self.identity, req, row.project_id, row.user_id)
        return Reply({'token': token_view(row, catalog)}, {'X-Subject-Token': token})


class TokenScopes(KeystoneController):
    """The catalog and the scopes that are available to the holder of a token."""

    path = '/auth'

    @operation('GET', '/catalog', policy=ANY_CALLER)
    def catalog_of_token(self, req: Request) -> dict[str, Any]:
        context = req.context
        require(bool(context.project_id or context.domain_id or context.system_scope))
        catalog = seen_catalog(self.identity, req, context.project_id, context.user_id)
        return {'catalog': catalog, 'links': {'self': url(req, 'auth', 'catalog')}}

    @operation('GET', '/projects', policy=ANY_CALLER)
    def projects(self, req: Request) -> dict[str, Any]:
        found = self.identity.projects.granted(req.context.user_id or '')
        return collection(req, 'projects', [project for project in found if project.enabled], project_view)

    @operation('GET', '/domains', policy=ANY_CALLER)
    def domains(self, req: Request) -> dict[str, Any]:
        found = self.identity.domains.granted(req.context.user_id or '')
        return collection(req, 'domains', [domain for domain in found if domain.enabled], domain_view)

    @operation('GET', '/system', policy=ANY_CALLER)
    def system(self, req: Request) -> dict[str, Any]:
        mine = {'user_id': req.context.user_id or '', 'target_kind': 'system'}
        held = self.identity.grants.assignments(effective=True, **mine)
        return {'system': [{'all': True}] if held else [], 'links': {'self': url(req, 'auth', 'system')}}


def seen_catalog(
    identity: LocalIdentity, req: Request, project_id: str | None, user_id: str | None
) -> list[dict[str, Any]]:
    """The catalog of a user in a project; its URLs may contain the IDs of both."""
    facts = {'project_id': project_id, 'tenant_id': project_id, 'user_id': user_id}
    return catalog_document(req, identity.catalog.visible_services(project_id), facts)


def token_view(row: Token, catalog: list[dict[str, Any]] | None) -> dict[str, Any]:
    domain = {'id': row.user_domain_id, 'name': row.user_domain_name}
    document = {
        'methods': row.methods,
        'user': {'id': row.user_id, 'name': row.user_name, 'domain': domain, 'password_expires_at': None},
        'audit_ids': row.audit_ids,
        'issued_at': moment(row.issued_at),
        'expires_at': moment(row.expires_at),
    }
    scope = _scope_view(row)
    roles = [{'id': role.id, 'name': role.name} for role in row.roles]
    if scope:
        document |= scope | {'roles': roles} | ({} if catalog is None else {'catalog': catalog})
    if row.application_credential_id:
        credential: dict[str, Any] = {
            'id': row.application_credential_id,
            'name': row.application_credential_name,
            'restricted': not row.unrestricted,
        }
        if row.access_rules is not None:
            credential['access_rules'] = [rule_document(rule) for rule in row.access_rules]
        document['application_credential'] = credential
    if row.trust_id:
        document[TRUST] = {
            'id': row.trust_id,
            'impersonation': row.impersonation,
            'trustor_user': {'id': row.trustor_user_id},
            'trustee_user': {'id': row.trustee_user_id},
        }
    return document


def _scope_view(row: Token) -> dict[str, Any]:
    if row.project_id:
        domain = {'id': row.project_domain_id, 'name': row.scope_domain_name}
        return {'project': {'id': row.project_id, 'name': row.project_name, 'domain': domain}, 'is_domain': False}
    if row.domain_id:
        return {'domain': {'id': row.domain_id, 'name': row.scope_domain_name}}
    return {'system': {'all': True}} if row.system else {}
