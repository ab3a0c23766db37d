"""/servers/{server_id}/os-server-password: the administrator's password that a guest chose, encrypted by its key."""

from typing import Any

from computeapi.api.servers.subject import ServerController
from computeapi.api.types import STRING
from computeapi.db.servers import Server
from computeapi.web.contract import MEMBER_OR_ADMIN, READER_OR_ADMIN, Policy
from computeapi.web.controller import operation
from computeapi.web.request import Request

SHOW = Policy('os_compute_api:os-server-password:show', READER_OR_ADMIN, "Read a server's encrypted password")
CLEAR = Policy('os_compute_api:os-server-password:clear', MEMBER_OR_ADMIN, "Forget a server's encrypted password")


class ServerPassword(ServerController):
    """The password of a server's administrator, encrypted with the server's public key."""

    path = '/servers/{server_id}/os-server-password'

    @operation('GET', policy=SHOW, response={'password': STRING}, errors=(404,))
    def index(self, req: Request, server: Server) -> dict[str, Any]:
        """Read the encrypted password; empty where there is none."""
        return {'password': server.password or ''}

    @operation('DELETE', policy=CLEAR, status=204, errors=(404,))
    def clear(self, req: Request, server: Server) -> None:
        """Forget the encrypted password."""
        self.cloud.servers.update(req.context, server, password=None)
