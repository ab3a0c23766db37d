"""Locks: a locked server refuses changes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from computeapi.compute.servers.changes import Changes
from computeapi.context import Context
from computeapi.db import servers
from computeapi.db.servers import Server
from computeapi.errors import ServerNotFound

OWNER = 'owner'


class Locks:
    """Locks are set at once, without a task."""

    def __init__(self, changes: Changes):
        self.changes = changes

    def lock(self, context: Context, server: Server, reason: str | None = None) -> None:
        """Refuse changes from now on; an owner's lock leaves an administrator's in place."""
        by = locker(context, server)
        with self._locked_by(server) as (connection, present):
            if by != OWNER or not present:
                self._set(connection, context, server, 'lock', by, reason)

    def unlock(self, context: Context, server: Server, check_override: Callable[[], None]) -> None:
        """Accept changes again. *check_override* is called if somebody else locked the server, and raises Forbidden
        unless the caller may unlock it all the same."""
        with self._locked_by(server) as (connection, present):
            if present not in (None, locker(context, server)):
                check_override()
            self._set(connection, context, server, 'unlock', None, None)

    @contextmanager
    def _locked_by(self, server: Server) -> Iterator[tuple[sa.Connection, str | None]]:
        """Who locks the server at present: somebody may have locked it after the request read it."""
        with self.changes.store.write() as connection:
            current = servers.get(connection, server.uuid, lock=True)
            if current is None:
                raise ServerNotFound(id=server.uuid)
            yield connection, current.locked_by

    def _set(
        self,
        connection: sa.Connection,
        context: Context,
        server: Server,
        action: str,
        by: str | None,
        reason: str | None,
    ) -> None:
        values = {'locked_by': by, 'locked_reason': reason, 'updated_at': self.changes.clock()}
        servers.update(connection, server.uuid, values)
        host = self.changes.platform.conf.host
        self.changes.record(connection, context, server, action, event=f'api_{action}', host=host)


def locker(context: Context, server: Server) -> str:
    """As whom the caller locks the server."""
    return OWNER if server.project_id == context.project_id else 'admin'
