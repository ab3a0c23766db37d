"""Server groups as rows, and the servers in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from computeapi.db.tables.compute import server_groups, servers


class ServerGroup(NamedTuple):
    """A server group; named as the columns are, and in their order, followed by the ids of the servers in it."""

    id: int
    uuid: str
    project_id: str
    user_id: str
    name: str
    policy: str
    rules: dict[str, Any]
    created_at: datetime
    members: Sequence[str] = ()


IN_USE = sa.exists().where(servers.c.server_group_id == server_groups.c.uuid, servers.c.deleted_at.is_(None))


def get(connection: sa.Connection, group_id: str) -> ServerGroup | None:
    found = select(connection, [server_groups.c.uuid == group_id])
    return found[0] if found else None


def select(
    connection: sa.Connection,
    conditions: Sequence[sa.ColumnElement[bool]],
    limit: int | None = None,
    offset: int = 0,
) -> list[ServerGroup]:
    """The groups with their members: those that have any first, and else in the order in which they were made."""
    statement = sa.select(server_groups).where(*conditions).order_by(IN_USE.desc(), server_groups.c.id)
    statement = statement.limit(limit).offset(offset)
    found = [ServerGroup(*row) for row in connection.execute(statement)]
    members = _members(connection, [group.uuid for group in found])
    return [group._replace(members=members.get(group.uuid, ())) for group in found]


def _members(connection: sa.Connection, group_ids: Sequence[str]) -> dict[str, list[str]]:
    """By group, the servers in it that are not deleted."""
    statement = (
        sa.select(servers.c.server_group_id, servers.c.uuid)
        .where(servers.c.server_group_id.in_(group_ids), servers.c.deleted_at.is_(None))
        .order_by(servers.c.id)
    )
    members: dict[str, list[str]] = {}
    for group_id, server_id in connection.execute(statement):
        members.setdefault(group_id, []).append(server_id)
    return members


def insert(connection: sa.Connection, values: Mapping[str, Any]) -> None:
    connection.execute(sa.insert(server_groups).values(**values))


def delete(connection: sa.Connection, group_id: str) -> bool:
    """Whether there was such a group. Its servers stay, in no group."""
    found = connection.execute(sa.delete(server_groups).where(server_groups.c.uuid == group_id)).rowcount > 0
    connection.execute(sa.update(servers).where(servers.c.server_group_id == group_id).values(server_group_id=None))
    return found
