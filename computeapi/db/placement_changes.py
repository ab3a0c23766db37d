"""What Placement is to be told, as rows that are written with what changes, in the same transaction.

Only that something is to be told is written, once, whatever changes until it is: it is told as it is then. Each change
has an id of its own, and a row is forgotten only with the last one in it. Stores that are not mirrored write nothing.
"""

from collections.abc import Collection, Iterable
from datetime import datetime

import sqlalchemy as sa

from computeapi import chance
from computeapi.db.records import Rows, upsert
from computeapi.db.tables.compute import PlacementChange, hypervisors, placement_changes

__all__ = ['PlacementChange']

HOST, AGGREGATE, SERVER, CONSUMER = 'host', 'aggregate', 'server', 'consumer'
"""What there is to tell of: a consumer is what holds something in Placement though it is nothing of ours any more."""

CHANGES = Rows(PlacementChange, placement_changes)
CHANGE = placement_changes.c
NOTED = ('change_id', 'attempts', 'due_at')


def note(connection: sa.Connection, kind: str, ids: Iterable[str]) -> None:
    """Write down that there is something to tell of these, if anybody is to be told."""
    notes = connection.get_execution_options().get('computeapi_notes')
    rows = [_row(kind, each) for each in sorted(ids)] if notes is not None else []
    if notes is not None and rows:
        upsert(connection, placement_changes, rows, NOTED)
        notes.extend(row['id'] for row in rows)


def note_host(connection: sa.Connection, host: str) -> None:
    """The same, of a host that is named."""
    if connection.get_execution_options().get('computeapi_notes') is not None:
        found = connection.scalars(sa.select(hypervisors.c.uuid).where(hypervisors.c.host == host)).all()
        note(connection, HOST, found)


def _row(kind: str, key: str) -> dict[str, str | int | None]:
    return {'kind': kind, 'id': key, 'change_id': chance.new_id(), 'move_id': None, 'attempts': 0, 'due_at': None}


def due(connection: sa.Connection, now: datetime, most: int) -> list[PlacementChange]:
    """Some of what is to be told; what was refused comes last, and hosts before what holds something of them."""
    kinds = sa.case({HOST: 0, AGGREGATE: 1}, value=CHANGE.kind, else_=2)
    found = CHANGES.select.where(CHANGE.change_id.is_not(None), _is_free(now))
    return CHANGES.all(connection, found.order_by(CHANGE.attempts, kinds, CHANGE.id).limit(most))


def get(connection: sa.Connection, kind: str, key: str) -> PlacementChange | None:
    return CHANGES.find(connection, kind=kind, id=key)


def waiting(connection: sa.Connection) -> int:
    """How much is to be told."""
    return connection.scalar(sa.select(sa.func.count()).where(CHANGE.change_id.is_not(None))) or 0


def claim(connection: sa.Connection, change: PlacementChange, now: datetime, until: datetime) -> bool:
    """Whether it is for the caller to tell; it is for nobody else until then."""
    mine = sa.update(placement_changes).where(_is_last(change), _is_free(now))
    return connection.execute(mine.values(due_at=until)).rowcount == 1


def remember_move(connection: sa.Connection, server_id: str, move_id: str) -> None:
    """Placement is about to hold something for this move of the server."""
    CHANGES.update(connection, {'move_id': move_id}, kind=SERVER, id=server_id)


def forget(connection: sa.Connection, change: PlacementChange, move_id: str | None = None) -> None:
    """It is told, and nothing but the move is to be remembered; what changed meanwhile is still to be told."""
    if move_id is None:
        done = connection.execute(sa.delete(placement_changes).where(_is_last(change)))
    else:
        told = {'change_id': None, 'move_id': move_id, 'attempts': 0, 'due_at': None}
        done = connection.execute(sa.update(placement_changes).where(_is_last(change)).values(told))
    if done.rowcount == 0:
        # Another process was at it at the same time, and the older of the two may have been heard last.
        upsert(connection, placement_changes, [_row(change.kind, change.id)], NOTED)


def put_off(connection: sa.Connection, change: PlacementChange, until: datetime | None, attempts: int = 0) -> None:
    """Nobody is to try again before then."""
    values = {'due_at': until, 'attempts': attempts}
    connection.execute(sa.update(placement_changes).where(_is_last(change)).values(values))


def pending(connection: sa.Connection, kind: str, ids: Collection[str]) -> set[str]:
    """Those of these of which there is something to tell."""
    found = sa.select(CHANGE.id).where(CHANGE.kind == kind, CHANGE.id.in_(ids), CHANGE.change_id.is_not(None))
    return set(connection.scalars(found))


def _is_last(change: PlacementChange) -> sa.ColumnElement[bool]:
    return sa.and_(CHANGE.kind == change.kind, CHANGE.id == change.id, CHANGE.change_id == change.change_id)


def _is_free(now: datetime) -> sa.ColumnElement[bool]:
    return sa.or_(CHANGE.due_at.is_(None), CHANGE.due_at <= now)
