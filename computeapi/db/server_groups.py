"""Server groups as rows, and their members."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from computeapi.db import quota_usages
from computeapi.db.listing import LIMIT, limit_to
from computeapi.db.records import Among, Rows, grouped
from computeapi.db.servers import leave_group
from computeapi.db.tables.compute import ServerGroup, server_groups
from computeapi.db.tables.servers import servers

__all__ = ['ServerGroup']

GROUPS = Rows(ServerGroup, server_groups)
MEMBERS = Among(
    sa.select(servers.c.server_group_id, servers.c.uuid).where(servers.c.deleted_at.is_(None)).order_by(servers.c.id),
    servers.c.server_group_id,
)
IN_USE = sa.exists().where(servers.c.server_group_id == server_groups.c.uuid, servers.c.deleted_at.is_(None))


def get(connection: sa.Connection, group_id: str, *, members: bool = True) -> ServerGroup | None:
    """The group, optionally with its members."""
    group = GROUPS.find(connection, uuid=group_id)
    return _with_members(connection, [group])[0] if group and members else group


def select(
    connection: sa.Connection, project_id: str | None = None, limit: int | None = None, offset: int = 0
) -> list[ServerGroup]:
    """The groups of a project (None: of all projects) with their members, the servers that are not deleted.

    Groups with members come first; otherwise they are in the order of creation.
    """
    statement = _page(project_id is not None, limit is not None)
    parameters = {'its_project': project_id, LIMIT: limit, 'page_offset': offset}
    return _with_members(connection, GROUPS.all(connection, statement, parameters))


@functools.cache
def _page(owned: bool, limited: bool) -> sa.Select[Any]:
    offset = sa.bindparam('page_offset', type_=sa.Integer)
    statement = limit_to(GROUPS.select.order_by(IN_USE.desc(), server_groups.c.id), limited).offset(offset)
    return statement.where(server_groups.c.project_id == sa.bindparam('its_project')) if owned else statement


def lock(connection: sa.Connection, group_id: str) -> None:
    """Lock the group until this transaction ends."""
    connection.execute(sa.select(server_groups.c.id).where(server_groups.c.uuid == group_id).with_for_update()).all()


def _with_members(connection: sa.Connection, groups: Sequence[ServerGroup]) -> list[ServerGroup]:
    rows = MEMBERS.rows(connection, [group.uuid for group in groups])
    members = grouped((group_id, server_id) for group_id, server_id in rows)
    return [group._replace(members=members.get(group.uuid, ())) for group in groups]


def insert(connection: sa.Connection, values: Mapping[str, Any]) -> None:
    GROUPS.insert(connection, **values)
    quota_usages.count(connection, quota_usages.of_server_group(values))


def delete(connection: sa.Connection, group_id: str) -> bool:
    """Delete the group, and remove its servers from it; returns whether it existed."""
    group = GROUPS.find(connection, lock=True, uuid=group_id)
    if group is not None:
        GROUPS.delete(connection, uuid=group_id)
        quota_usages.count(connection, quota_usages.of_server_group(group._asdict()), -1)
    leave_group(connection, group_id)
    return group is not None
