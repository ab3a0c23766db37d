"""/servers/{server_id}/shares: shared file systems attached to a server."""

from typing import Any

from computeapi.api.servers.controller import ServerController
from computeapi.api.types import NONEMPTY, STRING, UUID
from computeapi.db.servers import Server
from computeapi.web.contract import MEMBER_OR_ADMIN, READER_OR_ADMIN, Field, Policy, Reader, View, absent, attr
from computeapi.web.controller import Bounds, operation
from computeapi.web.request import Request
from computeapi.web.schemas import array, closed, lone, query

INDEX = Policy('os_compute_api:os-server-shares:index', READER_OR_ADMIN, 'List the shares of a server')
CREATE = Policy('os_compute_api:os-server-shares:create', MEMBER_OR_ADMIN, 'Attach a share to a server')
SHOW = Policy('os_compute_api:os-server-shares:show', READER_OR_ADMIN, 'Show a share of a server')
DELETE = Policy('os_compute_api:os-server-shares:delete', MEMBER_OR_ADMIN, 'Detach a share from a server')

# ------------------------------------------------------------------ schemas

SINCE = '2.97'
NO_QUERY = query({}, strict=SINCE)
CREATE_BODY = lone(
    'share',
    closed(
        {
            'share_id': UUID,
            'tag': NONEMPTY | {'pattern': '^[a-zA-Z0-9-]*$'},
        },
        required=['share_id'],
    ),
)


def for_administrators(name: str) -> Field:
    def get(req: Request) -> Reader:
        return attr(name) if req.context.is_admin else absent

    return Field(STRING, get, request=True, optional=True)


FIELDS = {name: Field(STRING, attr(name)) for name in ('share_id', 'status', 'tag')}
LISTED = View(FIELDS)
SHARE = View(FIELDS | {name: for_administrators(name) for name in ('uuid', 'export_location')})


class ServerShares(ServerController):
    """Shared file systems attached to a server."""

    path = '/servers/{server_id}/shares'
    versions = Bounds(SINCE)

    def find(self, req: Request, identifier: str) -> Server:
        """A server of any project: here the policies alone, with the server as their target, control access."""
        return self.cloud.servers.get(req.context, identifier, any_project=True, by_cell=True)

    @operation('GET', policy=INDEX, query=NO_QUERY, response={'shares': array(LISTED)})
    def index(self, req: Request, server: Server) -> dict[str, Any]:
        """List the shares of a server."""
        return {'shares': LISTED.render_all(req, self.cloud.server_shares.list(server))}

    @operation('POST', policy=CREATE, body=CREATE_BODY, status=201, response={'share': SHARE}, errors=(409,))
    def create(self, req: Request, server: Server, body: Any) -> dict[str, Any]:
        """Attach a share to a stopped server."""
        share = self.cloud.server_shares.attach(req.context, server, **body['share'])
        return {'share': SHARE.render(req, share)}

    @operation('GET', '/{id}', policy=SHOW, query=NO_QUERY, response={'share': SHARE})
    def show(self, req: Request, server: Server, id: str) -> dict[str, Any]:
        """Show a share of a server."""
        return {'share': SHARE.render(req, self.cloud.server_shares.get(server, id))}

    @operation('DELETE', '/{id}', policy=DELETE, errors=(409,))
    def delete(self, req: Request, server: Server, id: str) -> None:
        """Detach a share from a stopped server."""
        self.cloud.server_shares.detach(req.context, server, id)
