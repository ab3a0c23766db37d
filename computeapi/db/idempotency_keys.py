"""What was asked with an Idempotency-Key, and what that was answered, as rows.

Who is to do what is asked has claimed the row, and marks it in each transaction in which it changes anything, as the
last thing. So it is known of one that died whether anything was done; and who was taken for dead can change nothing
any more once somebody else has the row.
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
"""After which nobody waits any longer for a request that has changed nothing."""

DOING: ContextVar[IdempotencyKey | None] = ContextVar('doing', default=None)
"""The claim under which this thread does what it does."""


class KeyClaims:
    """The keys in a store, which from then on minds what is done under them.

    seconds: for which an answer is kept.  most: how many keys a user can have at a time.
    """

    def __init__(self, store: Store, seconds: int, most: int):
        self.store, self.kept, self.most = store, timedelta(seconds=seconds), most
        store.check = mark

    def take(self, key_id: str, user_id: str, fingerprint: str) -> IdempotencyKey:
        """The row of the user's key: with an answer, or to be done by the caller, who has claimed it.

        IdempotencyKeyReused if another request had the key, RequestUnderWay, OutcomeUnknown, TooManyIdempotencyKeys.
        """
        now = self.store.clock()
        until = now + LEASE
        wanted = IdempotencyKey(key_id, user_id, fingerprint, uuid.uuid4().hex, False, until, until + self.kept, None)
        found = self.store.tell(take, wanted, now, self.most)
        if found.fingerprint != fingerprint:
            raise errors.IdempotencyKeyReused()
        if found.answer is None and found.holder != wanted.holder:
            raise errors.RequestUnderWay() if found.lease_until > now else errors.OutcomeUnknown()
        return found

    @contextmanager
    def doing(self, claim: IdempotencyKey) -> Iterator[None]:
        """What this thread changes in the block is done under the claim."""
        token = DOING.set(claim)
        try:
            yield
        finally:
            DOING.reset(token)

    def keep(self, claim: IdempotencyKey, answer: str) -> None:
        """Let this be the answer from now on, if the claim still holds."""
        values = {'answer': answer, 'expires_at': self.store.clock() + self.kept}
        self.store.tell(KEYS.update, values, id=claim.id, holder=claim.holder)

    def drop(self, claim: IdempotencyKey) -> bool:
        """Forget the key, so that it can be tried again, unless something was changed; whether it was forgotten."""
        return self.store.tell(KEYS.delete, id=claim.id, holder=claim.holder, changed=False) == 1


def take(connection: sa.Connection, wanted: IdempotencyKey, now: datetime, most: int) -> IdempotencyKey:
    """The row of this key: this one, unless there is one that still counts. Others wait for it meanwhile."""
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
    """Whether what the row says does not matter any more: its time is over, or nothing was done and nobody is at it."""
    abandoned = found.answer is None and not found.changed and found.lease_until <= now
    return abandoned or found.expires_at <= now


def mark(connection: sa.Connection) -> None:
    """Write down that something was changed under the claim of this thread, if it has one; RequestUnderWay if somebody
    else has the row now."""
    claim = DOING.get()
    if claim is None:
        return
    mine = sa.update(idempotency_keys).filter_by(id=claim.id, holder=claim.holder)
    if connection.execute(mine.values(changed=True)).rowcount == 0:
        raise errors.RequestUnderWay()
