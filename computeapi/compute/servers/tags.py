"""Tags of servers."""

from collections.abc import Collection, Sequence
from dataclasses import replace

import sqlalchemy as sa

from computeapi.compute.platform import Platform
from computeapi.compute.servers.changes import locked
from computeapi.compute.tasks.transition import Requirement
from computeapi.context import Context
from computeapi.db import server_tags
from computeapi.db.servers import TAGS, Server
from computeapi.errors import Invalid, NotFound
from computeapi.states import LABELLED

MAX_TAGS = 50

UPDATE_ALL = Requirement('update tags', allowed=LABELLED, while_doing=None, lockable=False, launched=False)
UPDATE = replace(UPDATE_ALL, name='update tag')
DELETE_ALL = replace(UPDATE_ALL, name='delete tags')
DELETE = replace(UPDATE_ALL, name='delete tag')


class ServerTagManager:
    """Errors: ServerNotFound; Conflict if the server's state does not allow it."""

    def __init__(self, platform: Platform):
        self.store, self.notifications = platform.store, platform.notifications

    def replace(self, context: Context, server: Server, tags: Collection[str]) -> Sequence[str]:
        """Replace the tags; returns them in the stored order."""
        kept = sorted(set(tags))
        with self.store.write() as connection:
            locked(connection, context, server, UPDATE_ALL if kept else DELETE_ALL)
            self._write(connection, context, server, kept)
        return kept

    def add(self, context: Context, server: Server, tag: str) -> bool:
        """Add the tag; returns whether it is new. Invalid if the server has the maximum number of tags."""
        with self.store.write() as connection:
            tags = locked(connection, context, server, UPDATE, (TAGS,)).tags
            if tag in tags:
                return False
            if len(tags) >= MAX_TAGS:
                raise Invalid(f'The number of tags exceeded the per-server limit {MAX_TAGS}')
            self._write(connection, context, server, [*tags, tag])
            return True

    def delete(self, context: Context, server: Server, tag: str) -> None:
        """NotFound for a tag that the server does not have."""
        with self.store.write() as connection:
            tags = locked(connection, context, server, DELETE, (TAGS,)).tags
            if tag not in tags:
                raise NotFound(f"Instance {server.uuid} has no tag '{tag}'")
            self._write(connection, context, server, [other for other in tags if other != tag])

    def _write(self, connection: sa.Connection, context: Context, server: Server, tags: Sequence[str]) -> None:
        server_tags.replace(connection, server.uuid, tags)
        self.notifications.tagged(connection, context, server.uuid)
