"""Writes notifications into the outbox, the table from which `Sender` takes them."""

from collections.abc import Callable, Collection, Iterable
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa
from oslo_config import cfg

from computeapi.clock import utcnow
from computeapi.context import Context
from computeapi.db import notifications

ERROR, INFO = 'error', 'info'
UNVERSIONED, VERSIONED = 'unversioned', 'versioned'
PUBLISHERS = {UNVERSIONED: '{}.{}', VERSIONED: 'nova-{}:{}'}
"""How each format names the part of Nova that sends a notification, and its host."""
CALLER = ('user_id', 'project_id', 'user_name', 'project_name', 'is_admin', 'request_id', 'global_request_id')
"""What a notification says of the caller; not its token."""
NOBODY = Context()
"""The caller of what the service does on its own account."""


class NewNotification(NamedTuple):
    """A notification that is written if its format is on.

    payload: makes it.  source: the part of Nova that sends it.  host: where that is; None: on this machine.
    """

    form: str
    event_type: str
    payload: Callable[[], dict[str, Any]]
    source: str = 'api'
    host: str | None = None
    priority: str = INFO


class Outbox:
    """host: the name of this machine.  formats: which notifications are on; by default, none."""

    def __init__(self, host: str = '', formats: Collection[str] = (), clock: Callable[[], datetime] = utcnow):
        self.host, self.formats, self.clock = host, formats, clock

    def add(self, connection: sa.Connection, context: Context, new: Iterable[NewNotification]) -> None:
        """Write notifications of what the caller has done, in the transaction of what they are about.

        new: best a generator, so that what it reads for them is not read if notifications are off.
        """
        if self.formats:
            now, caller = self.clock(), _described(context)
            rows = [
                {
                    'created_at': now,
                    'format': each.form,
                    'priority': each.priority,
                    'publisher_id': PUBLISHERS[each.form].format(each.source, each.host or self.host),
                    'event_type': each.event_type,
                    'context': caller,
                    'payload': each.payload(),
                }
                for each in new
                if each.form in self.formats
            ]
            if rows:
                notifications.add(connection, rows)


NOWHERE = Outbox()
"""While notifications are off."""


def outbox_of(conf: cfg.ConfigOpts, clock: Callable[[], datetime]) -> Outbox:
    return Outbox(conf.host, formats_of(conf), clock)


def formats_of(conf: cfg.ConfigOpts) -> list[str]:
    """Which notifications are on."""
    wanted = conf.notifications.notification_format
    return [each for each in (UNVERSIONED, VERSIONED) if wanted in (each, 'both')]


def _described(context: Context) -> dict[str, Any]:
    return {name: getattr(context, name) for name in CALLER} | {'roles': sorted(context.roles)}
