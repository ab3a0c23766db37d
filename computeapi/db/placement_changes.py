"""Pending updates of Placement, as rows that are written in the transaction of the change.

A row only says that something has to be sent, and is written once for any number of changes; the state at the time of
sending is sent. Each change gets a new ID, and a row is deleted only if its ID is still the latest. Stores that are not
mirrored write nothing.
"""

from collections.abc import Collection, Iterable
from datetime import datetime

import sqlalchemy as sa

from computeapi import randomness
from computeapi.db.records import Rows, upsert
from computeapi.db.tables.compute import PlacementChange, hypervisors, placement_changes

__all__ = ['PlacementChange']

HOST, AGGREGATE, SERVER, CONSUMER = 'host', 'aggregate', 'server', 'consumer'
"""The kinds of updates: a consumer holds something in Placement but is no longer known here."""

CHANGES = Rows(PlacementChange, placement_changes)
CHANGE = placement_changes.c
NOTED = ('change_id', 'attempts', 'due_at')


def note(connection: sa.Connection, kind: str, ids: Iterable[str]) -> None:
    """Record that these must be updated in Placement, if the store is mirrored."""
    notes = connection.get_execution_options().get('computeapi_notes')
    rows = [_row(kind, each) for each in sorted(ids)] if notes is not None else []
    if notes is not None and rows:
        upsert(connection, placement_changes, rows, NOTED)
        notes.extend(row['id'] for row in rows)


def note_host(connection: sa.Connection, host: str) -> None:
    """The same for a host, by name."""
    if connection.get_execution_options().get('computeapi_notes') is not None:
        found = connection.scalars(sa.select(hypervisors.c.uuid).where(hypervisors.c.host == host)).all()
        note(connection, HOST, found)


def _row(kind: str, key: str) -> dict[str, str | int | None]:
    return {'kind': kind, 'id': key, 'change_id': randomness.new_id(), 'move_id': None, 'attempts': 0, 'due_at': None}


def due(connection: sa.Connection, now: datetime, most: int) -> list[PlacementChange]:
    """Some of the updates that are due: failed ones come last, and hosts before their consumers."""
    kinds = sa.case({HOST: 0, AGGREGATE: 1}, value=CHANGE.kind, else_=2)
    found = CHANGES.select.where(CHANGE.change_id.is_not(None), _is_free(now))
    return CHANGES.all(connection, found.order_by(CHANGE.attempts, kinds, CHANGE.id).limit(most))


def get(connection: sa.Connection, kind: str, key: str) -> PlacementChange | None:
    return CHANGES.find(connection, kind=kind, id=key)


def waiting(connection: sa.Connection) -> int:
    """The number of pending updates."""
    return connection.scalar(sa.select(sa.func.count()).where(CHANGE.change_id.is_not(None))) or 0


def claim(connection: sa.Connection, change: PlacementChange, now: datetime, until: datetime) -> bool:
    """Whether the caller gets to send the update; nobody else will before *until*."""
    mine = sa.update(placement_changes).where(_is_last(change), _is_free(now))
    return connection.execute(mine.values(due_at=until)).rowcount == 1


def remember_move(connection: sa.Connection, server_id: str, move_id: str) -> None:
    """Record that Placement is about to hold something for this migration of the server."""
    CHANGES.update(connection, {'move_id': move_id}, kind=SERVER, id=server_id)


def forget(connection: sa.Connection, change: PlacementChange, move_id: str | None = None) -> None:
    """The update was sent; only the migration, if any, is remembered. Changes since then stay pending."""
    if move_id is None:
        done = connection.execute(sa.delete(placement_changes).where(_is_last(change)))
    else:
        told = {'change_id': None, 'move_id': move_id, 'attempts': 0, 'due_at': None}
        done = connection.execute(sa.update(placement_changes).where(_is_last(change)).values(told))
    if done.rowcount == 0:
        # Another process has sent it at the same time, and the older of the two may have arrived last.
        upsert(connection, placement_changes, [_row(change.kind, change.id)], NOTED)


def put_off(connection: sa.Connection, change: PlacementChange, until: datetime | None, attempts: int = 0) -> None:
    """Postpone the next attempt."""
    values = {'due_at': until, 'attempts': attempts}
    connection.execute(sa.update(placement_changes).where(_is_last(change)).values(values))


def pending(connection: sa.Connection, kind: str, ids: Collection[str]) -> set[str]:
    """Those of these with pending updates."""
    found = sa.select(CHANGE.id).where(CHANGE.kind == kind, CHANGE.id.in_(ids), CHANGE.change_id.is_not(None))
    return set(connection.scalars(found))


def _is_last(change: PlacementChange) -> sa.ColumnElement[bool]:
    return sa.and_(CHANGE.kind == change.kind, CHANGE.id == change.id, CHANGE.change_id == change.change_id)


def _is_free(now: datetime) -> sa.ColumnElement[bool]:
    return sa.or_(CHANGE.due_at.is_(None), CHANGE.due_at <= now)
