"""Key pairs of users, as rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from computeapi.db.tables.compute import keypairs


@dataclass(frozen=True, slots=True)
class Keypair:
    """A public key under the name that its user gave it. Named as the columns are, and in their order.

    private_key: only on the pair that was generated a moment ago; it is not kept.
    """

    id: int
    user_id: str
    name: str
    type: str
    fingerprint: str
    public_key: str
    created_at: datetime
    private_key: str | None = field(default=None, repr=False)


def get(connection: sa.Connection, user_id: str, name: str) -> Keypair | None:
    row = connection.execute(sa.select(keypairs).where(*_named(user_id, name))).first()
    return Keypair(*row) if row else None


def select(
    connection: sa.Connection,
    user_id: str,
    conditions: Sequence[sa.ColumnElement[bool]],
    order: Sequence[sa.ColumnElement[Any]],
    limit: int | None,
) -> list[Keypair]:
    mine = keypairs.c.user_id == user_id
    statement = sa.select(keypairs).where(mine, *conditions).order_by(*order).limit(limit)
    return [Keypair(*row) for row in connection.execute(statement)]


def insert(connection: sa.Connection, values: Mapping[str, Any]) -> None:
    connection.execute(sa.insert(keypairs).values(**values))


def delete(connection: sa.Connection, user_id: str, name: str) -> bool:
    """Whether there was such a key pair."""
    return connection.execute(sa.delete(keypairs).where(*_named(user_id, name))).rowcount > 0


def _named(user_id: str, name: str) -> tuple[sa.ColumnElement[bool], ...]:
    return keypairs.c.user_id == user_id, keypairs.c.name == name
