"""Notices about the servers that a change affects; they are sent even if the process that made the change dies."""

import logging
from collections.abc import Collection, Iterable
from typing import NamedTuple

from computeapi import randomness
from computeapi.backends.network import NetworkListener
from computeapi.context import Context
from computeapi.db import network_notices
from computeapi.db.engine import Store
from computeapi.db.network_collection import Work
from computeapi.errors import DatabaseError

LOG = logging.getLogger(__name__)


class Notice(NamedTuple):
    id: str
    server_ids: Collection[str]


class Notices:
    """Notices are stored in the transaction of a change, sent after it, and deleted when all listeners were told."""

    def __init__(self, store: Store, listeners: Iterable[NetworkListener] = ()):
        self.store, self.listeners = store, tuple(listeners)

    def note(self, work: Work, server_ids: Collection[str]) -> Notice:
        notice = Notice(randomness.new_id(), server_ids if self.listeners else ())
        network_notices.insert(work.connection, notice.id, notice.server_ids)
        return notice

    def send(self, context: Context, notice: Notice) -> None:
        """A failure does not undo the change; the notice is sent again when the service starts."""
        if not notice.server_ids:
            return
        try:
            for listener in self.listeners:
                listener(context, notice.server_ids)
            with self.store.write() as connection:
                network_notices.delete(connection, notice.id)
        except Exception as error:
            bug = None if isinstance(error, DatabaseError) else error
            changed = ', '.join(notice.server_ids)
            LOG.error(
                'The addresses of servers %s may be outdated: compute could not be notified of a change of their ports',
                changed,
                exc_info=bug,
            )

    def send_left(self) -> None:
        """Send the notices that were stored but not sent."""
        with self.store.read() as connection:
            left = network_notices.find(connection)
        for notice_id, server_ids in left.items():
            self.send(Context().elevated(), Notice(notice_id, server_ids))
