"""The tags of servers, as rows."""

from collections.abc import Collection

import sqlalchemy as sa

from computeapi.db.engine import conflicts
from computeapi.db.tables.servers import server_tags, servers

# The statements of all queries, built once, because building one costs more than running it.
DELETE_ALL = sa.delete(server_tags).where(server_tags.c.server_id == sa.bindparam('server'))
INSERT = sa.insert(server_tags).from_select(
    ['server_id', 'tag', 'project_id', 'created_at'],
    sa.select(
        servers.c.uuid,
        sa.bindparam('new', type_=server_tags.c.tag.type),
        servers.c.project_id,
        servers.c.created_at,
    ).where(servers.c.uuid == sa.bindparam('server')),
)
FILL_AGE = (
    sa.update(server_tags)
    .where(server_tags.c.server_id == sa.bindparam('server'), server_tags.c.created_at.is_(None))
    .values(
        {
            name: sa.select(servers.c[name]).where(servers.c.uuid == server_tags.c.server_id).scalar_subquery()
            for name in ('project_id', 'created_at')
        }
    )
)


def replace(connection: sa.Connection, server_id: str, tags: Collection[str]) -> None:
    """Replace all tags of a server."""
    connection.execute(DELETE_ALL, {'server': server_id})
    add(connection, [server_id], tags)


def add(connection: sa.Connection, server_ids: Collection[str], tags: Collection[str]) -> None:
    """Add these tags to servers that have none; Conflict if two are equal to the database: MariaDB, for one, ignores
    trailing spaces."""
    if tags:
        with conflicts('Two of the tags are the same.'):
            connection.execute(INSERT, [{'server': server_id, 'new': tag} for server_id in server_ids for tag in tags])


def fill_age(connection: sa.Connection, server_id: str) -> None:
    """Fill in the server's age and project in tags that were written by a process of an older release."""
    connection.execute(FILL_AGE, {'server': server_id})
