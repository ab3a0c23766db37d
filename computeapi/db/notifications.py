"""Notifications that wait to be sent, as rows that are written in the transaction of what they tell about."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from computeapi import randomness
from computeapi.db.records import Rows, insertion
from computeapi.db.tables.compute import WaitingNotification, notifications

__all__ = ['WaitingNotification']

NOTIFICATIONS = Rows(WaitingNotification, notifications)
OLDEST = NOTIFICATIONS.select.order_by(notifications.c.id)


def add(connection: sa.Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    *others, last = [{**row, 'message_id': randomness.new_id(), 'lease_until': None} for row in rows]
    if others:
        connection.execute(insertion(notifications), others)
    added = NOTIFICATIONS.add(connection, **last)
    connection.get_execution_options()['computeapi_announced'].append(added)


def drop(connection: sa.Connection, limit: int) -> int:
    """Delete the oldest ones beyond this many, about; returns their number."""
    newest = connection.scalar(sa.select(sa.func.max(notifications.c.id))) or 0
    return connection.execute(sa.delete(notifications).where(notifications.c.id <= newest - limit)).rowcount


def claim(connection: sa.Connection, now: datetime, until: datetime, limit: int) -> list[WaitingNotification]:
    """The oldest notifications, for the caller to send in this order until then; none while another process sends."""
    lease = notifications.c.lease_until
    if connection.scalar(sa.select(sa.func.count()).where(lease >= now)):
        return []
    found = NOTIFICATIONS.all(connection, OLDEST.limit(limit))
    if not found:
        return []
    mine = sa.update(notifications).where(notifications.c.id == found[0].id, sa.or_(lease.is_(None), lease < now))
    return found if connection.execute(mine.values(lease_until=until)).rowcount == 1 else []


def release(connection: sa.Connection, first: WaitingNotification) -> None:
    """Let any process send now."""
    NOTIFICATIONS.update(connection, {'lease_until': None}, id=first.id)


def delete(connection: sa.Connection, sent: Sequence[WaitingNotification]) -> None:
    connection.execute(sa.delete(notifications).where(notifications.c.id.in_([each.id for each in sent])))


def are_any(connection: sa.Connection) -> bool:
    return NOTIFICATIONS.first(connection, OLDEST.limit(1)) is not None


def waiting(connection: sa.Connection) -> int:
    return connection.scalar(sa.select(sa.func.count()).select_from(notifications)) or 0
