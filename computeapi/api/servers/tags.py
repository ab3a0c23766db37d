"""/servers/{server_id}/tags: tags of a server."""

from typing import Any
from urllib.parse import quote

from computeapi.api.servers.controller import ServerController
from computeapi.api.servers.schemas import TAG, TAGS
from computeapi.api.types import NOTHING, STRING
from computeapi.compute.servers import tags
from computeapi.compute.servers.changes import check
from computeapi.db import servers
from computeapi.db.servers import Server
from computeapi.errors import Invalid, NotFound
from computeapi.web.contract import HTML, MEMBER_OR_ADMIN, READER_OR_ADMIN, Policy
from computeapi.web.controller import Bounds, operation
from computeapi.web.request import Reply, Request
from computeapi.web.schemas import array, lone, query
from computeapi.web.validation import STRICT

INDEX = Policy('os_compute_api:os-server-tags:index', READER_OR_ADMIN, 'List the tags of a server')
SHOW = Policy('os_compute_api:os-server-tags:show', READER_OR_ADMIN, 'Check whether a server has a tag')
UPDATE_ALL = Policy('os_compute_api:os-server-tags:update_all', MEMBER_OR_ADMIN, 'Replace the tags of a server')
UPDATE = Policy('os_compute_api:os-server-tags:update', MEMBER_OR_ADMIN, 'Add a tag to a server')
DELETE_ALL = Policy('os_compute_api:os-server-tags:delete_all', MEMBER_OR_ADMIN, 'Delete the tags of a server')
DELETE = Policy('os_compute_api:os-server-tags:delete', MEMBER_OR_ADMIN, 'Delete a tag of a server')

# ------------------------------------------------------------------ requests

ANY_QUERY = query({}, strict=None)
BODY = lone('tags', TAGS)
SHOWN = {'tags': array(STRING)}


class ServerTags(ServerController):
    """The tags of a server."""

    path = '/servers/{server_id}/tags'
    versions = Bounds('2.26')
    needs = (servers.TAGS,)

    def find(self, req: Request, identifier: str) -> Server:
        """A server of any project: here the policies alone, with the server as their target, control access."""
        return self.cloud.servers.get(req.context, identifier, needs=self.needs, any_project=True, by_cell=True)

    @operation('GET', policy=INDEX, query=ANY_QUERY, response=SHOWN)
    def index(self, req: Request, server: Server) -> dict[str, Any]:
        """List the tags of a server."""
        return {'tags': server.tags}

    @operation('PUT', policy=UPDATE_ALL, body=BODY, response=SHOWN, errors=(409,))
    def update_all(self, req: Request, server: Server, body: Any) -> dict[str, Any]:
        """Replace the tags of a server."""
        return {'tags': self.cloud.server_tags.replace(req.context, server, body['tags'])}

    @operation('DELETE', policy=DELETE_ALL, status=204, errors=(409,))
    def delete_all(self, req: Request, server: Server) -> None:
        """Delete the tags of a server."""
        self.cloud.server_tags.replace(req.context, server, ())

    @operation('GET', '/{id}', policy=SHOW, query=ANY_QUERY, status=204)
    def show(self, req: Request, server: Server, id: str) -> None:
        """Check whether a server has a tag."""
        if id not in server.tags:
            raise NotFound(f"Server {server.uuid} has no tag '{id}'")

    @operation(
        'PUT', '/{id}', policy=UPDATE, body=NOTHING, status=201, successes=(204,), media_type=HTML, errors=(409,)
    )
    def update(self, req: Request, server: Server, id: str, body: Any) -> Reply:
        """Add a tag to a server."""
        check(req.context, server, tags.UPDATE)
        check_allowed(id)
        if not self.cloud.server_tags.add(req.context, server, id):
            return Reply(status=204)
        return Reply(headers={'Location': f'{req.endpoint}/servers/{server.uuid}/tags/{quote(id)}'})

    @operation('DELETE', '/{id}', policy=DELETE, status=204, errors=(409,))
    def delete(self, req: Request, server: Server, id: str) -> None:
        """Delete a tag of a server."""
        self.cloud.server_tags.delete(req.context, server, id)


def check_allowed(tag: str) -> None:
    for error in STRICT(TAG).iter_errors(tag):
        raise Invalid(
            f"Tag '{tag}' is invalid. It must be a non empty string without characters '/' and ','. "
            f'Validation error message: {error.message}'
        )
