"""Application credentials, with which a program acts for its user on one project, and their access rules."""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from computeapi import errors, randomness
from computeapi.backends.identity.local.managers import Clock, Recent, RecordManager
from computeapi.backends.identity.local.passwords import Passwords
from computeapi.db import identity as queries
from computeapi.db.engine import Store, repeated
from computeapi.db.identity import ApplicationCredential, CredentialRule, Reference, Token
from computeapi.db.role_assignments import Role, effective_roles

MAX_RULES = 1000
"""The maximum number of access rules of a user."""


class ApplicationCredentialManager(RecordManager[ApplicationCredential]):
    records = queries.CREDENTIALS
    noun = 'application credential'

    def __init__(self, store: Store, recent: Recent, passwords: Passwords, clock: Clock, most: int):
        """most: how many of them a user can have."""
        super().__init__(store, recent)
        self.passwords = passwords
        self.clock = clock
        self.most = most

    @repeated
    def create(
        self,
        token: Token,
        name: str,
        *,
        description: str = '',
        roles: Sequence[Reference] = (),
        secret: str | None = None,
        expires_at: datetime | None = None,
        unrestricted: bool = False,
        access_rules: Sequence[Mapping[str, Any]] | None = None,
    ) -> tuple[ApplicationCredential, str]:
        """Create a credential of the token's user on its project with some of the roles it has there (all, if none is
        named).

        Its secret is returned here and never again.  access_rules: the requests that it may be used for, if not for
        all; each is the ID of one of the user's rules, or a new one.
        """
        require_unrestricted(token)
        if token.project_id is None:
            raise errors.Invalid('An application credential needs a token that is scoped to a project.')
        if expires_at is not None and expires_at <= self.clock():
            raise errors.Invalid("'expires_at' must be in the future.")
        # Hexadecimal like tokens: it cannot start with a dash, which commands would take for an option.
        secret = secret or secrets.token_hex(32)
        secret_hash = self.passwords.hash(secret)
        with self.change() as connection:
            # The lock serializes this with other creations for the user.
            queries.USERS.find(connection, lock=True, id=token.user_id)
            if len(self.records.named(connection, user_id=token.user_id)) >= self.most:
                raise errors.Forbidden(f'A user can have at most {self.most} application credentials.')
            among = token.credential_role_ids
            held = effective_roles(connection, token.user_id, 'project', token.project_id, among=among)
            credential = self.insert(
                connection,
                user_id=token.user_id,
                project_id=token.project_id,
                name=name,
                description=description,
                secret_hash=secret_hash,
                role_ids=_chosen_ids(roles, held),
                access_rule_ids=_rule_ids(connection, token, access_rules),
                unrestricted=unrestricted,
                expires_at=expires_at,
            )
        return credential, secret

    def delete(self, token: Token, user_id: str, credential_id: str) -> None:
        require_unrestricted(token)
        with self.change() as connection:
            if not self.records.delete(connection, id=credential_id, user_id=user_id):
                raise self.missing(credential_id)

    def of(self, user_id: str, credential_id: str) -> ApplicationCredential:
        """One of this user's credentials."""
        credential = self.get(credential_id)
        if credential.user_id != user_id:
            raise self.missing(credential_id)
        return credential

    def verify(self, credential: ApplicationCredential | None, secret: str) -> bool:
        """Whether this is the secret of a valid credential; takes as long if there is no such credential."""
        matches = self.passwords.matches(secret, credential.secret_hash if credential else None)
        return matches and credential is not None and _living(credential, self.clock())


def require_unrestricted(token: Token) -> None:
    """A leaked credential must not be usable to create more of them, and a trustee must not outlive the trust."""
    if token.application_credential_id is not None and not token.unrestricted:
        raise errors.Forbidden('A restricted application credential cannot manage application credentials and trusts.')
    if token.trust_id is not None:
        raise errors.Forbidden('A token of a trust cannot manage application credentials and trusts.')


def _living(credential: ApplicationCredential, now: datetime) -> bool:
    return credential.expires_at is None or credential.expires_at > now


def _chosen_ids(chosen: Sequence[Reference], held: Sequence[Role]) -> list[str]:
    if not chosen:
        return [role.id for role in held]
    ids = []
    for wanted in chosen:
        column = 'id' if 'id' in wanted else 'name'
        role = next((role for role in held if getattr(role, column) == wanted[column]), None)
        if role is None:
            raise errors.Invalid(f"'roles': the user does not hold role {wanted[column]} on the project.")
        ids.append(role.id)
    return ids


def _rule_ids(connection: sa.Connection, token: Token, wanted: Iterable[Mapping[str, Any]] | None) -> list[str] | None:
    """The IDs of the given rules, creating new ones; by default those of the token's own credential."""
    if wanted is None:
        return token.access_rule_ids
    if token.access_rule_ids is not None:
        raise errors.Forbidden(
            'An application credential with access rules cannot create one with different access rules.'
        )
    return [_rule_id(connection, token.user_id, rule) for rule in wanted]


def _rule_id(connection: sa.Connection, user_id: str, wanted: Mapping[str, Any]) -> str:
    found = queries.ACCESS_RULES.find(connection, user_id=user_id, **wanted)
    if found is not None:
        return found.id
    if 'id' in wanted:
        raise errors.Invalid(f"'access_rules': there is no {wanted['id']}.")
    if queries.ACCESS_RULES.number_of(connection, user_id=user_id) >= MAX_RULES:
        raise errors.Forbidden(f'A user can have at most {MAX_RULES} access rules; unused ones can be deleted.')
    rule_id = randomness.new_hex_id()
    queries.ACCESS_RULES.insert(connection, id=rule_id, user_id=user_id, **wanted)
    return rule_id


class AccessRuleManager(RecordManager[CredentialRule]):
    records = queries.ACCESS_RULES
    noun = 'access rule'

    def of(self, user_id: str, rule_id: str) -> CredentialRule:
        """One of this user's rules."""
        rule = self.get(rule_id)
        if rule.user_id != user_id:
            raise self.missing(rule_id)
        return rule

    @repeated
    def delete(self, user_id: str, rule_id: str) -> None:
        """Delete a rule that no credential uses."""
        with self.change() as connection:
            # The lock serializes this with the creation of credentials that use the rule.
            queries.USERS.find(connection, lock=True, id=user_id)
            used = queries.CREDENTIALS.named(connection, user_id=user_id)
            if any(rule_id in (credential.access_rule_ids or ()) for credential in used):
                raise errors.Forbidden(f'Access rule {rule_id} is in use by an application credential.')
            if not self.records.delete(connection, id=rule_id, user_id=user_id):
                raise self.missing(rule_id)
