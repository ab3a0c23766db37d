"""Locks: a locked server refuses changes."""

from computeapi.compute.servers.changes import Changes
from computeapi.context import Context
from computeapi.db import servers as rows
from computeapi.db.servers import Server


class Locks:
    """Locks are set at once, without a task."""

    def __init__(self, changes: Changes):
        self.changes = changes

    def lock(self, context: Context, server: Server, reason: str | None = None) -> None:
        """Refuse changes from now on; an owner's lock leaves an administrator's in place."""
        owner = server.project_id == context.project_id
        if not (server.locked_by and owner):
            self._set(context, server, 'lock', 'owner' if owner else 'admin', reason)

    def unlock(self, context: Context, server: Server) -> None:
        self._set(context, server, 'unlock', None, None)

    def _set(self, context: Context, server: Server, action: str, by: str | None, reason: str | None) -> None:
        values = {'locked_by': by, 'locked_reason': reason, 'updated_at': self.changes.clock()}
        with self.changes.store.write() as connection:
            rows.update(connection, server.uuid, values)
            host = self.changes.platform.conf.host
            self.changes.record(connection, context, server, action, event=f'api_{action}', host=host)
