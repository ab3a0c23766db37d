"""/servers/{server_id}/metadata: key-value pairs that owners assign to a server."""

from typing import Any

from computeapi.api.servers.controller import ServerController
from computeapi.api.servers.schemas import ITEM_BODY, ITEMS_BODY
from computeapi.api.types import TEXTS, check_key
from computeapi.db.servers import Server
from computeapi.errors import NotFound
from computeapi.web.contract import MEMBER_OR_ADMIN, READER_OR_ADMIN, Policy
from computeapi.web.controller import operation
from computeapi.web.request import Request

INDEX = Policy('os_compute_api:server-metadata:index', READER_OR_ADMIN, 'List the metadata of a server')
SHOW = Policy('os_compute_api:server-metadata:show', READER_OR_ADMIN, 'Show a metadata item of a server')
CREATE = Policy('os_compute_api:server-metadata:create', MEMBER_OR_ADMIN, 'Create or replace metadata of a server')
UPDATE_ALL = Policy('os_compute_api:server-metadata:update_all', MEMBER_OR_ADMIN, 'Replace all metadata of a server')
UPDATE = Policy('os_compute_api:server-metadata:update', MEMBER_OR_ADMIN, 'Set a metadata item of a server')
DELETE = Policy('os_compute_api:server-metadata:delete', MEMBER_OR_ADMIN, 'Delete a metadata item of a server')

# ------------------------------------------------------------------ responses

ALL_SHOWN = {'metadata': TEXTS}
ONE_SHOWN = {'meta': TEXTS}


class ServerMetadata(ServerController):
    """The metadata of a server: key-value pairs."""

    path = '/servers/{server_id}/metadata'

    @operation('GET', policy=INDEX, response=ALL_SHOWN)
    def index(self, req: Request, server: Server) -> dict[str, Any]:
        """List the metadata of a server."""
        return {'metadata': server.metadata}

    @operation('POST', policy=CREATE, body=ITEMS_BODY, response=ALL_SHOWN, errors=(409,))
    def create(self, req: Request, server: Server, body: Any) -> dict[str, Any]:
        """Create or replace metadata items of a server; others are kept."""
        return {'metadata': self.cloud.server_metadata.add(req.context, server, body['metadata'])}

    @operation('PUT', policy=UPDATE_ALL, body=ITEMS_BODY, response=ALL_SHOWN, errors=(409,))
    def update_all(self, req: Request, server: Server, body: Any) -> dict[str, Any]:
        """Replace all metadata of a server."""
        return {'metadata': self.cloud.server_metadata.replace(req.context, server, body['metadata'])}

    @operation('GET', '/{id}', policy=SHOW, response=ONE_SHOWN)
    def show(self, req: Request, server: Server, id: str) -> dict[str, Any]:
        """Show a metadata item of a server."""
        if id not in server.metadata:
            raise NotFound('Metadata item was not found')
        return {'meta': {id: server.metadata[id]}}

    @operation('PUT', '/{id}', policy=UPDATE, body=ITEM_BODY, response=ONE_SHOWN, errors=(409,))
    def update(self, req: Request, server: Server, id: str, body: Any) -> dict[str, Any]:
        """Set a metadata item of a server."""
        check_key(id, body['meta'])
        self.cloud.server_metadata.add(req.context, server, body['meta'])
        return {'meta': body['meta']}

    @operation('DELETE', '/{id}', policy=DELETE, status=204, errors=(409,))
    def delete(self, req: Request, server: Server, id: str) -> None:
        """Delete a metadata item of a server."""
        self.cloud.server_metadata.delete(req.context, server, id)
