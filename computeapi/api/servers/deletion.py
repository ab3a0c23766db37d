"""DELETE /servers/{id}, and the actions for deferred deletion: forceDelete, restore."""

from typing import Any

from computeapi.api.servers.controller import ServerController, action
from computeapi.db.servers import Server
from computeapi.web.contract import MEMBER_OR_ADMIN, Policy
from computeapi.web.controller import operation
from computeapi.web.request import Request

DELETE = Policy('os_compute_api:servers:delete', MEMBER_OR_ADMIN, 'Delete a server')
FORCE_DELETE = Policy('os_compute_api:os-deferred-delete:force', MEMBER_OR_ADMIN, 'Delete a server immediately')
RESTORE = Policy('os_compute_api:os-deferred-delete:restore', MEMBER_OR_ADMIN, 'Restore a deleted server')


class ServerDeletion(ServerController):
    """Deleting servers, and restoring soft-deleted ones."""

    @operation('DELETE', '/{server_id}', policy=DELETE, status=204, errors=(409,))
    def delete(self, req: Request, server: Server) -> None:
        """Delete a server."""
        self.cloud.deletion.delete(req.context, server)

    @action('forceDelete', policy=FORCE_DELETE, errors=(409,))
    def force_delete(self, req: Request, server: Server, body: Any) -> None:
        """Delete a server immediately."""
        self.cloud.deletion.force_delete(req.context, server)

    @action('restore', policy=RESTORE, errors=(403, 409))
    def restore(self, req: Request, server: Server, body: Any) -> None:
        """Restore a soft-deleted server."""
        self.cloud.deletion.restore(req.context, server)
