"""Application credentials: secrets that let a program act for its user on one project."""

import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from computeapi import errors
from computeapi.backends.identity.local.managers import Clock, Recent, RecordManager
from computeapi.backends.identity.local.passwords import Passwords
from computeapi.db import identity as queries
from computeapi.db.engine import Store
from computeapi.db.identity import ApplicationCredential, Reference, Token


class ApplicationCredentialManager(RecordManager[ApplicationCredential]):
    records = queries.CREDENTIALS
    noun = 'application credential'

    def __init__(self, store: Store, recent: Recent, passwords: Passwords, clock: Clock):
        super().__init__(store, recent)
        self.passwords = passwords
        self.clock = clock

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
    ) -> tuple[ApplicationCredential, str]:
        """A credential of the token's user on its project with some of its roles (all, if none is named).

        Its secret is returned here and never again.
        """
        require_unrestricted(token)
        if token.project_id is None:
            raise errors.Invalid('An application credential needs a token that is scoped to a project.')
        if expires_at is not None and expires_at <= self.clock():
            raise errors.Invalid("'expires_at' must be in the future.")
        secret = secret or secrets.token_urlsafe(48)
        credential = self.insert(
            user_id=token.user_id,
            project_id=token.project_id,
            name=name,
            description=description,
            secret_hash=self.passwords.hash(secret),
            role_ids=_chosen_ids(roles, token.roles),
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
        """Whether this is a live credential's secret; it takes as long if there is no such credential."""
        matches = self.passwords.matches(secret, credential.secret_hash if credential else None)
        return matches and credential is not None and _living(credential, self.clock())


def require_unrestricted(token: Token) -> None:
    """A program with a leaked credential must not be able to make itself others."""
    if token.application_credential_id is not None and not token.unrestricted:
        raise errors.Forbidden('A restricted application credential cannot manage application credentials.')


def _living(credential: ApplicationCredential, now: datetime) -> bool:
    return credential.expires_at is None or credential.expires_at > now


def _chosen_ids(chosen: Sequence[Reference], held: Sequence[dict[str, Any]]) -> list[str]:
    if not chosen:
        return [role['id'] for role in held]
    ids = []
    for wanted in chosen:
        column = 'id' if 'id' in wanted else 'name'
        role = next((role for role in held if role[column] == wanted[column]), None)
        if role is None:
            raise errors.Invalid(f"'roles': the token does not hold role {wanted[column]}.")
        ids.append(role['id'])
    return ids
