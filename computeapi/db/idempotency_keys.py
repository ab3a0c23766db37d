"""Requests with an Idempotency-Key, and their answers, as rows.

The process that handles a request claims the row, and marks it at the end of each transaction with changes. So if it
dies, it is known whether anything was changed; and a process that was taken for dead can change nothing more once
another one has the row.
"""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime, timedelta

import sqlalchemy as sa

from computeapi import errors
from computeapi.db.engine import Store
from computeapi.db.records import Rows, upsert
from computeapi.db.tables.compute import IdempotencyKey, idempotency_keys

__all__ = ['KeyClaims', 'IdempotencyKey']

KEY = idempotency_keys.c
KEYS = Rows(IdempotencyKey, idempotency_keys)
LEASE = timedelta(seconds=60)
"""The time after which a request that has changed nothing is considered abandoned."""

DOING: ContextVar[IdempotencyKey | None] = ContextVar('doing', default=None)
"""The claim of the current thread."""


class KeyClaims:
    """The keys in a store; from then on, the store checks claims in each transaction.

    seconds: how long an answer is kept.  most: how many keys a user can have at a time.
    """

    def __init__(self, store: Store, seconds: int, most: int):
        self.store, self.kept, self.most = store, timedelta(seconds=seconds), most
        store.check = mark

    def take(self, key_id: str, user_id: str, fingerprint: str) -> IdempotencyKey:
        """The row of the user's key: with an answer, or claimed by the caller, who must do the work.

        IdempotencyKeyReused if the key was used for another request, RequestUnderWay, OutcomeUnknown,
        TooManyIdempotencyKeys.
        """
        now = self.store.clock()
        until = now + LEASE
        wanted = IdempotencyKey(key_id, user_id, fingerprint, uuid.uuid4().hex, False, until, until + self.kept, None)
        found = self.store.change(take, wanted, now, self.most)
        if found.fingerprint != fingerprint:
            raise errors.IdempotencyKeyReused()
        if found.answer is None and found.holder != wanted.holder:
            raise errors.RequestUnderWay() if found.lease_until > now else errors.OutcomeUnknown()
        return found

    @contextmanager
    def doing(self, claim: IdempotencyKey) -> Iterator[None]:
        """Run the block under the claim, as far as this thread's changes are concerned."""
        token = DOING.set(claim)
        try:
            yield
        finally:
            DOING.reset(token)

    def keep(self, claim: IdempotencyKey, answer: str) -> None:
        """Store the answer, if the claim still holds."""
        values = {'answer': answer, 'expires_at': self.store.clock() + self.kept}
        self.store.change(KEYS.update, values, id=claim.id, holder=claim.holder)

    def drop(self, claim: IdempotencyKey) -> bool:
        """Delete the key unless something was changed, so that the request can be retried; returns whether it did."""
        return self.store.change(KEYS.delete, id=claim.id, holder=claim.holder, changed=False) == 1


def take(connection: sa.Connection, wanted: IdempotencyKey, now: datetime, most: int) -> IdempotencyKey:
    """Insert *wanted*, unless there is a row that still counts, and return the row. Concurrent calls wait."""
    upsert(connection, idempotency_keys, [wanted._asdict()], changed=('id',))
    found = KEYS.find(connection, id=wanted.id)
    assert found is not None
    if found.holder != wanted.holder:
        if not is_free(found, now):
            return found
        KEYS.update(connection, wanted._asdict(), id=wanted.id)
    own = sa.select(sa.func.count()).where(KEY.user_id == wanted.user_id, KEY.expires_at > now)
    if (connection.scalar(own) or 0) > most:
        raise errors.TooManyIdempotencyKeys(count=most)
    return wanted


def is_free(found: IdempotencyKey, now: datetime) -> bool:
    """Whether the row no longer matters: it has expired, or its claim has expired and nothing was changed."""
    abandoned = found.answer is None and not found.changed and found.lease_until <= now
    return abandoned or found.expires_at <= now


def mark(connection: sa.Connection) -> None:
    """Record that something was changed under the claim of this thread, if it has one; RequestUnderWay if another
    process has claimed the row since."""
    claim = DOING.get()
    if claim is None:
        return
    mine = sa.update(idempotency_keys).filter_by(id=claim.id, holder=claim.holder)
    if connection.execute(mine.values(changed=True)).rowcount == 0:
        raise errors.RequestUnderWay()
