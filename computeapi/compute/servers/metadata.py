"""Metadata of servers: key-value pairs that owners assign."""

from collections.abc import Callable, Mapping

import sqlalchemy as sa

from computeapi.compute.platform import Platform
from computeapi.compute.quotas import Quotas, check_metadata
from computeapi.compute.servers.changes import locked
from computeapi.compute.tasks.transition import Requirement
from computeapi.context import Context
from computeapi.db import servers
from computeapi.db.servers import Server
from computeapi.errors import Invalid, NotFound
from computeapi.states import LABELLED

MAX_LENGTH = 255

UPDATE = Requirement('update metadata', allowed=LABELLED, while_doing=None)
DELETE = Requirement('delete metadata', allowed=LABELLED, while_doing=None)


class ServerMetadataManager:
    """Errors: Invalid, OverQuota; ServerLocked, Conflict if the server's state does not allow it."""

    def __init__(self, platform: Platform, quotas: Quotas):
        self.store, self.clock, self.notifications = platform.store, platform.clock, platform.notifications
        self.quotas = quotas

    def add(self, context: Context, server: Server, items: Mapping[str, str]) -> dict[str, str]:
        """Set these items, keep the others, and return all of them."""
        return self._set(context, server, lambda current: {**current, **items})

    def replace(self, context: Context, server: Server, items: Mapping[str, str]) -> dict[str, str]:
        return self._set(context, server, lambda current: dict(items))

    def _set(
        self, context: Context, server: Server, change: Callable[[dict[str, str]], dict[str, str]]
    ) -> dict[str, str]:
        limits = self.quotas.limits(server.project_id, context.user_id)
        with self.store.write() as connection:
            metadata = change(locked(connection, context, server, UPDATE).metadata)
            check_items(metadata)
            check_metadata(limits, len(metadata))
            self._write(connection, context, server, metadata)
        return metadata

    def delete(self, context: Context, server: Server, key: str) -> None:
        """NotFound for an absent key, which takes precedence over errors of the server's state."""
        if key not in server.metadata:
            raise NotFound('Metadata item was not found')
        with self.store.write() as connection:
            current = locked(connection, context, server, DELETE).metadata
            rest = {name: value for name, value in current.items() if name != key}
            self._write(connection, context, server, rest)

    def _write(self, connection: sa.Connection, context: Context, server: Server, metadata: Mapping[str, str]) -> None:
        servers.update(connection, server.uuid, {'metadata': metadata, 'updated_at': self.clock()})
        self.notifications.updated(connection, context, server.uuid)


def check_items(metadata: Mapping[str, str]) -> None:
    """Invalid for a key or value that is too long, a value that is not text, and an empty key."""
    for key, value in metadata.items():
        if not isinstance(value, str):
            raise Invalid(f'Invalid metadata: {value} is not a string or unicode')
        if not key:
            raise Invalid('Invalid metadata:  has 0 characters, less than 1.')
        for what, text in (('key', key), ('value', value)):
            if len(text) > MAX_LENGTH:
                raise Invalid(f'Invalid metadata size: Metadata property {what} greater than {MAX_LENGTH} characters')
