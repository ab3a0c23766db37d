"""Writes notifications into the outbox, the table from which `Sender` takes them."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa
from oslo_config import cfg

from computeapi.context import Context
from computeapi.db import notifications

ERROR, INFO = 'error', 'info'
UNVERSIONED, VERSIONED = 'unversioned', 'versioned'
CALLER = ('user_id', 'project_id', 'user_name', 'project_name', 'is_admin', 'request_id', 'global_request_id')
"""What a notification says of the caller; not its token."""
NOBODY = Context()
"""The caller of what the service does on its own account."""


class NewNotification(NamedTuple):
    """A notification that is to be written."""

    context: Context
    form: str
    publisher_id: str
    event_type: str
    payload: dict[str, Any]
    priority: str = INFO


class Outbox:
    """formats: which ones are on."""

    def __init__(self, conf: cfg.ConfigOpts, clock: Callable[[], datetime]):
        self.clock, self.most_waiting = clock, conf.notifications.most_waiting
        wanted = conf.notifications.notification_format
        self.formats = [each for each in (UNVERSIONED, VERSIONED) if wanted in (each, 'both')]

    def add(self, connection: sa.Connection, new: Iterable[NewNotification]) -> None:
        """Write notifications, in formats that are on, in the transaction of what they are about."""
        now = self.clock()
        rows = [
            {
                'created_at': now,
                'format': each.form,
                'priority': each.priority,
                'publisher_id': each.publisher_id,
                'event_type': each.event_type,
                'context': _described(each.context),
                'payload': each.payload,
            }
            for each in new
        ]
        if rows:
            notifications.add(connection, rows)

    def has_room(self, connection: sa.Connection) -> bool:
        """Whether many more notifications can wait without others being dropped."""
        return bool(notifications.waiting(connection) < self.most_waiting / 2)


def are_on(conf: cfg.ConfigOpts) -> bool:
    return bool(conf.notifications.notification_format != 'none')


def _described(context: Context) -> dict[str, Any]:
    return {name: getattr(context, name) for name in CALLER} | {'roles': sorted(context.roles)}
