"""Telling others which servers a change touched, even when the process that made it dies."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Collection, Iterable
from typing import NamedTuple

import sqlalchemy as sa

from computeapi.backends.network import NetworkListener
from computeapi.context import Context
from computeapi.db.engine import Store
from computeapi.db.network_collection import Work, grouped
from computeapi.db.tables.network import notices

LOG = logging.getLogger(__name__)


class Notice(NamedTuple):
    id: str
    server_ids: Collection[str]


class Notices:
    """What is noted in the transaction of a change is sent after it, and forgotten when all listeners know."""

    def __init__(self, store: Store, listeners: Iterable[NetworkListener] = ()):
        self.store, self.listeners = store, tuple(listeners)

    def note(self, work: Work, server_ids: Collection[str]) -> Notice:
        notice = Notice(str(uuid.uuid4()), server_ids if self.listeners else ())
        rows = [{'notice_id': notice.id, 'server_id': server_id} for server_id in notice.server_ids]
        if rows:
            work.connection.execute(sa.insert(notices), rows)
        return notice

    def send(self, context: Context, notice: Notice) -> None:
        """What goes wrong with it does not undo the change; it is sent again when the service starts."""
        if not notice.server_ids:
            return
        try:
            for listener in self.listeners:
                listener(context, notice.server_ids)
            with self.store.write() as connection:
                connection.execute(sa.delete(notices).where(notices.c.notice_id == notice.id))
        except Exception:
            LOG.exception('Nobody knows that the network of these servers changed: %s', ', '.join(notice.server_ids))

    def send_left(self) -> None:
        """What others noted and did not send."""
        with self.store.read() as connection:
            left = connection.execute(sa.select(notices.c.notice_id, notices.c.server_id)).all()
        for notice_id, server_ids in grouped((row.notice_id, row.server_id) for row in left).items():
            self.send(Context().elevated(), Notice(notice_id, server_ids))
