"""/servers: listing, showing and updating servers. Other operations on servers are in the modules of this package."""

from typing import Any

from computeapi.api import pages
from computeapi.api.servers import listing
from computeapi.api.servers import unreachable as lost
from computeapi.api.servers.columns import columns_of
from computeapi.api.servers.controller import ServerController
from computeapi.api.servers.schemas import DESCRIPTION, DISK_CONFIG, HOSTNAME, IPV4, IPV6
from computeapi.api.servers.sorting import order
from computeapi.api.servers.view import DETAIL, READER_POLICIES, SHOW, SUMMARY, UPDATE
from computeapi.api.types import NAME, NULLABLE_STRING
from computeapi.api.unreachable import BEHAVIOUR, either, render_all
from computeapi.db.servers import Server
from computeapi.versions import LEGACY, added, resolve
from computeapi.web.contract import ADMIN, MEMBER_OR_ADMIN, READER_OR_ADMIN, Policy, View
from computeapi.web.controller import operation
from computeapi.web.request import Request
from computeapi.web.schemas import closed, lone

INDEX = Policy('os_compute_api:servers:index', READER_OR_ADMIN, 'List servers')
INDEX_EVERYWHERE = Policy('os_compute_api:servers:index:get_all_tenants', ADMIN, 'List the servers of all projects')
LIST_DETAIL = Policy('os_compute_api:servers:detail', READER_OR_ADMIN, 'List servers with their details')
DETAIL_EVERYWHERE = Policy(
    'os_compute_api:servers:detail:get_all_tenants', ADMIN, 'List the servers of all projects with their details'
)
SHOW_SERVER = Policy('os_compute_api:servers:show', READER_OR_ADMIN, 'Show a server')
UPDATE_SERVER = Policy('os_compute_api:servers:update', MEMBER_OR_ADMIN, 'Update a server')

# ------------------------------------------------------------------ requests

NULLABLE_ZONE = NULLABLE_STRING | {'minLength': 1, 'maxLength': 255}
CHANGES = {
    'name': NAME,
    'OS-DCF:diskConfig': DISK_CONFIG,
    'accessIPv4': IPV4,
    'accessIPv6': IPV6,
    'description': added('2.19', DESCRIPTION),
    'hostname': HOSTNAME,
    'pinned_availability_zone': added('2.104', NULLABLE_ZONE),
}
UPDATE_BODY = lone('server', closed(CHANGES))
OF_V2 = frozenset(resolve(CHANGES, LEGACY))


class Servers(ServerController):
    """Servers: virtual machines of a project."""

    @operation(
        'GET',
        policy=INDEX,
        also=(INDEX_EVERYWHERE, listing.ALL_FILTERS),
        query=listing.LIST_QUERY,
        response=pages.schema('servers', either(SUMMARY, lost.SUMMARY)),
        behaviour=listing.BEHAVIOUR,
    )
    def index(self, req: Request) -> dict[str, Any]:
        """List servers."""
        return self.page(req, SUMMARY, lost.SUMMARY, INDEX_EVERYWHERE)

    @operation(
        'GET',
        '/detail',
        policy=LIST_DETAIL,
        also=(DETAIL_EVERYWHERE, listing.ALL_FILTERS, *READER_POLICIES),
        query=listing.LIST_QUERY,
        response=pages.schema('servers', either(DETAIL, lost.DETAIL)),
        behaviour=listing.BEHAVIOUR,
    )
    def detail(self, req: Request) -> dict[str, Any]:
        """List servers with their details."""
        return self.page(req, DETAIL, lost.DETAIL, DETAIL_EVERYWHERE)

    def page(self, req: Request, view: View, unreachable: View, everywhere: Policy) -> dict[str, Any]:
        search = listing.search(req, everywhere)
        page = pages.requested_page(req, self.cloud.max_limit)._replace(sort=order(req))
        found = self.cloud.servers.list(req.context, page, needs=view.needs(req), brief=view is SUMMARY, **search)
        shown = render_all(req, view, unreachable, found.servers)
        return pages.page_response(req, 'servers', shown, page.limit, last=found.last)

    @operation(
        'GET',
        '/{server_id}',
        policy=SHOW_SERVER,
        also=READER_POLICIES,
        response={'server': either(SHOW, lost.SHOW)},
        behaviour=BEHAVIOUR,
    )
    def show(self, req: Request, server: Server) -> dict[str, Any]:
        """Show a server."""
        [shown] = render_all(req, SHOW, lost.SHOW, [server])
        return {'server': shown}

    @operation(
        'PUT',
        '/{server_id}',
        policy=UPDATE_SERVER,
        also=READER_POLICIES,
        body=UPDATE_BODY,
        response={'server': UPDATE},
        errors=(409,),
    )
    def update(self, req: Request, server: Server, body: Any) -> dict[str, Any]:
        """Update a server."""
        # For /v2, unknown keys are ignored.
        changes = columns_of(body['server'], OF_V2 if req.legacy else CHANGES)
        return {'server': UPDATE.render(req, self.cloud.server_attributes.update(req.context, server, **changes))}
