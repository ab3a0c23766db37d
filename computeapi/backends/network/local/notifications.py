"""Notifications about the servers that a change affects; they are sent even if the process that changed it dies."""

import logging
from collections.abc import Collection, Iterable
from typing import NamedTuple

from computeapi import randomness
from computeapi.backends.network import NetworkListener
from computeapi.context import Context
from computeapi.db import network_notifications
from computeapi.db.engine import Store
from computeapi.db.network_collection import Work
from computeapi.errors import DatabaseError

LOG = logging.getLogger(__name__)


class Notification(NamedTuple):
    id: str
    server_ids: Collection[str]


class Notifications:
    """They are stored in the transaction of a change, sent after it, and deleted when all listeners were told."""

    def __init__(self, store: Store, listeners: Iterable[NetworkListener] = ()):
        self.store, self.listeners = store, tuple(listeners)

    def note(self, work: Work, server_ids: Collection[str]) -> Notification:
        notification = Notification(randomness.new_id(), server_ids if self.listeners else ())
        network_notifications.insert(work.connection, notification.id, notification.server_ids)
        return notification

    def send(self, context: Context, notification: Notification) -> None:
        """A failure does not undo the change; the notification is sent again when the service starts."""
        if not notification.server_ids:
            return
        try:
            for listener in self.listeners:
                listener(context, notification.server_ids)
            with self.store.write() as connection:
                network_notifications.delete(connection, notification.id)
        except Exception as error:
            bug = None if isinstance(error, DatabaseError) else error
            changed = ', '.join(notification.server_ids)
            LOG.error(
                'The addresses of servers %s may be outdated: compute could not be notified of a change of their ports',
                changed,
                exc_info=bug,
            )

    def send_pending(self) -> None:
        """Send the notifications that were stored but not sent."""
        with self.store.read() as connection:
            left = network_notifications.find(connection)
        for notification_id, server_ids in left.items():
            self.send(Context().elevated(), Notification(notification_id, server_ids))
