"""The notifications about key pairs."""

from collections.abc import Iterator
from functools import partial

import sqlalchemy as sa

from computeapi.compute.notifications import versioned
from computeapi.compute.notifications.outbox import UNVERSIONED, VERSIONED, NewNotification
from computeapi.context import Context
from computeapi.db import keypairs
from computeapi.db.keypairs import Keypair

CREATE, IMPORT, DELETE = 'create', 'import', 'delete'
UNKNOWN = {CREATE: ('public_key', 'fingerprint'), IMPORT: ('fingerprint',), DELETE: ()}
"""The fields that Nova does not know at the beginning of an action."""


def of_keypair(context: Context, pair: Keypair, action: str) -> Iterator[NewNotification]:
    """The beginning and the end of what the caller has done to the key pair."""
    facts = {name: getattr(pair, name) for name in versioned.KEYPAIR}
    caller = {'tenant_id': context.project_id, 'user_id': context.user_id, 'key_name': pair.name}
    for phase, known in (('start', facts | dict.fromkeys(UNKNOWN[action])), ('end', facts)):
        event_type = f'keypair.{action}.{phase}'
        yield NewNotification(UNVERSIONED, event_type, lambda: caller)
        yield NewNotification(VERSIONED, event_type, partial(versioned.keypair, known))


def before_deletion(connection: sa.Connection, context: Context, user_id: str, name: str) -> Iterator[NewNotification]:
    """The same, of the deletion of a key pair that still exists, if it does."""
    pair = keypairs.get(connection, user_id, name)
    if pair is not None:
        yield from of_keypair(context, pair, DELETE)
