"""Trusts: roles of one user on a project that are delegated to another user."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from computeapi import errors
from computeapi.backends.identity.local.application_credentials import require_unrestricted
from computeapi.backends.identity.local.managers import Clock, Recent, RecordManager
from computeapi.db import identity as queries
from computeapi.db.engine import Store, repeated
from computeapi.db.identity import Reference, Token, Trust
from computeapi.db.role_assignments import Role, effective_roles

MAX_TRUSTS = 1000
"""The maximum number of trusts given by a user."""


class TrustManager(RecordManager[Trust]):
    """Expired and used-up trusts count as deleted."""

    records = queries.TRUSTS
    noun = 'trust'

    def __init__(self, store: Store, recent: Recent, clock: Clock):
        super().__init__(store, recent)
        self.clock = clock

    @repeated
    def create(
        self,
        token: Token,
        trustee_user_id: str,
        project_id: str | None,
        roles: Sequence[Reference],
        *,
        impersonation: bool,
        expires_at: datetime | None = None,
        remaining_uses: int | None = None,
    ) -> Trust:
        """Create a trust of the token's user, with roles that it has on the project.

        impersonation: whether the trustee appears as the trustor.  remaining_uses: for how many tokens it can be used.
        """
        require_unrestricted(token)
        if token.access_rule_ids is not None:
            raise errors.Forbidden('An application credential with access rules cannot create a trust without them.')
        if not roles:
            raise errors.Forbidden('At least one role should be specified.')
        now = self.clock()
        if expires_at is not None and expires_at <= now:
            raise errors.Invalid("'expires_at' must be in the future.")
        with self.change() as connection:
            # The lock serializes this with other creations for the user.
            queries.USERS.find(connection, lock=True, id=token.user_id)
            queries.purge_trusts(connection, token.user_id, now)
            if len(self.records.named(connection, trustor_user_id=token.user_id)) >= MAX_TRUSTS:
                raise errors.Forbidden(f'A user can give at most {MAX_TRUSTS} trusts.')
            if queries.USERS.find(connection, id=trustee_user_id) is None:
                raise errors.NotFound(f'Could not find user: {trustee_user_id}.')
            among = token.credential_role_ids
            held = effective_roles(connection, token.user_id, 'project', project_id or '', among=among)
            return self.insert(
                connection,
                trustor_user_id=token.user_id,
                trustee_user_id=trustee_user_id,
                project_id=project_id,
                role_ids=[_chosen(role, held).id for role in roles],
                impersonation=impersonation,
                expires_at=expires_at,
                remaining_uses=remaining_uses,
            )

    def get(self, record_id: str) -> Trust:
        trust = super().get(record_id)
        if not _living(trust, self.clock()):
            raise self.missing(record_id)
        return trust

    def list(self, **values: Any) -> list[Trust]:
        now = self.clock()
        return [trust for trust in super().list(**values) if _living(trust, now)]

    def delete(self, token: Token, trust_id: str) -> None:
        """Delete a trust, and with it the tokens based on it; a token based on it may be used for that."""
        if token.trust_id != trust_id:
            require_unrestricted(token)
        with self.change() as connection:
            if not self.records.delete(connection, id=trust_id):
                raise self.missing(trust_id)


def spend(connection: sa.Connection, trust_id: str, trustee_user_id: str, now: datetime) -> Trust:
    """Use a trust once; NotAuthenticated if it is invalid, Forbidden if its trustee is another user."""
    trust = queries.TRUSTS.find(connection, lock=True, id=trust_id)
    if trust is None or not _living(trust, now):
        raise errors.NotAuthenticated()
    if trust.trustee_user_id != trustee_user_id:
        raise errors.Forbidden('You are not authorized to perform the requested action.')
    if trust.remaining_uses is not None:
        queries.TRUSTS.update(connection, {'remaining_uses': trust.remaining_uses - 1}, id=trust_id)
    return trust


def _living(trust: Trust, now: datetime) -> bool:
    return trust.remaining_uses != 0 and (trust.expires_at is None or trust.expires_at > now)


def _chosen(wanted: Reference, held: Sequence[Role]) -> Role:
    column = 'id' if 'id' in wanted else 'name'
    for role in held:
        if getattr(role, column) == wanted[column]:
            return role
    raise errors.NotFound(f'Could not find role: {wanted[column]}.')
