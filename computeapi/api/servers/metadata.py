"""/servers/{server_id}/metadata: what owners note about a server."""

from computeapi.api.servers.schemas import METADATA
from computeapi.api.servers.subject import ServerController
from computeapi.api.types import TEXTS
from computeapi.errors import Invalid, NotFound
from computeapi.web.contract import MEMBER_OR_ADMIN, READER_OR_ADMIN, Policy, closed
from computeapi.web.controller import operation

# ------------------------------------------------------------------ policies

INDEX = Policy('os_compute_api:server-metadata:index', READER_OR_ADMIN, 'List the metadata of a server')
SHOW = Policy('os_compute_api:server-metadata:show', READER_OR_ADMIN, 'Show a metadata item of a server')
CREATE = Policy('os_compute_api:server-metadata:create', MEMBER_OR_ADMIN, 'Create or replace metadata of a server')
UPDATE_ALL = Policy('os_compute_api:server-metadata:update_all', MEMBER_OR_ADMIN, 'Replace all metadata of a server')
UPDATE = Policy('os_compute_api:server-metadata:update', MEMBER_OR_ADMIN, 'Set a metadata item of a server')
DELETE = Policy('os_compute_api:server-metadata:delete', MEMBER_OR_ADMIN, 'Delete a metadata item of a server')

# ------------------------------------------------------------------ bodies

ALL = closed({'metadata': METADATA}, ['metadata'])
ONE = closed({'meta': METADATA | {'minProperties': 1, 'maxProperties': 1}}, ['meta'])
ALL_SHOWN = {'metadata': TEXTS}
ONE_SHOWN = {'meta': TEXTS}


class ServerMetadata(ServerController):
    """Names with values that owners note about a server."""

    path = '/servers/{server_id}/metadata'

    @operation('GET', policy=INDEX, response=ALL_SHOWN, errors=(404,))
    def index(self, req, server):
        """List the metadata of a server."""
        return {'metadata': server.metadata}

    @operation('POST', policy=CREATE, body=ALL, response=ALL_SHOWN, errors=(403, 404, 409))
    def create(self, req, server, body):
        """Create or replace metadata items of a server; others stay."""
        return {'metadata': self.cloud.servers.add_metadata(req.context, server, body['metadata'])}

    @operation('PUT', policy=UPDATE_ALL, body=ALL, response=ALL_SHOWN, errors=(403, 404, 409))
    def update_all(self, req, server, body):
        """Replace all metadata of a server."""
        return {'metadata': self.cloud.servers.replace_metadata(req.context, server, body['metadata'])}

    @operation('GET', '/{id}', policy=SHOW, response=ONE_SHOWN, errors=(404,))
    def show(self, req, server, id):
        """Show a metadata item of a server."""
        if id not in server.metadata:
            raise NotFound('Metadata item was not found')
        return {'meta': {id: server.metadata[id]}}

    @operation('PUT', '/{id}', policy=UPDATE, body=ONE, response=ONE_SHOWN, errors=(403, 404, 409))
    def update(self, req, server, id, body):
        """Set a metadata item of a server."""
        if id not in body['meta']:
            raise Invalid('Request body and URI mismatch')
        self.cloud.servers.add_metadata(req.context, server, body['meta'])
        return body

    @operation('DELETE', '/{id}', policy=DELETE, status=204, errors=(404, 409))
    def delete(self, req, server, id):
        """Delete a metadata item of a server."""
        self.cloud.servers.delete_metadata(req.context, server, id)
